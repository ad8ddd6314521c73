// |x| < 1: x times a polynomial in x^2. Beyond: 1 - exp(-r(|x|)), r = -log(erfc), a polynomial; the
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

// 1 + sign(x) (1 - erfc(|x|)): one polynomial instead of two where only the absolute error counts, which stays below 2e-7.
Val one_plus_erf(Val x) {
  constexpr double kEnd = 4;  // where the sum is 0 or 2
  const Val near = at_least(at_most(x, kEnd), -kEnd), a = abs(near);
  const Val log2_erfc = a * polynomial(a,
                                       {-1.6279085930562716, -0.9184163933363817, -0.1484816147369604, 0.028253680436768267,
                                        -0.0007746290299311312, -0.0014894419455613388, 0.0004455077199782257, -4.535860426119024e-05},
                                       {});
  const Val one = fma(near, 0, 1);  // or NaN
  return one + copysign(1.0 - exp2_product(log2_erfc, 1), near);
}

}  // namespace weft::kernel::math
