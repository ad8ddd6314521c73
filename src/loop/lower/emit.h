// Writes one group: loops, locals and stores around expressions from the Reader. One file per family.
#pragma once

#include <functional>
#include <vector>

#include "loop/lower/fuse.h"
#include "loop/lower/lower.h"
#include "loop/lower/reader.h"

namespace weft::loop {

// A nest of loops of one kind over a shape, and the coordinates it gives.
struct Nest {
  std::vector<LoopId> loops;
  std::vector<ExprId> at;
};
Nest make_nest(Group& group, LoopKind kind, const Shape& shape);
// The loops of `nest` around `body`, first loop outermost.
std::vector<Stmt> around(const Nest& nest, std::vector<Stmt> body);

struct EmitContext {
  const graph::Graph& graph;
  const std::vector<bool>& stored;
  std::vector<Scratch>& scratch;
  bool pairs = false;  // of bf16 are multiplied at once
  std::int64_t kept_bytes = 0;  // as in Choices
};

// Memory that the steps of one node or unit hand on: its argument.
graph::ValueId add_scratch(const EmitContext& context, DType dtype, Shape shape);

// Stores of the unit's outputs, padded ones included, at coordinates `at` of the seed's result, which is bound there.
std::vector<Stmt> store_outputs(Reader& reader, const Unit& unit, const std::vector<ExprId>& at);

// Each makes the kernel steps that compute the given node or unit.
std::vector<Step> emit_contraction(const EmitContext& context, const Unit& unit);
std::vector<Step> emit_winograd(const EmitContext& context, const Unit& unit);  // the kernels of a contraction of that form
Step emit_rows(const EmitContext& context, const Unit& unit);
std::vector<Step> emit_attention(const EmitContext& context, const Unit& unit);
Step emit_pointwise(const EmitContext& context, graph::ValueId value);
std::vector<Step> emit_concat(const EmitContext& context, const graph::Node& node);
Step emit_arg_reduce(const EmitContext& context, const graph::Node& node);
Step emit_window_arg_max(const EmitContext& context, const graph::Node& node);
Step emit_cumulative(const EmitContext& context, const graph::Node& node);
std::vector<Step> emit_sort(const EmitContext& context, const graph::Node& node);
std::vector<Step> emit_scatter(const EmitContext& context, const graph::Node& node);

// The coordinates a window or convolution reads on one axis, and whether they lie inside (-1: always).
struct WindowIndex {
  ExprId index;
  ExprId inside;
};
WindowIndex window_index(Reader& reader, ExprId out, ExprId in_window, std::int64_t stride, std::int64_t dilation,
                         std::int64_t base_dilation, const Dim& lo, const Dim& hi, const Dim& extent);

}  // namespace weft::loop
