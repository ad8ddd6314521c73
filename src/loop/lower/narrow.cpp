#include "loop/lower/narrow.h"

#include <cmath>
#include <limits>

#include "base/float_format.h"
#include "loop/lower/complex.h"

namespace weft::loop {

namespace {

// Bits of a float of 32 or 64 bits, as an unsigned integer of its width.
struct Bits {
  Bits(Group& group, DType real)
      : g(group),
        f(real),
        t(real == DType::F64 ? DType::U64 : DType::U32),
        width(bits(real)),
        mantissa(real == DType::F64 ? 52 : 23),
        bias(real == DType::F64 ? 1023 : 127) {}

  ExprId number(std::int64_t v) const { return g.constant_i64(v, t); }
  ExprId op(ScalarOp o, ExprId a, ExprId b) const { return g.scalar(o, t, {a, b}); }
  ExprId by(ScalarOp o, ExprId a, std::int64_t b) const { return op(o, a, number(b)); }
  ExprId select(ExprId c, ExprId a, ExprId b) const { return g.scalar(ScalarOp::Select, t, {c, a, b}); }
  ExprId is(ScalarOp o, ExprId a, std::int64_t b) const { return g.scalar(o, DType::Bool, {a, number(b)}); }
  ExprId of(ExprId real) const { return g.scalar(ScalarOp::Bitcast, t, {real}); }
  ExprId real(ExprId raw) const { return g.scalar(ScalarOp::Bitcast, f, {raw}); }

  Group& g;
  DType f, t;
  int width, mantissa, bias;
};

ExprId is_nan(Group& g, ExprId x) { return g.scalar(ScalarOp::IsNan, DType::Bool, {x}); }

// A power of two without sign: the code is f32's biased exponent, but 0 is 2^-127 and 255 is NaN.
ExprId decode_e8m0(Group& g, ExprId code) {
  const Bits u(g, DType::F32);
  constexpr std::int64_t kLeast = 1 << 22;  // 2^-127, a subnormal
  ExprId raw = u.select(u.is(ScalarOp::Eq, code, 0), u.number(kLeast), u.by(ScalarOp::Shl, code, 23));
  ExprId nan = g.constant(DType::F32, std::numeric_limits<double>::quiet_NaN());
  return g.scalar(ScalarOp::Select, DType::F32, {u.is(ScalarOp::Eq, code, 255), nan, u.real(raw)});
}

// From f64, where every power is a normal number.
ExprId encode_e8m0(Group& g, ExprId x, bool saturate) {
  const Bits u(g, DType::F64);
  constexpr std::int64_t kHalf = std::int64_t{1} << 51, kRebias = 1023 - 127;
  const std::int64_t over = saturate ? 254 : 255;
  ExprId magnitude = u.by(ScalarOp::And, u.of(x), INT64_MAX);
  ExprId exponent = u.by(ScalarOp::Shr, u.by(ScalarOp::Add, magnitude, kHalf), 52);
  ExprId code = u.by(ScalarOp::Sub, u.by(ScalarOp::Max, exponent, kRebias), kRebias);
  code = u.select(u.is(ScalarOp::Gt, code, 254), u.number(over), code);
  ExprId bad = g.scalar(ScalarOp::Or, DType::Bool,
                        {is_nan(g, x), g.scalar(ScalarOp::Lt, DType::Bool, {x, g.constant(DType::F64, 0)})});
  return u.select(bad, u.number(255), code);
}

// The bits, moved to f32's place, are the value up to a power of two; subnormal numbers included.
ExprId decode_float(Group& g, const FloatFormat& f, ExprId code) {
  const Bits u(g, DType::F32);
  ExprId m = u.by(ScalarOp::And, code, static_cast<std::int64_t>(f.magnitude_mask()));
  ExprId scale = g.constant(u.f, std::ldexp(1.0, u.bias - f.bias));
  ExprId magnitude = g.scalar(ScalarOp::Mul, u.f, {u.real(u.by(ScalarOp::Shl, m, u.mantissa - f.mantissa_bits)), scale});
  ExprId sign = u.by(ScalarOp::Shl, u.by(ScalarOp::Shr, code, f.sign_shift()), 31);
  ExprId raw = u.of(magnitude);
  const std::int64_t nan = 0x7fc00000, infinity = 0x7f800000;
  const auto special = [&](ExprId x, std::int64_t when, std::int64_t then) {
    raw = u.select(u.is(ScalarOp::Eq, x, when), u.number(then), raw);
  };
  switch (f.special) {
    case FloatSpecial::Ieee:
      raw = u.select(u.is(ScalarOp::Gt, m, static_cast<std::int64_t>(f.infinity())), u.number(nan), raw);
      special(m, static_cast<std::int64_t>(f.infinity()), infinity);
      break;
    case FloatSpecial::NanTop:
      special(m, static_cast<std::int64_t>(f.nan()), nan);
      break;
    case FloatSpecial::NanNegZero:
      special(code, static_cast<std::int64_t>(f.nan()), nan);
      break;
    case FloatSpecial::None:
      break;
  }
  return u.real(u.op(ScalarOp::Or, raw, sign));
}

// Rounds to nearest even: normal results by adding to the bits, subnormal ones by adding a number whose last place is
// theirs. Either way a carry runs into the exponent, as it should.
ExprId encode_float(Group& g, const FloatFormat& f, ExprId x, bool saturate) {
  const Bits u(g, g.expr(x).dtype);
  const int shift = u.mantissa - f.mantissa_bits;
  ExprId raw = u.of(x);
  ExprId sign = u.by(ScalarOp::Shl, u.by(ScalarOp::Shr, raw, u.width - 1), f.sign_shift());
  ExprId m = u.by(ScalarOp::And, raw, static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - u.width)));
  ExprId even = u.by(ScalarOp::And, u.by(ScalarOp::Shr, m, shift), 1);
  ExprId rounded = u.op(ScalarOp::Add, u.by(ScalarOp::Add, m, (std::int64_t{1} << (shift - 1)) - 1), even);
  ExprId normal = u.by(ScalarOp::Sub, u.by(ScalarOp::Shr, rounded, shift),
                       static_cast<std::int64_t>(u.bias - f.bias) << f.mantissa_bits);
  ExprId magic = g.constant(u.f, std::ldexp(1.0, shift + 1 - f.bias));
  ExprId sum = u.of(g.scalar(ScalarOp::Add, u.f, {u.real(m), magic}));
  ExprId subnormal = u.op(ScalarOp::Sub, sum, u.of(magic));
  ExprId small = g.scalar(ScalarOp::Lt, DType::Bool, {u.real(m), g.constant(u.f, std::ldexp(1.0, 1 - f.bias))});
  ExprId code = u.select(small, subnormal, normal);

