#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

constexpr double kPi = 3.141592653589793;
constexpr double kHalfPi = 1.5707963267948966;

// asin(s) for 0 <= s <= 1/2, z = s^2
Val asin_small(Val s, Val z) {
  const Val p = polynomial(
      z,
      {0.16666753590106964, 0.07495242357254028, 0.04547698795795441, 0.02414826862514019,
       0.04221732169389725},
      {0.16666666666665383, 0.07500000000342913, 0.044642856823632185, 0.030381959324093304,
       0.022371753709423268, 0.017359768167993082, 0.013884628242487769, 0.01217308146997025,
       0.006511712000761267, 0.019571560962704043, -0.01629041425561563, 0.03195647771619908});
  return fma(s * z, p, s);
}

struct Half {
  Val big, angle;  // asin(|x|), or where |x| > 1/2 asin(sqrt((1 - |x|) / 2))
};

Half half_angle(Val x) {
  const Val a = abs(x);
  const Val big = a > 0.5;
  const Val z = select(big, fma(a, -0.5, 0.5), a * a);
  return {big, asin_small(select(big, sqrt(z), a), z)};
}

// atan(a) for 0 <= a <= 1
Val atan_small(Val a) {
  const Val z = a * a;
  const Val p = polynomial(z,
                           {-0.33333301544189453, 0.19998633861541748, -0.1426519900560379,
                            0.10957330465316772, -0.0841873362660408, 0.05822204053401947,
                            -0.03144317492842674, 0.01105769257992506, -0.0018257007468491793},
                           {-0.33333333333333093,    0.19999999999955256,   -0.14285714282792256,
                            0.11111111013365337,     -0.09090907114295899,  0.07692281129591083,
                            -0.06666414534672065,    0.05880589819929676,   -0.05253793439925361,
                            0.04723252379108027,     -0.04221610625725851,  0.03669134519635903,
                            -0.029982109864634014,   0.022080895392505462,  -0.013990975219166391,
                            0.007260515276941425,    -0.002917877906649893, 0.0008429673092478189,
                            -0.00015468494493449004, 1.347804573081721e-05});
  return fma(a * z, p, a);
}

}  // namespace

Val asin(Val x) {
  const Half h = half_angle(x);
  return copysign(select(h.big, kHalfPi - (h.angle + h.angle), h.angle), x);
}

Val acos(Val x) {
  const Half h = half_angle(x);
  const Val twice = h.angle + h.angle;
  return select(h.big, select(x < 0.0, kPi - twice, twice), kHalfPi - copysign(h.angle, x));
}

Val atan(Val x) {
  const Val a = abs(x);
  const Val steep = a > 1.0;
  const Val angle = atan_small(select(steep, 1.0 / a, a));
  return copysign(select(steep, kHalfPi - angle, angle), x);
}

Val atan2(Val y, Val x) {
  const Val ay = abs(y), ax = abs(x);
  const Val steep = ay > ax;
  const Val low = select(steep, ax, ay), high = select(steep, ay, ax);
  // 0 / 0 is 0 and inf / inf is 1 here.
  const Val ratio = select(low == high, select(high == 0.0, high, 1.0), low / high);
  const Val acute = atan_small(ratio);
  const Val right = select(steep, kHalfPi - acute, acute);
  const Val angle = select(bits_of(x) < 0.0, kPi - right, right);
  const Val nan = (x != x) | (y != y);
  return select(nan, x + y, copysign(angle, y));
}

}  // namespace weft::kernel::math
