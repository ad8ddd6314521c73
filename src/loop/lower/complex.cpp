#include "loop/lower/complex.h"

#include <fmt/format.h>

namespace weft::loop {

using GOp = graph::Op;

namespace {

// Products, quotients and absolute values are computed in f64 and round once.
struct Wide {
  Group& g;
  ExprId up(ExprId x) const { return g.cast(x, DType::F64); }
  ExprId op(ScalarOp o, ExprId a, ExprId b) const { return g.scalar(o, DType::F64, {a, b}); }
  ExprId abs(ExprId x) const { return g.scalar(ScalarOp::Abs, DType::F64, {x}); }
  ExprId sum_of_products(ExprId a, ExprId b, ExprId c, ExprId d) const {
    return op(ScalarOp::Add, op(ScalarOp::Mul, a, b), op(ScalarOp::Mul, c, d));
  }
  ExprId difference_of_products(ExprId a, ExprId b, ExprId c, ExprId d) const {
    return op(ScalarOp::Sub, op(ScalarOp::Mul, a, b), op(ScalarOp::Mul, c, d));
  }
  // The larger of the parts, by which both are divided so that squares do not overflow; 1 for zero.
  ExprId scale(ExprId re, ExprId im) const {
    ExprId largest = op(ScalarOp::Max, abs(re), abs(im));
    ExprId zero = g.scalar(ScalarOp::Eq, DType::Bool, {largest, g.constant(DType::F64, 0)});
    return g.scalar(ScalarOp::Select, DType::F64, {zero, g.constant(DType::F64, 1), largest});
  }
};

ExprId product(const Wide& w, Pair a, Pair b, int part) {
  return part == 0 ? w.difference_of_products(a.re, b.re, a.im, b.im) : w.sum_of_products(a.re, b.im, a.im, b.re);
}

ExprId quotient(const Wide& w, Pair a, Pair b, int part) {
  ExprId by = w.scale(b.re, b.im);
  ExprId re = w.op(ScalarOp::Div, b.re, by), im = w.op(ScalarOp::Div, b.im, by);
  ExprId square = w.sum_of_products(re, re, im, im);
  // By zero as C has it: each part by the real zero, an infinity of either sign or NaN.
  ExprId none = w.g.scalar(ScalarOp::Eq, DType::Bool, {w.op(ScalarOp::Max, w.abs(b.re), w.abs(b.im)), w.g.constant(DType::F64, 0)});
  ExprId by_zero = w.op(ScalarOp::Div, part == 0 ? a.re : a.im, b.re);
  ExprId top = part == 0 ? w.sum_of_products(a.re, re, a.im, im) : w.difference_of_products(a.im, re, a.re, im);
  return w.g.scalar(ScalarOp::Select, DType::F64, {none, by_zero, w.op(ScalarOp::Div, w.op(ScalarOp::Div, top, square), by)});
}

ExprId magnitude(const Wide& w, Pair a) {
  ExprId by = w.scale(a.re, a.im);
  ExprId re = w.op(ScalarOp::Div, a.re, by), im = w.op(ScalarOp::Div, a.im, by);
  ExprId root = w.g.scalar(ScalarOp::Sqrt, DType::F64, {w.sum_of_products(re, re, im, im)});
  return w.op(ScalarOp::Mul, root, by);
}

}  // namespace

DType part_dtype(DType t) { return t == DType::C128 ? DType::F64 : DType::F32; }

ExprId complex_op(Group& g, GOp op, DType t, const std::vector<Pair>& x, int part) {
  const DType real = part_dtype(t);
  const auto one = [&](ScalarOp o) {
    std::vector<ExprId> args;
    for (const Pair& p : x) args.push_back(part == 0 ? p.re : p.im);
    return g.scalar(o, real, std::move(args));
  };
  const auto both = [&](ScalarOp o, ScalarOp joined) {
    ExprId re = g.scalar(o, DType::Bool, {x[0].re, x[1].re}), im = g.scalar(o, DType::Bool, {x[0].im, x[1].im});
    return g.scalar(joined, DType::Bool, {re, im});
  };
  const Wide w{g};
  const auto up = [&](const Pair& p) { return Pair{w.up(p.re), w.up(p.im)}; };
  switch (op) {
    case GOp::Neg:
      return one(ScalarOp::Neg);
    case GOp::Add:
      return one(ScalarOp::Add);
    case GOp::Sub:
      return one(ScalarOp::Sub);
    case GOp::Mul:
      return g.cast(product(w, up(x[0]), up(x[1]), part), real);
    case GOp::Div:
      return g.cast(quotient(w, up(x[0]), up(x[1]), part), real);
    case GOp::Abs:
      return part == 0 ? g.cast(magnitude(w, up(x[0])), real) : g.constant(real, 0);
    case GOp::Eq:
      return both(ScalarOp::Eq, ScalarOp::And);
    case GOp::Ne:
      return both(ScalarOp::Ne, ScalarOp::Or);
    default:
      WEFT_CHECK(false, fmt::format("'{}' of complex numbers has no reading", graph::info(op).name));
  }
}

}  // namespace weft::loop
