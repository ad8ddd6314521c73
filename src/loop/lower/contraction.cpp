// Dots, sums of dots, convolutions and window reductions, each with the elementwise chain that follows it.
#include <fmt/format.h>

#include <algorithm>

#include "loop/words.h"
#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

ValueId add_scratch(const EmitContext& context, DType dtype, Shape shape) {
  context.scratch.push_back({dtype, std::move(shape)});
  return scratch_arg(static_cast<int>(context.scratch.size()) - 1);
}

Nest make_nest(Group& group, LoopKind kind, const Shape& shape) {
  Nest nest;
  for (const Dim& extent : shape) {
    if (extent.is(1)) {
      nest.at.push_back(group.constant_i64(0));
      continue;
    }
    nest.loops.push_back(group.add_loop(kind, extent));
    nest.at.push_back(group.index(nest.loops.back()));
  }
  return nest;
}

std::vector<Stmt> around(const Nest& nest, std::vector<Stmt> body) {
  for (std::size_t k = nest.loops.size(); k-- > 0;) {
    Stmt loop = loop_stmt(nest.loops[k], std::move(body));
    body.clear();
    body.push_back(std::move(loop));
  }
  return body;
}

WindowIndex window_index(Reader& reader, ExprId out, ExprId in_window, std::int64_t stride, std::int64_t dilation,
                         std::int64_t base_dilation, const Dim& lo, const Dim& hi, const Dim& extent) {
  Group& g = reader.group();
  ExprId index = g.iadd(g.imul(out, g.constant_i64(stride)), g.imul(in_window, g.constant_i64(dilation)));
  index = g.isub(index, g.size(lo));
  bool padded = !lo.is(0) || !hi.is(0);
  if (base_dilation == 1) return {index, padded ? reader.in_range(index, extent) : -1};
  ExprId base = g.constant_i64(base_dilation), zero = g.constant_i64(0);
  ExprId on_grid = g.scalar(ScalarOp::Eq, DType::Bool, {g.imod(index, base), zero});
  ExprId element = g.ifloordiv(index, base);
  return {element, reader.both(on_grid, reader.in_range(element, extent))};
}

