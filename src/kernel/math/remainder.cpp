#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

// Each step takes the 52 leading bits off the quotient of |x| by |y|, exactly: r - trunc(r / y) y
// has few enough bits for one fma. f32 goes through f64, whose quotients cannot overflow.
Val remainder_of_magnitudes(Val x, Val y) {
  Builder& b = *x.b;
  const bool narrow = !x.wide();
  const Val a = abs(x).cast(DType::F64), d = abs(y).cast(DType::F64);
  Val far = a >= d * 0x1p52;
  far.id = b.reduce(Combine::Or, far.id);
  const ValueId most = b.constant_i64(narrow ? 6 : 42), one = b.constant_i64(1);
  const auto loop = b.begin_for(b.constant_i64(0), b.select(far.id, most, one), one, {a.id});
  const Val r{&b, loop.carried[0]};
  const Val larger = d * 0x1p900, largest = larger * 0x1p900;  // infinite when they cannot matter
  const Val divisor = narrow ? d : select(abs(r) >= largest, largest, select(abs(r) >= larger, larger, d));
  const Val next = fma(-trunc(r / divisor), divisor, r);
  const Val rest{&b, b.end_for({next.id})[0]};
  return select(rest < 0.0, rest + d, rest).cast(x.dtype());
}

}  // namespace

Val fmod(Val x, Val y) {
  const Val r = select(abs(x) < abs(y), abs(x), remainder_of_magnitudes(x, y));
  const Val infinite = abs(y) == __builtin_inf();
  const Val finite = abs(x) < __builtin_inf();
  return select(infinite & finite, x, copysign(abs(r), x));
}

Val mod(Val x, Val y) {
  const Val r = fmod(x, y);
  const Val opposite = (bits_of(r) ^ bits_of(y)) < 0.0;
  const Val zero = copysign(x.like(0), y);
  return select(r == 0.0, zero, select(opposite, r + y, r));
}

Val floor_div(Val x, Val y) { return (x / y).apply(ScalarOp::Floor); }

}  // namespace weft::kernel::math
