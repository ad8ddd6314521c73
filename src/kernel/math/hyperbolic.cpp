#include "kernel/math/math.h"

namespace weft::kernel::math {

Val sinh(Val x) {
  const Val a = abs(x);
  const Val z = a * a;
  const Val p = polynomial(
      z, {0.1666666716337204, 0.008333350531756878, 0.00019836064893752337, 2.817446556946379e-06},
      {0.16666666666666666, 0.008333333333333333, 0.0001984126984126959, 2.7557319224120295e-06,
       2.5052108345630857e-08, 1.6059050707067043e-10, 7.64647629016418e-13,
       2.848400008851726e-15});
  const Val half = exp_scaled(a, -1);
  return copysign(select(a < 1.0, fma(a * z, p, a), half - 0.25 / half), x);
}

Val cosh(Val x) {
  const Val half = exp_scaled(abs(x), -1);
  return half + 0.25 / half;
}

// f32: an odd polynomial up to 5/8, then 1 - 2 / (exp(2 |x|) + 1). f64: t / (t + 2) with t = exp(2
// |x|) - 1.
Val tanh(Val x) {
  const Val a = at_most(abs(x), by_width(x, 10, 20));
  if (x.wide()) {
    const Val t = expm1(a + a);
    return copysign(t / (t + 2.0), x);
  }
  const Val z = a * a;
  const Val p = polynomial(z,
                           {-0.3333328366279602, 0.13331489264965057, -0.05374329537153244,
                            0.02064996212720871, -0.005716375540941954},
                           {});
  const Val far = 1.0 - 2.0 / (exp2_product(a, 2.8853900817779268) + 1.0);
  return copysign(select(a >= 0.625, far, fma(a * z, p, a)), x);  // NaN goes the near way
}

namespace {

// From here on the square root's argument is its square: log(2 a) without forming a^2.
double large(Val x) { return by_width(x, 0x1p30, 0x1p60); }
constexpr double kLn2 = 0.6931471805599453;

Val log1p_or_doubled(Val a, Val u) {
  const Val big = a > large(a);
  return log1p(select(big, a, u)) + select(big, a.like(kLn2), 0.0);
}

}  // namespace

Val asinh(Val x) {
  const Val a = abs(x);
  const Val square = a * a;
  return copysign(log1p_or_doubled(a, a + square / (sqrt(square + 1.0) + 1.0)), x);
}

Val acosh(Val x) {
  const Val t = x - 1.0;
  const Val y = log1p_or_doubled(t, t + sqrt(t * (t + 2.0)));
  return select(x < 1.0, x.like(__builtin_nan("")), y);
}

Val atanh(Val x) {
  const Val a = abs(x);
  return copysign(0.5 * log1p((a + a) / (1.0 - a)), x);
}

}  // namespace weft::kernel::math
