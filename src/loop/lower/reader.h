// Reads graph values as expressions: through everything that is not stored, down to loads.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "loop/group.h"
#include "loop/lower/narrow.h"

namespace weft::loop {

// philox.cpp: bits of dtype t (u32, u64) that the generator gives for an element (i64) under u64 `key` and `stream`.
ExprId random_bits(Group& g, DType t, ExprId element, ExprId key, ExprId stream);

class Reader {
 public:
  // `computed` are the stored values that this group computes: they are not loaded but read through.
  Reader(const graph::Graph& graph, std::vector<bool> stored, const std::vector<graph::ValueId>& computed,
         Group& group)
      : graph_(graph), stored_(std::move(stored)), group_(group) {
    for (graph::ValueId v : computed) stored_[v] = false;
  }

  // The element of `value` at i64 coordinates `at`, in its compute dtype. `guard` (a bool expression, or -1): where it
  // is false nothing is accessed and the result is of no interest. Of a complex number: its real (0) or imaginary (1)
  // `part`.
  ExprId read(graph::ValueId value, const std::vector<ExprId>& at, ExprId guard = -1, int part = 0);

  // As read(), at axis coordinate at[axis] * inner + within. A constant is seen with that axis as two.
  ExprId read_apart(graph::ValueId value, std::size_t axis, std::int64_t inner, std::vector<ExprId> at, ExprId within);

  // The value is not read through but stands for `expr` when read at exactly these coordinates (a reduction's local).
  void bind(graph::ValueId value, std::vector<ExprId> at, ExprId expr);
  bool bound(graph::ValueId value) const { return bound_.count(value) != 0; }

  void note(const graph::Node& node);  // remember a node's origin as part of the group

  // The element as it is in memory: `expr` (compute dtype) converted to the value's storage dtype.
  ExprId to_storage(graph::ValueId value, ExprId expr);

  ParamId input(graph::ValueId value, const Shape& shape);  // a parameter for a stored value, seen in this shape
  ParamId output(graph::ValueId value, Role role = Role::Output);
  ParamId scratch(graph::ValueId arg, DType dtype, const Shape& shape, Role role);
  const std::vector<graph::ValueId>& args() const { return args_; }
  Group& group() { return group_; }
  const graph::Graph& graph() const { return graph_; }

  std::vector<ExprId> linear_to_coordinates(ExprId linear, const Shape& shape, std::size_t begin, std::size_t end);
  // Coordinates of an operand of `node` for coordinates `at` of its result: movement nodes that only rename elements.
  std::vector<ExprId> reshape_coordinates(const Shape& from, const Shape& to, const std::vector<ExprId>& at);
  ExprId in_range(ExprId index, const Dim& extent);  // 0 <= index < extent
  ExprId both(ExprId a, ExprId b);                   // and, where -1 is true
  // `index`, wrapped where negative; the run fails with the last of the group's checks where it is out of range.
  ExprId checked(ExprId index, const Dim& extent);
  ExprId wrap_index(const graph::Node& node, ExprId index, const Dim& extent);

 private:
  struct Key {
    graph::ValueId value;
    std::vector<ExprId> at;
    ExprId guard;
    int part;
    auto operator<=>(const Key&) const = default;
  };
  ExprId read_node(const graph::Node& node, graph::ValueId value, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_complex(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_elementwise(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_cast(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_movement(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_pad(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_concat(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_source(const graph::Node& node, const std::vector<ExprId>& at);
  ExprId read_gather(const graph::Node& node, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId read_stored(graph::ValueId value, const Shape& shape, const std::vector<ExprId>& at, ExprId guard, int part);
  ExprId decode(DType t, ExprId code);
  ExprId rounded(DType t, ExprId value, bool saturate);

  const graph::Graph& graph_;
  std::vector<bool> stored_;
  Group& group_;
  std::map<Key, ExprId> memo_;
  std::map<graph::ValueId, std::pair<std::vector<ExprId>, ExprId>> bound_;
  std::map<std::pair<DType, ExprId>, ExprId> codes_;  // of values that were decoded
  std::vector<graph::ValueId> args_;
};

}  // namespace weft::loop
