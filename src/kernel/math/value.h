// Expressions over a kernel under construction: what the families of math/ are written in. All
// operands of an operator have one type; a double stands for a constant of it in every lane.
#pragma once

#include <initializer_list>
#include <limits>

#include "kernel/kernel.h"

namespace weft::kernel::math {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Val {
  Builder* b;
  ValueId id;

  Type type() const { return b->type(id); }
  DType dtype() const { return type().dtype; }
  bool wide() const { return bits(dtype()) == 64; }
  Val apply(ScalarOp op) const { return {b, b->scalar(op, {id})}; }
  Val apply(ScalarOp op, Val y) const { return {b, b->scalar(op, {id, y.id})}; }
  Val like(double c) const { return {b, b->constant_like(id, c)}; }
  Val whole(std::int64_t c) const;  // an integer constant, exact
  Val cast(DType t) const { return {b, b->cast(id, t)}; }
  Val bitcast(DType t) const { return {b, b->bitcast(id, t)}; }
};

inline Val operator-(Val x) { return x.apply(ScalarOp::Neg); }
inline Val operator!(Val x) { return x.apply(ScalarOp::Not); }
#define WEFT_OPERATOR(symbol, op)                                                          \
  inline Val operator symbol(Val x, Val y) { return x.apply(ScalarOp::op, y); }            \
  inline Val operator symbol(Val x, double y) { return x.apply(ScalarOp::op, x.like(y)); } \
  inline Val operator symbol(double x, Val y) { return y.like(x).apply(ScalarOp::op, y); }
WEFT_OPERATOR(+, Add)
WEFT_OPERATOR(-, Sub)
WEFT_OPERATOR(*, Mul)
WEFT_OPERATOR(/, Div)
WEFT_OPERATOR(<, Lt)
WEFT_OPERATOR(<=, Le)
WEFT_OPERATOR(>, Gt)
WEFT_OPERATOR(>=, Ge)
WEFT_OPERATOR(==, Eq)
WEFT_OPERATOR(!=, Ne)
WEFT_OPERATOR(&, And)
WEFT_OPERATOR(|, Or)
WEFT_OPERATOR(^, Xor)
WEFT_OPERATOR(<<, Shl)
WEFT_OPERATOR(>>, Shr)
#undef WEFT_OPERATOR

inline Val abs(Val x) { return x.apply(ScalarOp::Abs); }
inline Val sqrt(Val x) { return x.apply(ScalarOp::Sqrt); }
inline Val trunc(Val x) { return x.apply(ScalarOp::Trunc); }
inline Val fma(Val x, Val y, Val z) {
  return {x.b, x.b->scalar(ScalarOp::Fma, {x.id, y.id, z.id})};
}
inline Val fma(Val x, double y, Val z) { return fma(x, x.like(y), z); }
inline Val fma(Val x, Val y, double z) { return fma(x, y, x.like(z)); }
inline Val fma(Val x, double y, double z) { return fma(x, x.like(y), x.like(z)); }
inline Val select(Val c, Val x, Val y) { return {x.b, x.b->select(c.id, x.id, y.id)}; }
inline Val select(Val c, Val x, double y) { return select(c, x, x.like(y)); }
inline Val select(Val c, double x, Val y) { return select(c, y.like(x), y); }

// As comparisons see it: a NaN in x stays.
inline Val at_least(Val x, double low) { return select(x < low, low, x); }
inline Val at_most(Val x, double high) { return select(x > high, high, x); }

Val bits_of(Val x);                     // as an integer of equal width
Val float_of(Val bits);                 // and back
Val copysign(Val magnitude, Val sign);  // magnitude without sign
Val ldexp(Val x, Val n);                // n: integer lanes

// c0 + c1 x + c2 x^2 ..., the short list for f32, the long one for f64.
using Coefficients = std::initializer_list<double>;
Val polynomial(Val x, Coefficients f32, Coefficients f64);
// One of two constants, by the width of x.
inline double by_width(Val x, double f32, double f64) { return x.wide() ? f64 : f32; }

}  // namespace weft::kernel::math
