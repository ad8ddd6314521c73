// x^y = exp(y log|x|) with the logarithm and the product as sums of two f64. f32 takes the same way
// through f64.
#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

Val magnitude(Val x, Val y) {
  const Val a = abs(x);
  const Split l = log_split(a);
  const Val product = y * l.high;
  const Val error = fma(y, l.high, -product) + y * l.low;
  const Val low = select(abs(product) < 1e3, error, 0.0);
  const Val power = exp_scaled(product, 0, &low);
  return select((a == 1.0) & (abs(y) == kInf), 1.0, power);
}

Val wide_pow(Val x, Val y) {
  const Val whole = trunc(y) == y;
  const Val half = y * 0.5;
  const Val odd = whole & (trunc(half) != half);
  const Val negative = bits_of(x) < 0.0;
  Val r = magnitude(x, y);
  r = select(negative & odd, -r, r);
  const Val undefined = (x < 0.0) & (x > -kInf) & !whole;
  r = select(undefined, std::numeric_limits<double>::quiet_NaN(), r);
  return select((y == 0.0) | (x == 1.0), 1.0, r);
}

}  // namespace

Val pow(Val x, Val y) {
  if (x.wide()) return wide_pow(x, y);
  return wide_pow(x.cast(DType::F64), y.cast(DType::F64)).cast(x.dtype());
}

Val integer_pow(Val x, Val y) {
  Builder& b = *x.b;
  const ValueId zero = b.constant_i64(0), one = b.constant_i64(1);
  const auto loop =
      b.begin_for(zero, b.constant_i64(bits(x.dtype())), one, {x.whole(1).id, x.id, y.id});
  const Val result{&b, loop.carried[0]}, square{&b, loop.carried[1]}, rest{&b, loop.carried[2]};
  const Val taken = select((rest & 1.0) != 0.0, result * square, result);
  const auto last = b.end_for({taken.id, (square * square).id, (rest >> 1.0).id});
  const Val power{&b, last[0]};
  if (!is_signed_int(x.dtype())) return power;
  // 1 / x^n, truncated: of 1 and -1 only it is not 0.
  const Val sign = select((y & 1.0) == 0.0, 1.0, x);
  const Val inverse = select(x == 1.0, x, select(x == -1.0, sign, 0.0));
  return select(y < 0.0, inverse, power);
}

}  // namespace weft::kernel::math
