// If, Loop and Scan. An If whose condition is known becomes the branch that is taken.
#include <fmt/format.h>

#include "frontend/onnx/import/importer.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

Result<void> give_all(NodeContext& c, const std::vector<ValueId>& values) {
  if (static_cast<int>(values.size()) < c.output_count()) {
    return c.bad("there are more outputs than the subgraph has").found(std::to_string(values.size()));
  }
  for (int i = 0; i < c.output_count(); ++i) c.out(i, values[i]);
  return {};
}

using Region = std::shared_ptr<const graph::Graph>;

// A region that fails with `why`, with results of the types of `other`'s.
Result<Region> failing(NodeContext& c, const std::vector<ValueId>& captured, const graph::Graph& other, const Error& why) {
  if (why.kind() != ErrorKind::User) return why;
  auto region = std::make_shared<graph::Graph>();
  region->name = "region";
  region->facts = other.facts;
  for (ValueId v : captured) region->add_input(c.b.type(v));
  graph::Builder b(*region);
  b.set_origin(c.b.origin());
  b.nodes(Op::Fail, {}, Attrs().set(Attr::Name, std::string(why.what())));
  std::vector<ValueId> outputs;
  for (ValueId v : other.outputs()) outputs.push_back(b.splat(other.type(v), 0));
  WEFT_TRY(b.status());
  region->set_outputs(outputs);
  return Region(std::move(region));
}

// A new symbol for each size of the results that depends on the branch.
Shape differing_sizes(NodeContext& c, const graph::Graph& a, const graph::Graph& b) {
  Shape symbols;
  for (std::size_t i = 0; i < a.outputs().size() && i < b.outputs().size(); ++i) {
    const Shape& x = a.type(a.outputs()[i]).shape;
    const Shape& y = b.type(b.outputs()[i]).shape;
    for (std::size_t d = 0; x.size() == y.size() && d < x.size(); ++d) {
      if (!c.b.graph().facts.known_equal(x[d], y[d])) symbols.push_back(c.fresh_symbol("branch"));
    }
  }
  return symbols;
}

Result<void> if_op(NodeContext& c) {
  GraphPtr then_graph = c.subgraph("then_branch"), else_graph = c.subgraph("else_branch");
  if (!then_graph || !else_graph) return c.bad("then_branch and else_branch are required");
  if (auto known = c.dims(0); known && known->size() == 1 && (*known)[0].is_const()) {
    const Graph& taken = (*known)[0].is(0) ? *else_graph : *then_graph;
    return give_all(c, WEFT_TRY(c.importer().inline_subgraph(taken, {})));
  }
  if (c.dtype(0) != DType::Bool) return c.bad("the condition must be a bool");
  std::vector<ValueId> captured = WEFT_TRY(c.importer().captures({then_graph, else_graph}));
  auto then_result = c.importer().region(*then_graph, {}, captured);
  auto else_result = c.importer().region(*else_graph, {}, captured);
  // A branch that no input of these sizes can take need not be valid for them; taken all the same, the run fails.
  if (!then_result.ok() && else_result.ok()) then_result = failing(c, captured, **else_result, then_result.error());
  if (!else_result.ok() && then_result.ok()) else_result = failing(c, captured, **then_result, else_result.error());
  auto then_region = WEFT_TRY(std::move(then_result)), else_region = WEFT_TRY(std::move(else_result));
  std::vector<ValueId> operands{c.b.reshape(c.in(0), {})};
  operands.insert(operands.end(), captured.begin(), captured.end());
  Attrs attrs;
  Shape symbols = differing_sizes(c, *then_region, *else_region);
  if (!symbols.empty()) attrs.set(Attr::Symbol, symbols);
  auto results = c.b.nodes(Op::If, std::move(operands), std::move(attrs), {then_region, else_region});
  WEFT_TRY(c.b.status());
  return give_all(c, results);
}

Result<void> loop(NodeContext& c) {
  GraphPtr body = c.subgraph("body");
  if (!body || body->inputs.size() < 2) return c.bad("body with at least two inputs is required");
  std::size_t carried = body->inputs.size() - 2;
  if (c.input_count() != static_cast<int>(carried) + 2) return c.bad("the body's inputs do not match the operands");
  if (body->outputs.size() < carried + 1) return c.bad("the body has too few outputs");
  ValueId trips = c.has(0) ? c.b.cast(c.b.reshape(c.in(0), {}), DType::I64)
                           : c.b.constant(Tensor::scalar_i64(DType::I64, INT64_MAX));
  ValueId go = c.has(1) ? c.b.reshape(c.in(1), {}) : c.b.constant(Tensor::scalar_i64(DType::Bool, 1));
  std::vector<ValueId> captured = WEFT_TRY(c.importer().captures({body}));
  std::vector<graph::Type> inputs{{DType::I64, {}}, {DType::Bool, {}}};
  std::vector<ValueId> operands{trips, go};
  for (std::size_t k = 0; k < carried; ++k) {
    if (!c.has(static_cast<int>(k) + 2)) return c.bad(fmt::format("input {} is required", k + 2));
    operands.push_back(c.in(static_cast<int>(k) + 2));
    inputs.push_back(c.b.type(operands.back()));
  }
  auto region = WEFT_TRY(c.importer().region(*body, inputs, captured));
  operands.insert(operands.end(), captured.begin(), captured.end());
  Attrs attrs;
  attrs.set(Attr::Carried, static_cast<std::int64_t>(carried));
  Shape symbols;
  for (std::size_t k = carried + 1; k < body->outputs.size(); ++k) symbols.push_back(c.fresh_symbol("iterations"));
  if (!symbols.empty()) attrs.set(Attr::Symbol, symbols);
  auto results = c.b.nodes(Op::Loop, std::move(operands), std::move(attrs), {region});
  WEFT_TRY(c.b.status());
  return give_all(c, results);
}

