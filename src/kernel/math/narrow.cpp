// Floats of 8 bits, by bit arithmetic on codes: the same numbers everywhere, whatever a processor has.
#include <cmath>

#include "base/float_format.h"
#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

struct Wide {
  DType real, raw;
  int bits, mantissa, bias;
};
Wide wide_of(DType t) { return t == DType::F64 ? Wide{t, DType::U64, 64, 52, 1023} : Wide{t, DType::U32, 32, 23, 127}; }

Val by(ScalarOp op, Val x, std::uint64_t n) { return x.apply(op, x.whole(static_cast<std::int64_t>(n))); }
Val equal(Val x, std::uint64_t n) { return by(ScalarOp::Eq, x, n); }
Val choose(Val condition, std::uint64_t n, Val x) { return select(condition, x.whole(static_cast<std::int64_t>(n)), x); }

}  // namespace

bool is_f8(DType t) { return is_float(t) && bits(t) == 8 && float_format(t).has_value(); }

// The bits, moved to f32's place, are the value up to a power of two; subnormal numbers included.
Val decode_f8(Val code, DType from) {
  const FloatFormat f = *float_format(from);
  const Wide w = wide_of(DType::F32);
  const Val wide = code.cast(w.raw), m = by(ScalarOp::And, wide, f.magnitude_mask());
  const Val scaled = by(ScalarOp::Shl, m, static_cast<std::uint64_t>(w.mantissa - f.mantissa_bits)).bitcast(w.real) * std::ldexp(1.0, w.bias - f.bias);
  const Val sign = by(ScalarOp::Shl, by(ScalarOp::Shr, wide, static_cast<std::uint64_t>(f.sign_shift())), 31);
  constexpr std::uint64_t kNan = 0x7fc00000, kInfinity = 0x7f800000;
  Val raw = scaled.bitcast(w.raw);
  if (f.special == FloatSpecial::Ieee) {
    raw = choose(by(ScalarOp::Gt, m, f.infinity()), kNan, raw);
    raw = choose(equal(m, f.infinity()), kInfinity, raw);
  }
  if (f.special == FloatSpecial::NanTop) raw = choose(equal(m, f.nan()), kNan, raw);
  if (f.special == FloatSpecial::NanNegZero) raw = choose(equal(wide, f.nan()), kNan, raw);
  return (raw | sign).bitcast(w.real);
}

// Rounds to nearest even: normal results by adding to the bits, subnormal ones by adding a number whose last place is
// theirs. Either way a carry runs into the exponent, as it should.
Val encode_f8(Val x, DType to) {
  const FloatFormat f = *float_format(to);
  const Wide w = wide_of(x.dtype());
  const auto shift = static_cast<std::uint64_t>(w.mantissa - f.mantissa_bits);
  const Val raw = x.bitcast(w.raw);
  const Val sign = by(ScalarOp::Shl, by(ScalarOp::Shr, raw, static_cast<std::uint64_t>(w.bits - 1)), static_cast<std::uint64_t>(f.sign_shift()));
  const Val m = by(ScalarOp::And, raw, ~std::uint64_t{0} >> (65 - w.bits));
  const Val even = by(ScalarOp::And, by(ScalarOp::Shr, m, shift), 1);
  const Val rounded = by(ScalarOp::Add, m, (std::uint64_t{1} << (shift - 1)) - 1) + even;
  const Val normal = by(ScalarOp::Sub, by(ScalarOp::Shr, rounded, shift), static_cast<std::uint64_t>(w.bias - f.bias) << f.mantissa_bits);
  const Val magic = x.like(std::ldexp(1.0, static_cast<int>(shift) + 1 - f.bias));
  const Val magnitude = m.bitcast(w.real);
  const Val subnormal = (magnitude + magic).bitcast(w.raw) - magic.bitcast(w.raw);
  const Val code = select(magnitude < std::ldexp(1.0, 1 - f.bias), subnormal, normal);
  const bool signed_nan = f.special == FloatSpecial::Ieee || f.special == FloatSpecial::NanTop;
  const Val nan = signed_nan ? by(ScalarOp::Or, sign, f.nan()) : sign.whole(static_cast<std::int64_t>(f.nan()));
  Val finite = code | sign;
  if (f.special == FloatSpecial::NanNegZero) finite = choose(equal(code, 0), 0, finite);
  const Val over = f.special == FloatSpecial::Ieee ? by(ScalarOp::Or, sign, f.infinity()) : nan;
  finite = select(by(ScalarOp::Gt, code, f.max_finite()), over, finite);
  return select(is_nan(x), nan, finite).cast(DType::U8);
}

}  // namespace weft::kernel::math
