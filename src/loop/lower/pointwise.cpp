// Kernels without a reduction: one stored value, computed from stored values; concatenation part by part.
#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;

namespace {

// A program stores whole bytes: the elements of each are computed and put together. What the last byte has beyond the
// last element is 0.
Step emit_packed(const EmitContext& context, ValueId value) {
  Step step;
  Group& g = step.group;
  g.name = "pointwise";
  Reader reader(context.graph, context.stored, {value}, g);
  const Shape& shape = context.graph.type(value).shape;
  const DType t = context.graph.type(value).dtype;
  const Shape bytes = packed_shape(t, shape);
  const int per_byte = 8 / bits(t);
  const bool whole = bytes.size() == shape.size() && mod(shape.empty() ? Dim(1) : shape.back(), Dim(per_byte)).is(0);
  Nest nest = make_nest(g, LoopKind::Parallel, bytes);
  ExprId byte = g.constant_i64(0, DType::U8);
  for (int part = 0; part < per_byte; ++part) {
    ExprId element = g.iadd(g.imul(nest.at.back(), g.constant_i64(per_byte)), g.constant_i64(part));
    std::vector<ExprId> at(nest.at.begin(), nest.at.end() - 1);
    ExprId inside = -1;
    if (whole) {
      at.push_back(element);
    } else {
      at = reader.linear_to_coordinates(element, shape, 0, shape.size());
      inside = part == 0 ? -1 : g.scalar(ScalarOp::Lt, DType::Bool, {element, g.size(product(shape))});
    }
    ExprId code = reader.to_storage(value, reader.read(value, at, inside));
    if (inside >= 0) code = g.scalar(ScalarOp::Select, DType::U8, {inside, code, g.constant_i64(0, DType::U8)});
    code = g.scalar(ScalarOp::Shl, DType::U8, {code, g.constant_i64(part * bits(t), DType::U8)});
    byte = g.scalar(ScalarOp::Or, DType::U8, {byte, code});
  }
  g.body = around(nest, {store_stmt(reader.output(value), nest.at, byte)});
  step.args = reader.args();
  return step;
}

}  // namespace

Step emit_pointwise(const EmitContext& context, ValueId value) {
  if (is_packed(context.graph.type(value).dtype)) return emit_packed(context, value);
  Step step;
  step.group.name = "pointwise";
  Reader reader(context.graph, context.stored, {value}, step.group);
  const graph::Type& type = context.graph.type(value);
  Nest nest = make_nest(step.group, LoopKind::Parallel, type.shape);
  std::vector<Stmt> body;
  if (is_complex(type.dtype)) {
    std::vector<ExprId> parts{reader.read(value, nest.at, -1, 0), reader.read(value, nest.at, -1, 1)};
    ParamId out = reader.output(value);
    for (int part = 0; part < 2; ++part) {
      std::vector<ExprId> at = nest.at;
      at.push_back(step.group.constant_i64(part));
      body.push_back(store_stmt(out, std::move(at), parts[part]));
    }
  } else {
    ExprId e = reader.to_storage(value, reader.read(value, nest.at));
    body.push_back(store_stmt(reader.output(value), nest.at, e));
  }
  step.group.body = around(nest, std::move(body));
  step.args = reader.args();
  return step;
}

std::vector<Step> emit_concat(const EmitContext& context, const Node& node) {
  std::vector<Step> steps;
  std::int64_t axis = node.attrs.integer(Attr::Axis);
  ValueId result = node.results[0];
  Dim offset = 0;
  for (ValueId part : node.operands) {
    const Shape& shape = context.graph.type(part).shape;
    Step step;
    step.group.name = "concat";
    Reader reader(context.graph, context.stored, {}, step.group);
    reader.note(node);
    Nest nest = make_nest(step.group, LoopKind::Parallel, shape);
    ExprId e = reader.to_storage(result, reader.read(part, nest.at));
    std::vector<ExprId> at = nest.at;
    at[axis] = step.group.iadd(at[axis], step.group.size(offset));
    step.group.body = around(nest, {store_stmt(reader.output(result, Role::InOut), at, e)});
    step.args = reader.args();
    steps.push_back(std::move(step));
    offset = offset + shape[axis];
  }
  return steps;
}

}  // namespace weft::loop
