// A convolution in Winograd's form as three kernels: tiles of the input to points, a product per point, points to tiles
// of the result with the elementwise chain that follows it. An infinity or NaN among the points would spread over its
// tile: the last kernel checks that there is none.
#include <limits>

#include "graph/winograd.h"
#include "loop/lower/emit.h"
#include "runtime/kernel_abi.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;
using graph::Winograd;

namespace {

constexpr DType kType = DType::F32;

struct Problem {
  const Node& node;
  const Winograd& form;
  Shape x, y;              // [N, H, W, C] and [N, H', W', K]
  Shape points_in;         // [points, N, tiles down, tiles across, C]
  Shape points_out;        // the same with K
  ValueId in = 0, out = 0;  // their scratch

  Problem(const EmitContext& context, const Node& n) : node(n), form(*graph::winograd(n.attrs.integer(Attr::Tile))) {
    x = context.graph.type(n.operands[0]).shape;
    y = context.graph.type(n.results[0]).shape;
    const Dim m(form.m);
    points_in = {Dim(form.points()), x[0], ceil_div(y[1], m), ceil_div(y[2], m), x[3]};
    points_out = points_in;
    points_out[4] = y[3];
    in = add_scratch(context, kType, points_in);
    out = add_scratch(context, kType, points_out);
  }
};

// One kernel over tiles (n, down, across) and the channels after them.
struct Kernel {
  Kernel(const EmitContext& context, const Problem& problem, const std::vector<ValueId>& computed, const char* name)
      : reader(context.graph, context.stored, computed, step.group), g(step.group) {
    g.name = name;
    reader.note(problem.node);
  }
  Step finish(const Nest& nest, std::vector<Stmt> body) {
    g.body = around(nest, std::move(body));
    step.args = reader.args();
    return std::move(step);
  }
  // base * m + offset
  ExprId at(ExprId tile, int m, std::int64_t offset) {
    return g.iadd(g.imul(tile, g.constant_i64(m)), g.constant_i64(offset));
  }

  Step step;
  Reader reader;
  Group& g;
};

using Square = std::vector<ExprId>;  // row-major

// sum over s of factor[s] * x[s * stride]
ExprId combine(Group& g, const double* factors, const ExprId* x, int count, int stride) {
  ExprId sum = -1;
  for (int s = 0; s < count; ++s) {
    const double f = factors[s];
    if (f == 0) continue;
    const ExprId term = x[s * stride];
    if (sum < 0) {
      sum = f == 1 ? term : f == -1 ? g.scalar(ScalarOp::Neg, kType, {term}) : g.scalar(ScalarOp::Mul, kType, {term, g.constant(kType, f)});
    } else if (f == 1 || f == -1) {
      sum = g.scalar(f == 1 ? ScalarOp::Add : ScalarOp::Sub, kType, {sum, term});
    } else {
      sum = g.scalar(ScalarOp::Fma, kType, {term, g.constant(kType, f), sum});
    }
  }
  return sum;
}

// left (rows x size) * x (size x size) * left transposed
Square sandwich(Group& g, const double* left, int rows, int size, const Square& x) {
  Square half, out;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < size; ++c) half.push_back(combine(g, left + r * size, x.data() + c, size, size));
  }
  for (int r = 0; r < rows; ++r) {
    for (int q = 0; q < rows; ++q) out.push_back(combine(g, left + q * size, half.data() + r * size, size, 1));
  }
  return out;
}

// Each number as a local of its own, so that it is computed once.
Square as_locals(Group& g, const Square& x, std::vector<Stmt>& body) {
  Square locals;
  for (ExprId e : x) {
    const LocalId t = g.add_local(kType);
    body.push_back(local_stmt(t, e));
    locals.push_back(g.local(t));
  }
  return locals;
}