namespace {

// What the seed sums (or maximises) over, and one term of it.
struct Term {
  Nest reduce;
  ExprId value = -1;
  Combine combine = Combine::Sum;
  DType dtype = DType::F32;
  bool pairs = false;  // of bf16
};

// i8 and narrower products are summed in the result's dtype, floats in at least f32.
DType accumulator(const graph::Graph& g, const Node& node) {
  return compute_dtype(g.type(node.results[0]).dtype);
}

ExprId product(Group& g, DType t, ExprId a, ExprId b) {
  return g.scalar(ScalarOp::Mul, t, {g.cast(a, t), g.cast(b, t)});
}

// Steps that are read in one word, of a sum over `depth` of them. 0: one by one.
int word_of(const EmitContext& c, const Node& node, const Dim& depth) {
  const auto& g = c.graph;
  const DType sum = compute_dtype(g.type(node.results[0]).dtype);
  const int steps = steps_in_word(g.type(node.operands[0]).dtype, g.type(node.operands[1]).dtype, sum);
  if (steps == 0 || !depth.is_const() || depth.value() == 0 || depth.value() % steps != 0) return 0;
  const bool weights = g.constant(node.operands[0]) || g.constant(node.operands[1]);
  return steps == 2 && !(c.pairs && weights) ? 0 : steps;
}

// The same of a term that joins the loops of an equal sum, which has one more where it is in words.
int word_of(const graph::Graph& g, const Node& node, const Nest& joined, std::size_t plain) {
  if (joined.at.size() <= plain) return 0;
  return steps_in_word(g.type(node.operands[0]).dtype, g.type(node.operands[1]).dtype, accumulator(g, node));
}

// `steps`: the loops of an equal sum that the term joins.
Term dot_term(const EmitContext& c, Reader& r, const Node& node, const std::vector<ExprId>& at, const Nest* steps = nullptr) {
  const auto& g = r.graph();
  const auto& lb = node.attrs.ints(Attr::LhsBatch);
  const auto& rb = node.attrs.ints(Attr::RhsBatch);
  const auto& lc = node.attrs.ints(Attr::LhsContract);
  const auto& rc = node.attrs.ints(Attr::RhsContract);
  const Shape& lhs = g.type(node.operands[0]).shape;
  const Shape& rhs = g.type(node.operands[1]).shape;
  Term term;
  term.dtype = accumulator(g, node);
  Shape contracted;
  for (std::int64_t axis : lc) contracted.push_back(lhs[axis]);
  int word = lc.empty() ? 0 : word_of(c, node, contracted.back());
  if (contracted.empty() || contracted.back().is(word)) word = 0;
  if (steps) word = word_of(g, node, *steps, lc.size());
  if (word > 0) {
    contracted.back() = floor_div(contracted.back(), Dim(word));
    contracted.push_back(word);
  }
  term.reduce = steps ? *steps : make_nest(r.group(), LoopKind::Reduce, contracted);
  std::vector<ExprId> l(lhs.size(), -1), q(rhs.size(), -1);
  for (std::size_t k = 0; k < lb.size(); ++k) l[lb[k]] = q[rb[k]] = at[k];
  for (std::size_t k = 0; k < lc.size(); ++k) l[lc[k]] = q[rc[k]] = term.reduce.at[k];
  std::size_t next = lb.size();
  for (ExprId& e : l) e = e < 0 ? at[next++] : e;
  for (ExprId& e : q) e = e < 0 ? at[next++] : e;
  const auto read = [&](int side, std::int64_t last, std::vector<ExprId> coordinates) {
    if (word == 0) return r.read(node.operands[side], coordinates);
    return r.read_apart(node.operands[side], static_cast<std::size_t>(last), word, std::move(coordinates), term.reduce.at.back());
  };
  const ExprId a = read(0, lc.empty() ? 0 : lc.back(), std::move(l)), b = read(1, rc.empty() ? 0 : rc.back(), std::move(q));
  term.pairs = word == 2;
  term.value = product(r.group(), term.dtype, a, b);
  return term;
}

Term conv_term(const EmitContext& c, Reader& r, const Node& node, const std::vector<ExprId>& at, const Nest* joined = nullptr) {
  const auto& g = r.graph();
  Group& group = r.group();
  bool last = node.attrs.flag(Attr::ChannelsLast);
  const Shape& x = g.type(node.operands[0]).shape;
  const Shape& w = g.type(node.operands[1]).shape;
  std::size_t spatial = x.size() - 2;
  std::size_t x_channel = last ? x.size() - 1 : 1, x_space = last ? 1 : 2;
  std::size_t w_out = last ? w.size() - 1 : 0, w_in = last ? w.size() - 2 : 1, w_space = last ? 0 : 2;
  Term term;
  term.dtype = accumulator(g, node);
  // Channels innermost where they are contiguous.
  Shape reduced(w.begin() + w_space, w.begin() + w_space + spatial);
  reduced.insert(last ? reduced.end() : reduced.begin(), w[w_in]);
  const int steps = joined ? word_of(g, node, *joined, spatial + 1) : last ? word_of(c, node, w[w_in]) : 0;
  if (steps > 0) {
    reduced.back() = floor_div(reduced.back(), Dim(steps));
    reduced.push_back(steps);
  }
  term.reduce = joined ? *joined : make_nest(group, LoopKind::Reduce, reduced);
  const ExprId word = steps > 0 ? term.reduce.at[spatial] : -1, within = steps > 0 ? term.reduce.at.back() : -1;
  ExprId channel = steps > 0 ? group.iadd(group.imul(word, group.constant_i64(steps)), within)
                   : last    ? term.reduce.at.back()
                             : term.reduce.at.front();
  const ExprId* window = term.reduce.at.data() + (last ? 0 : 1);

  std::int64_t groups = node.attrs.integer(Attr::Groups);
  ExprId out_channel = at[last ? at.size() - 1 : 1];
  ExprId in_channel = channel;
  if (groups != 1) {
    ExprId per_group = group.size(floor_div(w[w_out], Dim(groups)));
    ExprId which = group.ifloordiv(out_channel, per_group);
    in_channel = group.iadd(group.imul(which, group.size(w[w_in])), channel);
  }
  std::vector<ExprId> x_at(x.size()), w_at(w.size());
  x_at[0] = at[0];
  x_at[x_channel] = in_channel;
  w_at[w_out] = out_channel;
  w_at[w_in] = steps > 0 ? word : channel;
  ExprId inside = -1;
  for (std::size_t d = 0; d < spatial; ++d) {
    WindowIndex i = window_index(r, at[x_space + d], window[d], node.attrs.ints(Attr::Strides)[d],
                                 node.attrs.ints(Attr::Dilations)[d], node.attrs.ints(Attr::BaseDilations)[d],
                                 node.attrs.dims(Attr::Lo)[d], node.attrs.dims(Attr::Hi)[d], x[x_space + d]);
    x_at[x_space + d] = i.index;
    w_at[w_space + d] = window[d];
    inside = r.both(inside, i.inside);
  }
  ExprId x_value = r.read(node.operands[0], x_at, inside);
  // Outside, a plain load gives 0 by itself; what is read through a chain is made 0 by hand. The product stays outermost:
  // that is what a dot is recognised by.
  if (inside >= 0 && group.expr(x_value).op != Op::LoadIf) {
    ExprId zero = group.cast(group.constant_i64(0), group.expr(x_value).dtype);
    x_value = group.scalar(ScalarOp::Select, group.expr(x_value).dtype, {inside, x_value, zero});
  }
  const ExprId w_value = steps > 0 ? r.read_apart(node.operands[1], w_in, steps, w_at, within) : r.read(node.operands[1], w_at);
  term.pairs = steps == 2;
  term.value = product(group, term.dtype, x_value, w_value);
  return term;
}

Term window_term(Reader& r, const Node& node, const std::vector<ExprId>& at) {
  const auto& g = r.graph();
  Group& group = r.group();
  const Shape& x = g.type(node.operands[0]).shape;
  const auto& window = node.attrs.ints(Attr::Window);
  Term term;
  term.dtype = accumulator(g, node);
  term.combine = node.op == GOp::WindowSum ? Combine::Sum : Combine::Max;
  term.reduce = make_nest(group, LoopKind::Reduce, Shape(window.begin(), window.end()));
  std::vector<ExprId> x_at(x.size());
  ExprId inside = -1;
  for (std::size_t d = 0; d < x.size(); ++d) {
    WindowIndex i = window_index(r, at[d], term.reduce.at[d], node.attrs.ints(Attr::Strides)[d],
                                 node.attrs.ints(Attr::Dilations)[d], 1, node.attrs.dims(Attr::Lo)[d],
                                 node.attrs.dims(Attr::Hi)[d], x[d]);
    x_at[d] = i.index;
    inside = r.both(inside, i.inside);
  }
  term.value = r.read(node.operands[0], x_at, inside);
  if (inside >= 0) {
    Scalar neutral = identity(term.combine, r.graph().type(node.results[0]).dtype);
    ExprId outside = is_float(term.dtype) ? group.constant(term.dtype, neutral.f) : group.constant_i64(neutral.i, term.dtype);
    term.value = group.scalar(ScalarOp::Select, term.dtype, {inside, term.value, outside});
  }
  return term;
}

}  // namespace