  const auto nan = static_cast<std::int64_t>(f.nan()), most = static_cast<std::int64_t>(f.max_finite());
  const bool signed_nan = f.special == FloatSpecial::Ieee || f.special == FloatSpecial::NanTop;
  ExprId with_sign = u.op(ScalarOp::Or, code, sign);
  if (f.special == FloatSpecial::NanNegZero) {
    with_sign = u.select(u.is(ScalarOp::Eq, code, 0), u.number(0), with_sign);
  }
  ExprId over = u.by(ScalarOp::Or, sign, most);
  if (!saturate && f.special == FloatSpecial::Ieee) over = u.by(ScalarOp::Or, sign, static_cast<std::int64_t>(f.infinity()));
  if (!saturate && f.special == FloatSpecial::NanTop) over = u.by(ScalarOp::Or, sign, nan);
  if (!saturate && f.special == FloatSpecial::NanNegZero) over = u.number(nan);
  ExprId finite = u.select(u.is(ScalarOp::Gt, code, most), over, with_sign);
  ExprId not_a_number = signed_nan ? u.by(ScalarOp::Or, sign, nan) : u.number(nan);
  return u.select(is_nan(g, x), not_a_number, finite);
}

// A number as f32 or f64 from which one rounding gives the narrow float.
ExprId as_real(Group& g, DType t, ExprId x) {
  const DType from = g.expr(x).dtype;
  if (is_float(from)) return t == DType::F8E8M0 ? g.cast(x, DType::F64) : x;
  if (bits(from) == 64) {  // to 53 digits, downwards: only a power of two and a half is a tie
    const std::int64_t big = std::int64_t{1} << 53;
    ExprId large = g.scalar(ScalarOp::Ge, DType::Bool, {x, g.constant_i64(big, from)});
    ExprId cut = g.scalar(ScalarOp::And, from, {x, g.constant_i64(~std::int64_t{0x7ff}, from)});
    x = g.scalar(ScalarOp::Select, from, {large, cut, x});
  }
  return g.cast(x, DType::F64);
}

}  // namespace

