// sin and cos on [-pi/4, pi/4] around the nearest multiple of pi/2. Reduction: parts of pi/2 (Cody and
// Waite) of so few bits that their products are exact, also where fma rounds twice; f32 beyond 8192
// and f64 beyond 2^22 multiply by the bits of 2/pi that matter, as integers (Payne and Hanek), in a
// branch.
#include <array>
#include <vector>

#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

struct ReducedAngle {
  Val r, quadrant;  // integer lanes of x's width
};

ReducedAngle reduce_near(Val x) {
  const double magic = by_width(x, 12582912.0, 6755399441055744.0);
  const Val t = fma(x, 0.6366197723675814, magic);
  const Val n = t - magic;
  Val r = fma(n, -by_width(x, 1.5703125, 1.5707963267341256), x);
  r = fma(n, -by_width(x, 0.0004837512969970703, 6.07710050359346e-11), r);
  r = fma(n, -by_width(x, 7.549533620476723e-08, 2.912732056093356e-20), r);
  if (!x.wide()) r = fma(n, -2.5633440682570896e-12, r);
  return {r, bits_of(t)};
}

// A word of 32 zero bits, then 2/pi.
constexpr std::int64_t kTwoOverPi[] = {
    0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
    0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5,
    0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff,
    0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7,
    0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046,
};

ReducedAngle reduce_far(Val x) {
  const Val raw = bits_of(abs(x)).cast(DType::U64);
  const Val mantissa = (raw & 0x7fffff) | 0x800000;
  const Val position = (raw >> 23) - raw.whole(120);  // of the first bit whose product is below 4
  const Val index = position >> 5, shift = position & 31;
  const auto word = [&](int k) {
    Val w = raw.whole(kTwoOverPi[k]);
    for (int i = 1; i <= 4; ++i) {
      if (k + i < 8) w = select(index == raw.whole(i), raw.whole(kTwoOverPi[k + i]), w);
    }
    return w;
  };
  const Val w[] = {word(0), word(1), word(2), word(3)};
  const auto window = [&](int k) { return (((w[k] << 32) | w[k + 1]) << shift) >> 32; };
  const Val turns =
      ((mantissa * window(0)) << 32) + mantissa * window(1) + ((mantissa * window(2)) >> 32);
  const Val quadrant = (turns + raw.whole(std::int64_t{1} << 61)) >> 62;
  const Val rest = (turns - (quadrant << 62)).cast(DType::I64).cast(DType::F64);
  const Val r = (rest * (1.5707963267948966 * 0x1p-62)).cast(DType::F32);
  const Val q = quadrant.cast(DType::I32);
  const Val negative = x < 0.0;
  const Val valid = abs(x) < __builtin_inf();
  return {select(valid, select(negative, -r, r), __builtin_nan("")), select(negative, -q, q)};
}

// The 192 bits of the table from `position` on, which is not beyond the last of them, by words.
std::array<Val, 6> window_at(Val position) {
  const Val index = position >> 5, shift = position & 31;
  std::vector<Val> w;
  for (const std::int64_t word : kTwoOverPi) w.push_back(position.whole(word));
  for (std::size_t step = 16; step > 0; step /= 2) {  // 7 words from the index on, a bit of it at a time
    const Val moved = (index & static_cast<double>(step)) != 0.0;
    std::vector<Val> next;
    for (std::size_t k = 0; k < step - 1 + 7; ++k) next.push_back(select(moved, w[k + step], w[k]));
    w = std::move(next);
  }
  const auto word = [&](int k) { return (((w[k] << 32) | w[k + 1]) << shift) >> 32; };
  return {word(0), word(1), word(2), word(3), word(4), word(5)};
}

