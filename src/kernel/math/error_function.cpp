// erf: |x| < 1: x times a polynomial in x^2. Beyond: 1 - exp(-r(|x|)), r = -log(erfc), a polynomial; the
// weight of its error falls with erfc. f32: log2 instead.
#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

constexpr double kSlope = 0.12837916709551256;  // 2 / sqrt(pi) - 1

Val near(Val x) {
  const Val z = x * x;
  const Val p =
      polynomial(z,
                 {-0.37612631916999817, 0.11283629387617111, -0.026855476200580597,
                  0.005191277712583542, -0.0008034906350076199, 7.932695734780282e-05},
                 {-0.3761263890318375, 0.11283791670954929, -0.026866170645084446,
                  0.005223977624881634, -0.0008548326984079459, 0.00012055331219256504,
                  -1.4925597655733228e-05, 1.6461036292079395e-06, -1.6350670428087874e-07,
                  1.4662057329917772e-08, -1.138125736004598e-09, 5.970789983400435e-11});
  return fma(fma(z, p, kSlope), x, x);
}

Val far(Val a) {
  if (!a.wide()) {
    const Val r = polynomial(
        a,
        {-0.0005096005043014884, -1.6259779930114746, -0.9207600951194763, -0.14865581691265106,
         0.03146051988005638, -0.004241488873958588, 0.0002677819284144789},
        {});
    return 1.0 - exp2_product(r, 1);
  }
  const Val r =
      polynomial(a, {},
                 {5.137642890313713e-07, 1.128373986742638, 0.6366440770061791, 0.10270223030029976,
                  -0.018987930588933027, -0.0004136892971511921, 0.0019191041391448962,
                  -0.0007731703057338636, 0.00013663410468010056, 1.948431330489226e-05,
                  -2.2517903991877365e-05, 8.574232694597348e-06, -2.1137322896751356e-06,
                  3.6937602978231506e-07, -4.5908689836356125e-08, 3.8878308298226764e-09,
                  -2.0191511839802088e-10, 4.8620964092527656e-12});
  return 1.0 - exp(-r);
}

}  // namespace

Val erf(Val x) {
  const Val a = at_most(abs(x), by_width(x, 4, 6));
  return select(a >= 1.0, copysign(far(a), x), near(x));  // NaN goes the near way
}

// f32 in one branch: erfc(|x|) = 2^r, r a polynomial that falls without end, and from it the sum on either side of 0. Its
// absolute error is what counts beside 1. The magic number leaves n + 127 in the low bits of t, so that their shift is 2^n,
// and 0 for the least r: below about -9 the result is 0. What is not a number stays in f.
Val one_plus_erf(Val x) {
  const Val r = at_least(polynomial(abs(x),
                                    {2.17187180e-08, -1.6279093260040083, -0.9184098138055613, -0.14850665028596172,
                                     0.028301892748742175, -0.0008251714448573172, -0.0014603783892795834,
                                     0.0004369434480994030, -4.435278120432192e-05},
                                    {}),
                         -127);
  constexpr double magic = 12582912.0 + 127;
  const Val t = r + magic;
  const Val f = r - (t - magic);
  const Val fraction = reduced_exp2(f);
  const Val power = float_of(bits_of(t) << 23);
  const Val right = x > 0.0;
  return fma(fraction, select(right, -power, power), select(right, x.like(2), x.like(0)));
}

}  // namespace weft::kernel::math
