// What is known of small integer tensors as size expressions: the elements of a value, row-major, when they follow from
// constants and sizes. This is how shape arithmetic (Shape, Gather, Concat, Reshape chains) is seen through.
#pragma once

#include <map>
#include <optional>

#include "graph/graph.h"

namespace weft::graph {

class Contents {
 public:
  explicit Contents(const Graph& graph) : graph_(graph) {}

  // The elements of an integer or bool value of at most 256 elements and static shape; nothing when unknown.
  // Results are remembered, so that a growing graph may be asked again and again.
  const std::optional<Shape>& of(ValueId value);

 private:
  std::optional<Shape> compute(ValueId value, int depth);
  const std::optional<Shape>& at_depth(ValueId value, int depth);
  std::optional<Shape> elementwise(const Node& node, int depth);
  std::optional<Shape> movement(const Node& node, int depth);
  std::optional<Shape> gather(const Node& node, int depth);
  std::optional<Shape> reduce(const Node& node, int depth);

  const Graph& graph_;
  std::map<ValueId, std::optional<Shape>> known_;
};

}  // namespace weft::graph
