// What the evaluators of the op families share. Each evaluates one node of concrete operands.
#pragma once

#include "base/wide.h"
#include "graph/graph.h"

namespace weft::graph::interpreter {

using Tensors = std::vector<Tensor>;
using Sizes = std::vector<std::int64_t>;

struct Eval {
  const Graph& graph;
  const Node& node;
  const Tensors& in;
  Bindings& bindings;
  int depth;  // of region nesting

  Op op() const { return node.op; }
  const Attrs& attrs() const { return node.attrs; }
  // Expressions of an attribute at the bound sizes; unlike base's evaluate, negative values may come out.
  Result<Sizes> dims(Attr key) const;
  // A user error that starts with the op's name.
  Error error(const char* code, const std::string& message) const;
};

Result<Tensors> eval_unary(Eval& e);
Result<Tensors> eval_binary(Eval& e);
Result<Tensors> eval_select(Eval& e);
Result<Tensors> eval_cast(Eval& e);
Result<Tensors> eval_movement(Eval& e);
Result<Tensors> eval_source(Eval& e);
Result<Tensors> eval_gather(Eval& e);
Result<Tensors> eval_scatter(Eval& e);
Result<Tensors> eval_reduce(Eval& e);
Result<Tensors> eval_scan(Eval& e);
Result<Tensors> eval_sort(Eval& e);
Result<Tensors> eval_dot(Eval& e);
Result<Tensors> eval_conv(Eval& e);
Result<Tensors> eval_conv_winograd(Eval& e);
Result<Tensors> eval_window(Eval& e);
Result<Tensors> eval_control(Eval& e);
Result<Tensors> eval_host(Eval& e);

// Evaluates a region: its symbols are the ones bound outside, or bound anew by its inputs.
Result<Tensors> run_region(const Graph& region, Tensors inputs, const Bindings& outer, int depth);

// Same-shape check of elementwise operands, whose symbolic sizes may turn out different.
Result<void> check_same_shapes(const Eval& e);

std::int64_t count_of(const Sizes& shape);
// The product of the sizes on axes [from, to).
std::int64_t count_of(const Sizes& shape, std::size_t from, std::size_t to);
// Steps a row-major multi-index; false when it wrapped around.
bool next_index(Sizes& index, const Sizes& shape);

inline Result<Tensors> one(Result<Tensor> t) {
  if (!t.ok()) return t.error();
  return Tensors{std::move(t).value()};
}

}  // namespace weft::graph::interpreter