Shape packed_shape(DType t, const Shape& shape) {
  const Dim per_byte = 8 / bits(t);
  if (shape.empty() || !mod(shape.back(), per_byte).is(0)) return {ceil_div(product(shape), per_byte)};
  Shape bytes = shape;
  bytes.back() = floor_div(shape.back(), per_byte);
  return bytes;
}

PackedPlace packed_place(Group& g, DType t, const Shape& shape, const std::vector<ExprId>& at) {
  const Dim per_byte = 8 / bits(t);
  ExprId within = g.constant_i64(0);
  PackedPlace place;
  if (!shape.empty() && mod(shape.back(), per_byte).is(0)) {
    place.at.assign(at.begin(), at.end() - 1);
    within = at.back();
  } else {
    for (std::size_t d = 0; d < shape.size(); ++d) within = g.iadd(g.imul(within, g.size(shape[d])), at[d]);
  }
  place.at.push_back(g.ifloordiv(within, g.size(per_byte)));
  place.part = g.imod(within, g.size(per_byte));
  return place;
}

bool is_narrow(DType t) { return is_float(t) ? bits(t) < 16 : is_int(t) && bits(t) < 8; }

DType compute_dtype(DType t) {
  if (is_float(t) && bits(t) < 32) return DType::F32;
  if (is_int(t) && bits(t) < 8) return is_signed_int(t) ? DType::I8 : DType::U8;
  return is_complex(t) ? part_dtype(t) : t;
}

DType storage_dtype(DType t) { return is_narrow(t) ? DType::U8 : is_complex(t) ? part_dtype(t) : t; }

ExprId decode_narrow(Group& g, DType t, ExprId code) {
  if (!is_float(t)) return wrap_packed(g, t, g.cast(code, compute_dtype(t)));
  ExprId wide = g.cast(code, DType::U32);
  return t == DType::F8E8M0 ? decode_e8m0(g, wide) : decode_float(g, *float_format(t), wide);
}

ExprId encode_narrow(Group& g, DType t, ExprId value, bool saturate) {
  if (!is_float(t)) {
    ExprId mask = g.constant_i64((1 << bits(t)) - 1, DType::U8);
    return g.scalar(ScalarOp::And, DType::U8, {g.cast(value, DType::U8), mask});
  }
  ExprId x = as_real(g, t, value);
  ExprId code = t == DType::F8E8M0 ? encode_e8m0(g, x, saturate) : encode_float(g, *float_format(t), x, saturate);
  return g.cast(code, DType::U8);
}

ExprId wrap_packed(Group& g, DType t, ExprId value) {
  const DType wide = compute_dtype(t);
  if (is_unsigned_int(t)) {
    return g.scalar(ScalarOp::And, wide, {value, g.constant_i64((1 << bits(t)) - 1, wide)});
  }
  ExprId unused = g.constant_i64(8 - bits(t), wide);
  return g.scalar(ScalarOp::Shr, wide, {g.scalar(ScalarOp::Shl, wide, {value, unused}), unused});
}

ExprId to_packed(Group& g, DType t, ExprId value) {
  const bool real = is_float(g.expr(value).dtype);
  const DType wide = compute_dtype(t);
  ExprId x = g.cast(value, wide);
  if (!real) return wrap_packed(g, t, x);
  const int digits = bits(t) - (is_signed_int(t) ? 1 : 0);
  const std::int64_t most = (1 << digits) - 1, least = is_signed_int(t) ? -most - 1 : 0;
  x = g.scalar(ScalarOp::Min, wide, {x, g.constant_i64(most, wide)});
  return g.scalar(ScalarOp::Max, wide, {x, g.constant_i64(least, wide)});
}

}  // namespace weft::loop
