// Kernels without a reduction: one stored value, computed from stored values; concatenation part by part.
#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;

Step emit_pointwise(const EmitContext& context, ValueId value) {
  Step step;
  step.group.name = "pointwise";
  Reader reader(context.graph, context.stored, {value}, step.group);
  Nest nest = make_nest(step.group, LoopKind::Parallel, context.graph.type(value).shape);
  ExprId e = reader.to_storage(value, reader.read(value, nest.at));
  step.group.body = around(nest, {store_stmt(reader.output(value), nest.at, e)});
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