// As reduce_far(), of f64: the mantissa in two words, the product modulo 2^192, of which 128 bits are used.
ReducedAngle reduce_far_wide(Val x) {
  const Val raw = bits_of(abs(x)).cast(DType::U64);
  const Val mask = raw.whole(0xffffffff);
  const Val low = raw & mask, high = ((raw >> 32) & 0xfffff) | 0x100000;
  const std::array<Val, 6> v = window_at((raw >> 52) - raw.whole(1045));
  std::vector<Val> p, q;
  for (const Val& word : v) p.push_back(low * word), q.push_back(high * word);
  Val carry = (p[5] >> 32) + (p[4] & mask) + (q[5] & mask);
  std::vector<Val> words;  // above the lowest two, the lowest first
  for (int k = 3; k >= 0; --k) {
    carry = (carry >> 32) + (p[k] & mask) + (p[k + 1] >> 32) + (q[k + 1] & mask) + (q[k + 2] >> 32);
    words.push_back(carry & mask);
  }
  const Val turns = (words[3] << 32) | words[2], rest_low = (words[1] << 31) | (words[0] >> 1);
  const Val quadrant = (turns + raw.whole(std::int64_t{1} << 61)) >> 62;
  const Val rest = (turns - (quadrant << 62)).cast(DType::I64).cast(DType::F64);
  const Val r = fma(rest_low.cast(DType::I64).cast(DType::F64), 0x1p-63, rest) * (1.5707963267948966 * 0x1p-62);
  const Val q_signed = quadrant.cast(DType::I64);
  const Val negative = x < 0.0;
  const Val valid = abs(x) < __builtin_inf();
  return {select(valid, select(negative, -r, r), __builtin_nan("")), select(negative, -q_signed, q_signed)};
}

ReducedAngle reduce_angle(Val x) {
  const ReducedAngle near = reduce_near(x);
  Builder& b = *x.b;
  const Val far = abs(x) > by_width(x, 8192, 0x1p22);
  b.begin_if(b.reduce(Combine::Or, far.id), {near.r.type(), near.quadrant.type()});
  const ReducedAngle large = x.wide() ? reduce_far_wide(x) : reduce_far(x);
  const Val r = select(far, large.r, near.r), q = select(far, large.quadrant, near.quadrant);
  b.begin_else({r.id, q.id});
  const auto both = b.end_if({near.r.id, near.quadrant.id});
  return {{&b, both[0]}, {&b, both[1]}};
}

struct SinCos {
  Val sin, cos;
};

SinCos small(Val r) {
  const Val z = r * r;
  const Val s = polynomial(z, {-0.16666655242443085, 0.008332177065312862, -0.0001951718149939552},
                           {-0.16666666666666632, 0.008333333333322406, -0.00019841269829802408,
                            2.7557313690312995e-06, -2.505075789370977e-08, 1.589678410372068e-10});
  const Val c =
      polynomial(z, {0.04166664555668831, -0.0013887366512790322, 2.4438284526695497e-05},
                 {0.0416666666666666, -0.0013888888888874105, 2.48015872894718e-05,
                  -2.7557314349621386e-07, 2.0875722935342004e-09, -1.1359631590880985e-11});
  return {fma(r * z, s, r), fma(z * z, c, fma(z, -0.5, 1.0))};
}

Val odd(Val quadrant) { return (quadrant & 1) != 0.0; }

Val with_sign_of_second_bit(Val y, Val quadrant) {
  return float_of(bits_of(y) ^ ((quadrant & 2) << (y.wide() ? 62 : 30)));
}

Val keep_small(Val x, Val y) { return select(abs(x) < by_width(x, 1e-12, 1e-20), x, y); }  // and -0

}  // namespace

Val sin(Val x) {
  const ReducedAngle p = reduce_angle(x);
  const SinCos v = small(p.r);
  return keep_small(x, with_sign_of_second_bit(select(odd(p.quadrant), v.cos, v.sin), p.quadrant));
}

Val cos(Val x) {
  const ReducedAngle p = reduce_angle(x);
  const SinCos v = small(p.r);
  return with_sign_of_second_bit(select(odd(p.quadrant), v.sin, v.cos), p.quadrant + 1);
}

Val tan(Val x) {
  const ReducedAngle p = reduce_angle(x);
  const SinCos v = small(p.r);
  const Val turned = odd(p.quadrant);
  return keep_small(x, select(turned, -v.cos, v.sin) / select(turned, v.sin, v.cos));
}

}  // namespace weft::kernel::math