namespace {

// The elements that padding adds, axis by axis: what lies before and after the value, within it along earlier axes.
Step emit_border(const EmitContext& context, const Node& pad) {
  const auto& g = context.graph;
  const ValueId result = pad.results[0];
  const Shape& inner = g.type(pad.operands[0]).shape;
  const Shape& full = g.type(result).shape;
  const Shape &lo = pad.attrs.dims(Attr::Lo), &hi = pad.attrs.dims(Attr::Hi);
  Step step;
  Group& group = step.group;
  group.name = "border";
  Reader reader(g, context.stored, {result}, group);
  reader.note(pad);
  const ParamId out = reader.output(result, Role::InOut);
  Shape extents = full;
  Shape starts(full.size(), Dim(0));
  for (std::size_t d = 0; d < full.size(); ++d) {
    for (const bool after : {false, true}) {
      const Dim& width = after ? hi[d] : lo[d];
      if (width.is(0)) continue;
      extents[d] = width;
      starts[d] = after ? lo[d] + inner[d] : Dim(0);
      const Nest nest = make_nest(group, LoopKind::Parallel, extents);
      std::vector<ExprId> at;
      for (std::size_t k = 0; k < full.size(); ++k) at.push_back(group.iadd(nest.at[k], group.size(starts[k])));
      const ExprId fill = reader.to_storage(result, reader.read(pad.operands[1], {}));
      for (Stmt& s : around(nest, {store_stmt(out, at, fill)})) group.body.push_back(std::move(s));
    }
    extents[d] = inner[d];
    starts[d] = lo[d];
  }
  step.args = reader.args();
  return step;
}

}  // namespace