// Moves an axis to the front, or back.
ValueId to_front(NodeContext& c, ValueId x, std::int64_t axis) {
  std::vector<std::int64_t> axes{axis};
  for (std::int64_t d = 0; d < c.b.type(x).rank(); ++d) {
    if (d != axis) axes.push_back(d);
  }
  return c.b.transpose(x, axes);
}

ValueId from_front(NodeContext& c, ValueId x, std::int64_t axis) {
  std::vector<std::int64_t> axes;
  for (std::int64_t d = 0; d < c.b.type(x).rank(); ++d) axes.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
  return c.b.transpose(x, axes);
}

ValueId reversed(NodeContext& c, ValueId x, std::int64_t direction) {
  if (direction == 0) return x;
  return c.b.node(Op::Reverse, {x}, Attrs().set(Attr::Axes, std::vector<std::int64_t>{0}));
}

Result<void> scan(NodeContext& c) {
  GraphPtr body = c.subgraph("body");
  std::int64_t xs = c.integer("num_scan_inputs", 0);
  if (!body || xs < 1 || xs > c.input_count()) return c.bad("body and num_scan_inputs are required");
  std::int64_t carried = c.input_count() - xs;
  std::int64_t ys = static_cast<std::int64_t>(body->outputs.size()) - carried;
  if (static_cast<std::int64_t>(body->inputs.size()) != c.input_count() || ys < 0) {
    return c.bad("the body's inputs and outputs do not match the operands");
  }
  auto directions = c.integers("scan_input_directions", std::vector<std::int64_t>(xs, 0));
  auto axes = c.integers("scan_input_axes", std::vector<std::int64_t>(xs, 0));
  auto out_directions = c.integers("scan_output_directions", std::vector<std::int64_t>(ys, 0));
  auto out_axes = c.integers("scan_output_axes", std::vector<std::int64_t>(ys, 0));
  if (static_cast<std::int64_t>(directions.size()) != xs || static_cast<std::int64_t>(axes.size()) != xs ||
      static_cast<std::int64_t>(out_directions.size()) != ys || static_cast<std::int64_t>(out_axes.size()) != ys) {
    return c.bad("axes and directions must be given for every scan input and output, or for none");
  }
  std::vector<ValueId> captured = WEFT_TRY(c.importer().captures({body}));
  std::vector<ValueId> operands;
  std::vector<graph::Type> inputs;
  for (std::int64_t k = 0; k < c.input_count(); ++k) {
    ValueId v = c.in(static_cast<int>(k));
    if (k >= carried) {
      std::int64_t axis = WEFT_TRY(c.axis(axes[k - carried], c.b.type(v).rank()));
      v = reversed(c, to_front(c, v, axis), directions[k - carried]);
    }
    graph::Type type = c.b.type(v);
    if (k >= carried) type.shape.erase(type.shape.begin());
    operands.push_back(v);
    inputs.push_back(std::move(type));
  }
  auto region = WEFT_TRY(c.importer().region(*body, inputs, captured));
  operands.insert(operands.end(), captured.begin(), captured.end());
  auto results = c.b.nodes(Op::Scan, std::move(operands), Attrs().set(Attr::Carried, carried).set(Attr::Xs, xs), {region});
  WEFT_TRY(c.b.status());
  for (std::int64_t k = 0; k < ys; ++k) {
    ValueId& v = results[carried + k];
    std::int64_t axis = WEFT_TRY(c.axis(out_axes[k], c.b.type(v).rank()));
    v = from_front(c, reversed(c, v, out_directions[k]), axis);
  }
  return give_all(c, results);
}

constexpr OpEntry kControlOps[] = {
    {"If", 1, kOpsetMax, 1, 1, "then_branch else_branch", if_op},
    {"Loop", 1, kOpsetMax, 0, -1, "body", loop},
    {"Scan", 9, kOpsetMax, 1, -1,
     "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions", scan},
};

}  // namespace

OpTable control_ops() { return {kControlOps, std::size(kControlOps)}; }

}  // namespace weft::onnx
