// Kernels that carry state along an axis: arg reductions, cumulative ops, scatters.
#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// best = (value, index): a new element wins when it is better, or NaN before any NaN, or (last) equal.
struct Best {
  LocalId value, index;
};

Best declare_best(Group& g, DType t, std::vector<Stmt>& body) {
  Best best{g.add_local(t), g.add_local(DType::I64)};
  body.push_back(local_stmt(best.value, is_float(t) ? g.constant(t, 0) : g.constant_i64(0, t)));
  body.push_back(local_stmt(best.index, g.constant_i64(-1)));
  return best;
}

std::vector<Stmt> update_best(Group& g, const Best& best, DType t, ExprId value, ExprId index, bool largest, bool last,
                              ExprId inside) {
  auto logic = [&](ScalarOp op, std::vector<ExprId> args) { return g.scalar(op, DType::Bool, std::move(args)); };
  ExprId now = g.local(best.value), at = g.local(best.index);
  ScalarOp beats = largest ? (last ? ScalarOp::Ge : ScalarOp::Gt) : (last ? ScalarOp::Le : ScalarOp::Lt);
  ExprId better = logic(beats, {value, now});
  if (is_float(t)) {
    ExprId old_nan = logic(ScalarOp::IsNan, {now});
    better = logic(ScalarOp::Or, {better, logic(ScalarOp::IsNan, {value})});
    better = logic(ScalarOp::And, {better, logic(ScalarOp::Not, {old_nan})});
  }
  better = logic(ScalarOp::Or, {better, logic(ScalarOp::Lt, {at, g.constant_i64(0)})});
  if (inside >= 0) better = logic(ScalarOp::And, {better, inside});
  ExprId new_index = g.scalar(ScalarOp::Select, DType::I64, {better, index, at});
  ExprId new_value = g.scalar(ScalarOp::Select, t, {better, value, now});
  // The index is set first: its condition reads the old value.
  LocalId hold = g.add_local(DType::I64);
  return {local_stmt(hold, new_index), set_stmt(best.value, new_value), set_stmt(best.index, g.local(hold))};
}

}  // namespace

Step emit_arg_reduce(const EmitContext& context, const Node& node) {
  Step step;
  Group& g = step.group;
  g.name = info(node.op).name;
  Reader reader(context.graph, context.stored, {node.results[0]}, g);
  reader.note(node);
  const Shape& shape = context.graph.type(node.operands[0]).shape;
  DType t = compute_dtype(context.graph.type(node.operands[0]).dtype);
  std::int64_t axis = node.attrs.integer(Attr::Axis);
  Shape outer = shape;
  outer.erase(outer.begin() + axis);
  Nest rows = make_nest(g, LoopKind::Parallel, outer);
  Nest along = make_nest(g, LoopKind::Serial, {shape[axis]});
  std::vector<ExprId> at = rows.at;
  at.insert(at.begin() + axis, along.at[0]);
  std::vector<Stmt> body;
  Best best = declare_best(g, t, body);
  ExprId value = reader.read(node.operands[0], at);
  auto inner = update_best(g, best, t, value, along.at[0], node.op == GOp::ArgMax, node.attrs.flag(Attr::Last), -1);
  for (Stmt& s : around(along, std::move(inner))) body.push_back(std::move(s));
  body.push_back(store_stmt(reader.output(node.results[0]), rows.at, g.local(best.index)));
  g.body = around(rows, std::move(body));
  step.args = reader.args();
  return step;
}

Step emit_window_arg_max(const EmitContext& context, const Node& node) {
  Step step;
  Group& g = step.group;
  g.name = info(node.op).name;
  Reader reader(context.graph, context.stored, {node.results[0]}, g);
  reader.note(node);
  const Shape& x = context.graph.type(node.operands[0]).shape;
  DType t = compute_dtype(context.graph.type(node.operands[0]).dtype);
  const auto& window = node.attrs.ints(Attr::Window);
  Nest space = make_nest(g, LoopKind::Parallel, context.graph.type(node.results[0]).shape);
  Nest along = make_nest(g, LoopKind::Serial, Shape(window.begin(), window.end()));
  std::vector<ExprId> at(x.size());
  ExprId inside = -1, flat = g.constant_i64(0);
  for (std::size_t d = 0; d < x.size(); ++d) {
    WindowIndex i = window_index(reader, space.at[d], along.at[d], node.attrs.ints(Attr::Strides)[d],
                                 node.attrs.ints(Attr::Dilations)[d], 1, node.attrs.dims(Attr::Lo)[d],
                                 node.attrs.dims(Attr::Hi)[d], x[d]);
    at[d] = i.index;
    inside = reader.both(inside, i.inside);
    flat = g.iadd(g.imul(flat, g.size(x[d])), i.index);
  }
  std::vector<Stmt> body;
  Best best = declare_best(g, t, body);
  ExprId value = reader.read(node.operands[0], at, inside);
  for (Stmt& s : around(along, update_best(g, best, t, value, flat, true, false, inside))) body.push_back(std::move(s));
  body.push_back(store_stmt(reader.output(node.results[0]), space.at, g.local(best.index)));
  g.body = around(space, std::move(body));
  step.args = reader.args();
  return step;
}