std::vector<Stmt> store_outputs(Reader& reader, const Unit& unit, const std::vector<ExprId>& at) {
  Group& group = reader.group();
  std::vector<Stmt> stores;
  for (ValueId v : unit.outputs) stores.push_back(store_stmt(reader.output(v), at, reader.to_storage(v, reader.read(v, at))));
  for (graph::NodeId p : unit.pads) {
    const Node& pad = reader.graph().node(p);
    reader.note(pad);
    const ValueId v = pad.results[0];
    const ExprId value = reader.to_storage(v, reader.read(pad.operands[0], at));
    std::vector<ExprId> inner = at;
    for (std::size_t d = 0; d < inner.size(); ++d) inner[d] = group.iadd(inner[d], group.size(pad.attrs.dims(Attr::Lo)[d]));
    stores.push_back(store_stmt(reader.output(v, Role::InOut), inner, value));
  }
  return stores;
}

std::vector<Step> emit_contraction(const EmitContext& context, const Unit& unit) {
  const auto& g = context.graph;
  const Node& seed = g.node(unit.seed);
  std::vector<Step> steps;
  for (graph::NodeId pad : unit.pads) steps.push_back(emit_border(context, g.node(pad)));
  if (seed.op == GOp::ConvWinograd) {
    for (Step& s : emit_winograd(context, unit)) steps.push_back(std::move(s));
    return steps;
  }
  Step step;
  Group& group = step.group;
  group.name = info(seed.op).name;
  Reader reader(g, context.stored, unit.outputs, group);
  reader.note(seed);
  Nest space = make_nest(group, LoopKind::Parallel, g.type(seed.results[0]).shape);
  Term term = seed.op == GOp::Dot    ? dot_term(context, reader, seed, space.at)
              : seed.op == GOp::Conv ? conv_term(context, reader, seed, space.at)
                                     : window_term(reader, seed, space.at);
  if (term.pairs) group.name += "_bf16";
  LocalId sum = group.add_local(term.dtype);
  Scalar start = identity(term.combine, g.type(seed.results[0]).dtype);
  ExprId init = is_float(term.dtype) ? group.constant(term.dtype, start.f) : group.constant_i64(start.i, term.dtype);
  std::vector<Stmt> updates{update_stmt(sum, term.combine, term.value)};
  for (std::size_t k = 1; k < unit.sum.dots.size(); ++k) {
    const Node& more = g.node(unit.sum.dots[k]);
    reader.note(more);
    const Term next = more.op == GOp::Conv ? conv_term(context, reader, more, space.at, &term.reduce) : dot_term(context, reader, more, space.at, &term.reduce);
    updates.push_back(update_stmt(sum, term.combine, next.value));
  }
  for (graph::NodeId add : unit.sum.adds) reader.note(g.node(add));
  std::vector<Stmt> body{local_stmt(sum, init)};
  for (Stmt& s : around(term.reduce, std::move(updates))) body.push_back(std::move(s));
  reader.bind(unit.sum.dots.empty() ? seed.results[0] : unit.sum.total, space.at, group.local(sum));
  for (Stmt& s : store_outputs(reader, unit, space.at)) body.push_back(std::move(s));
  group.body = around(space, std::move(body));
  step.args = reader.args();
  steps.push_back(std::move(step));
  return steps;
}

}  // namespace weft::loop
