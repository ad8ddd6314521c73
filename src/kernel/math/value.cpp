#include "kernel/math/value.h"

namespace weft::kernel::math {

Val Val::whole(std::int64_t c) const {
  const Type t = type();
  return {b, b->splat(b->constant_i64(c, t.dtype), t.rank == 0 ? 0 : t.lanes())};
}

Val bits_of(Val x) { return x.bitcast(x.wide() ? DType::I64 : DType::I32); }
Val float_of(Val bits) { return bits.bitcast(bits.wide() ? DType::F64 : DType::F32); }

Val copysign(Val magnitude, Val sign) {
  const Val s = bits_of(sign);
  const Val mask = s.whole(s.wide() ? INT64_MIN : INT32_MIN);
  return float_of(bits_of(magnitude) | (s & mask));
}

Val ldexp(Val x, Val n) { return {x.b, x.b->ldexp(x.id, n.cast(DType::I32).id)}; }

Val polynomial(Val x, Coefficients f32, Coefficients f64) {
  const Coefficients& c = x.wide() ? f64 : f32;
  const double* last = c.end() - 1;
  Val sum = x.like(*last);
  while (last != c.begin()) sum = fma(sum, x, *--last);
  return sum;
}

}  // namespace weft::kernel::math