Step emit_cumulative(const EmitContext& context, const Node& node) {
  Step step;
  Group& g = step.group;
  g.name = info(node.op).name;
  Reader reader(context.graph, context.stored, {node.results[0]}, g);
  reader.note(node);
  const Shape& shape = context.graph.type(node.operands[0]).shape;
  DType t = compute_dtype(context.graph.type(node.operands[0]).dtype);
  std::int64_t axis = node.attrs.integer(Attr::Axis);
  Combine combine = node.op == GOp::CumSum    ? Combine::Sum
                    : node.op == GOp::CumProd ? Combine::Prod
                    : node.op == GOp::CumMax  ? Combine::Max
                                              : Combine::Min;
  ScalarOp op = node.op == GOp::CumSum    ? ScalarOp::Add
                : node.op == GOp::CumProd ? ScalarOp::Mul
                : node.op == GOp::CumMax  ? ScalarOp::Max
                                          : ScalarOp::Min;
  Shape outer = shape;
  outer.erase(outer.begin() + axis);
  Nest rows = make_nest(g, LoopKind::Parallel, outer);
  Nest along = make_nest(g, LoopKind::Serial, {shape[axis]});
  ExprId k = along.at[0];
  if (node.attrs.flag(Attr::Reverse)) k = g.isub(g.size(shape[axis] - 1), k);
  std::vector<ExprId> at = rows.at;
  at.insert(at.begin() + axis, k);
  LocalId sum = g.add_local(t);
  Scalar start = identity(combine, context.graph.type(node.results[0]).dtype);
  std::vector<Stmt> body{local_stmt(sum, is_float(t) ? g.constant(t, start.f) : g.constant_i64(start.i, t))};
  ExprId next = g.scalar(op, t, {g.local(sum), reader.read(node.operands[0], at)});
  Stmt store = store_stmt(reader.output(node.results[0]), at, reader.to_storage(node.results[0], g.local(sum)));
  std::vector<Stmt> inner{set_stmt(sum, next)};
  inner.insert(node.attrs.flag(Attr::Exclusive) ? inner.begin() : inner.end(), std::move(store));
  for (Stmt& s : around(along, std::move(inner))) body.push_back(std::move(s));
  g.body = around(rows, std::move(body));
  step.args = reader.args();
  return step;
}

namespace {

Combine scatter_combine(const std::string& name) {
  if (name == "add") return Combine::Sum;
  if (name == "mul") return Combine::Prod;
  if (name == "max") return Combine::Max;
  if (name == "min") return Combine::Min;
  return Combine::None;
}

}  // namespace

// First the operand is copied, then the updates are written in order: of equal indices the last one stays.
std::vector<Step> emit_scatter(const EmitContext& context, const Node& node) {
  const graph::Graph& graph = context.graph;
  ValueId x = node.operands[0], indices = node.operands[1], updates = node.operands[2], result = node.results[0];
  const Shape& shape = graph.type(x).shape;
  std::vector<Step> steps(2);
  {
    Group& g = steps[0].group;
    g.name = "copy";
    Reader reader(graph, context.stored, {result}, g);
    Nest nest = make_nest(g, LoopKind::Parallel, shape);
    ExprId e = reader.to_storage(result, reader.read(x, nest.at));
    g.body = around(nest, {store_stmt(reader.output(result), nest.at, e)});
    steps[0].args = reader.args();
  }
  Group& g = steps[1].group;
  g.name = info(node.op).name;
  Reader reader(graph, context.stored, {result}, g);
  reader.note(node);
  Nest nest = make_nest(g, LoopKind::Serial, graph.type(updates).shape);
  std::vector<ExprId> at;
  if (node.op == GOp::ScatterElements) {
    std::int64_t axis = node.attrs.integer(Attr::Axis);
    at = nest.at;
    at[axis] = reader.wrap_index(node, reader.read(indices, nest.at), shape[axis]);
  } else {
    const Shape& index_shape = graph.type(indices).shape;
    std::vector<ExprId> lead(nest.at.begin(), nest.at.begin() + (index_shape.size() - 1));
    for (std::int64_t k = 0; k < index_shape.back().value(); ++k) {
      std::vector<ExprId> index_at = lead;
      index_at.push_back(g.constant_i64(k));
      at.push_back(reader.wrap_index(node, reader.read(indices, index_at), shape[k]));
    }
    at.insert(at.end(), nest.at.begin() + lead.size(), nest.at.end());
  }
  ExprId value = reader.to_storage(result, reader.read(updates, nest.at));
  Combine combine = scatter_combine(node.attrs.str(Attr::Combine));
  g.body = around(nest, {store_stmt(reader.output(result, Role::InOut), at, value, combine)});
  steps[1].args = reader.args();
  return steps;
}

}  // namespace weft::loop
