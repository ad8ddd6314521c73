// exp(x) = 2^n exp(r) with n = round(x / ln 2): n comes out of the low bits of a sum with 1.5 *
// 2^23 (2^52), which rounds to an integer without a conversion.
#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

constexpr double kMagic = 12582912.0;  // its low bits, and those of its bits halved, are 0

struct ReducedExponent {
  Val r, n;  // n: an integer in lanes of x's width
  Val sum;   // n + kMagic, of f32
};

ReducedExponent reduce_exponent(Val x) {
  const double magic = by_width(x, kMagic, 6755399441055744.0);
  const Val t = fma(x, 1.4426950408889634, magic);
  const Val n = t - magic;
  // The high part of f64 times n is exact, also where fma rounds twice.
  const Val r = fma(n, -by_width(x, 0.693147182464599609375, 0.6931471803691238), x);
  return {fma(n, by_width(x, 1.9046542121259336e-09, -1.9082149292705877e-10), r),
          bits_of(t) - bits_of(x.like(magic)), t};
}

// ldexp(x, n + power) for |n + power| <= 250, of f32: by two factors, of which the second alone rounds. The nine low bits of
// the sum are n's, as they are of its half.
Val by_two_powers(Val x, const ReducedExponent& e, int power) {
  Val n = bits_of(e.sum);
  if (power != 0) n = n + n.whole(power);
  const Val half = n >> 1, rest = n - half;
  const auto factor = [](Val v) { return float_of((v << 23) + v.whole(0x3f800000)); };
  return x * factor(half) * factor(rest);
}

// exp(r) - 1 for |r| <= ln 2 / 2
Val reduced_expm1(Val r) {
  const Val q = polynomial(
      r, {0.5, 0.166665181517601, 0.04166620597243309, 0.00836889911442995, 0.0013950385618954897},
      {0.5, 0.16666666666666685, 0.04166666666666673, 0.008333333333316722, 0.0013888888888858675,
       0.0001984126989709361, 2.4801587373299093e-05, 2.7557234206894852e-06, 2.755723372360922e-07,
       2.5112249059252493e-08, 2.0926834628371062e-09});
  return fma(r * r, q, r);
}

}  // namespace

// Clamped just beyond where the result is 0 or infinite, so that n stays small.
Val exp_scaled(Val x, int power, const Val* low) {
  const Val clamped = at_most(at_least(x, by_width(x, -105, -747)), by_width(x, 90, 711));
  ReducedExponent e = reduce_exponent(clamped);
  if (low != nullptr) e.r = e.r + *low;
  const Val fraction = reduced_expm1(e.r) + 1.0;
  // Threads of a group have no instruction for ldexp, and n is small.
  if (!x.wide() && x.b->function().threads > 1) return by_two_powers(fraction, e, power);
  return ldexp(fraction, power == 0 ? e.n : e.n + e.n.whole(power));
}

Val reduced_exp2(Val f) {
  const Val q = polynomial(f,
                           {0.6931472420692444, 0.24022233486175537, 0.05550308898091316,
                            0.009671908803284168, 0.0013407104415819049},
                           {});
  return fma(f, q, 1.0);
}

Val exp2_product(Val x, double c) {
  const double magic = 12582912.0;
  const Val t = fma(x, c, magic);
  const Val f = fma(x, c, -(t - magic));
  return float_of(bits_of(reduced_exp2(f)) + (bits_of(t) << 23));
}

Val exp(Val x) { return exp_scaled(x, 0); }

Val exp2(Val x) {
  const Val clamped = at_most(at_least(x, -152), 129);
  const Val t = clamped + kMagic, n = t - kMagic;
  const ReducedExponent e{clamped - n, bits_of(t) - bits_of(x.like(kMagic)), t};
  const Val fraction = reduced_exp2(e.r);
  if (x.b->function().threads > 1) return by_two_powers(fraction, e, 0);
  return ldexp(fraction, e.n);
}

// n = round(x / ln 2), held between -126 and 126 while it is a share of 252: what is beyond stays in the unit's operand, so that
// results below the least normal number are rounded once, by the last product. The low nine bits of the sum are n + 127, the bits
// of 2^n.
Val exp_by_unit(Val x) {
  constexpr double kInverse = 1.4426950408889634, kHigh = 1.44269502162933349609375, kRange = 252, kBias = 127;
  const auto unit = [](Op op, Val v) { return Val{v.b, v.b->append(op, {v.id}, {v.type()})[0]}; };
  const Val share = unit(Op::Saturate, fma(x, kInverse / kRange, 0.5));
  const Val sum = fma(share, kRange, kMagic + kBias - kRange / 2);
  const Val n = sum - (kMagic + kBias);
  const Val rest = fma(x, kInverse - kHigh, fma(x, kHigh, -n));
  return unit(Op::Exp2Unit, rest) * float_of(bits_of(sum) << 23);
}

// 2 (2^(n-1) expm1(r) + 2^(n-1) - 1/2): halves, so that the largest n (128, 1024) does not
// overflow. Below -40 the sum is -1.
Val expm1(Val x) {
  const Val clamped = at_most(at_least(x, -40), by_width(x, 88.8, 709.9));
  const ReducedExponent e = reduce_exponent(clamped);
  const Val half = ldexp(x.like(0.5), e.n);
  const Val y = 2.0 * fma(half, reduced_expm1(e.r), half - 0.5);
  return select(abs(x) < by_width(x, 1e-12, 1e-20), x, y);  // keeps -0 and subnormals
}

// From e = exp(-|x|), which neither overflows nor loses the small results on the left. What 1 + e
// rounds away is put back to first order: its weight in the quotient q is q (1 - q) for negative x
// and below half a unit for the others.
Val sigmoid(Val x) {
  const Val e = exp(-abs(x));
  const Val sum = e + 1.0;
  const Val q = select(x < 0.0, e, 1.0) / sum;
  const Val lost = e - (sum - 1.0);
  return fma(-(q * lost), 1.0 - q, q);
}

}  // namespace weft::kernel::math