Step to_points(const EmitContext& context, const Problem& p) {
  Kernel k(context, p, {}, "winograd_in");
  Group& g = k.g;
  const Nest nest = make_nest(g, LoopKind::Parallel, Shape(p.points_in.begin() + 1, p.points_in.end()));
  const Shape &lo = p.node.attrs.dims(Attr::Lo), &hi = p.node.attrs.dims(Attr::Hi);
  const auto edge = [&](int axis) { return !lo[axis].is(0) || !hi[axis].is(0); };  // tiles reach beyond the input
  Square d;
  for (int i = 0; i < p.form.size; ++i) {
    for (int j = 0; j < p.form.size; ++j) {
      const ExprId row = g.isub(k.at(nest.at[1], p.form.m, i), g.size(lo[0])), col = g.isub(k.at(nest.at[2], p.form.m, j), g.size(lo[1]));
      const ExprId inside = k.reader.both(edge(0) ? k.reader.in_range(row, p.x[1]) : -1, edge(1) ? k.reader.in_range(col, p.x[2]) : -1);
      ExprId value = k.reader.read(p.node.operands[0], {nest.at[0], row, col, nest.at[3]}, inside);
      if (inside >= 0 && g.expr(value).op != Op::LoadIf) value = g.scalar(ScalarOp::Select, kType, {inside, value, g.constant(kType, 0)});
      d.push_back(value);
    }
  }
  std::vector<Stmt> body;
  d = as_locals(g, d, body);
  const Square v = sandwich(g, p.form.bt, p.form.size, p.form.size, d);
  const ParamId out = k.reader.scratch(p.in, kType, p.points_in, Role::Output);
  for (int n = 0; n < p.form.points(); ++n) {
    body.push_back(store_stmt(out, {g.constant_i64(n), nest.at[0], nest.at[1], nest.at[2], nest.at[3]}, v[n]));
  }
  return k.finish(nest, std::move(body));
}

Step products(const EmitContext& context, const Problem& p) {
  Kernel k(context, p, {}, "winograd_dot");
  Group& g = k.g;
  const Nest nest = make_nest(g, LoopKind::Parallel, p.points_out);
  const Nest channels = make_nest(g, LoopKind::Reduce, {p.x[3]});
  const ParamId in = k.reader.scratch(p.in, kType, p.points_in, Role::Input);
  const LocalId sum = g.add_local(kType);
  std::vector<Stmt> body{local_stmt(sum, g.constant(kType, 0))};
  const ExprId left = g.load(in, {nest.at[0], nest.at[1], nest.at[2], nest.at[3], channels.at[0]});
  const ExprId right = k.reader.read(p.node.operands[1], {nest.at[0], channels.at[0], nest.at[4]});
  for (Stmt& s : around(channels, {update_stmt(sum, Combine::Sum, g.scalar(ScalarOp::Mul, kType, {left, right}))})) body.push_back(std::move(s));
  body.push_back(store_stmt(k.reader.scratch(p.out, kType, p.points_out, Role::Output), nest.at, g.local(sum)));
  return k.finish(nest, std::move(body));
}

Step from_points(const EmitContext& context, const Problem& p, const Unit& unit) {
  Kernel k(context, p, unit.outputs, "winograd_out");
  Group& g = k.g;
  const Nest nest = make_nest(g, LoopKind::Parallel, Shape(p.points_out.begin() + 1, p.points_out.end()));
  const ParamId in = k.reader.scratch(p.out, kType, p.points_out, Role::Input);
  Square m;
  for (int n = 0; n < p.form.points(); ++n) m.push_back(g.load(in, {g.constant_i64(n), nest.at[0], nest.at[1], nest.at[2], nest.at[3]}));
  std::vector<Stmt> body;
  m = as_locals(g, m, body);
  Square y = as_locals(g, sandwich(g, p.form.at, p.form.m, p.form.size, m), body);
  ExprId all = y[0];  // not finite when one of them is not
  for (std::size_t n = 1; n < y.size(); ++n) all = g.scalar(ScalarOp::Add, kType, {all, y[n]});
  const ExprId finite = g.scalar(ScalarOp::Lt, DType::Bool,
                                 {g.scalar(ScalarOp::Abs, kType, {all}), g.constant(kType, std::numeric_limits<double>::infinity())});
  y[0] = g.require(y[0], finite, runtime::kNeedsExact);
  for (int r = 0; r < p.form.m; ++r) {
    for (int c = 0; c < p.form.m; ++c) {
      const std::vector<ExprId> at{nest.at[0], k.at(nest.at[1], p.form.m, r), k.at(nest.at[2], p.form.m, c), nest.at[3]};
      k.reader.bind(p.node.results[0], at, y[r * p.form.m + c]);
      for (Stmt& s : store_outputs(k.reader, unit, at)) body.push_back(std::move(s));
    }
  }
  return k.finish(nest, std::move(body));
}

}  // namespace

std::vector<Step> emit_winograd(const EmitContext& context, const Unit& unit) {
  const Problem problem(context, context.graph.node(unit.seed));
  std::vector<Step> steps;
  steps.push_back(to_points(context, problem));
  steps.push_back(products(context, problem));
  steps.push_back(from_points(context, problem, unit));
  return steps;
}

}  // namespace weft::loop
