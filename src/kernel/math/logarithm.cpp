// log(x) = e ln 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2). f32: a polynomial in f; f64: fdlibm's
// series in s = f / (2 + f).
#include "kernel/math/math.h"

namespace weft::kernel::math {
namespace {

int mantissa_bits(Val x) { return x.wide() ? 52 : 23; }
double smallest_normal(Val x) { return by_width(x, 0x1p-126, 0x1p-1022); }

struct Parts {
  Val e, f;      // e as a float
  Val exponent;  // e as an integer
};

Parts split(Val x) {
  const Val i = bits_of(x);
  const Val half = i.whole(x.wide() ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  const Val above = i - half;
  const Val exponent = above >> static_cast<double>(mantissa_bits(x));
  const Val mask = i.whole((std::int64_t{1} << mantissa_bits(x)) - 1);
  const Val m = float_of((above & mask) + half);
  return {exponent.cast(x.dtype()), m - 1.0, exponent};
}

// log(1 + f) - f + e ln2_low
Val tail(Val f, Val e) {
  const Val square = f * f;
  if (!f.wide()) {
    const Val p = polynomial(f,
                             {0.3333331048488617, -0.24999986588954926, 0.20002228021621704,
                              -0.166692316532135, 0.1421862095594406, -0.12384667247533798,
                              0.11873544007539749, -0.11788169294595718, 0.06912176311016083},
                             {});
    return fma(e, -2.12194440e-4, fma(square, -0.5, square * f * p));
  }
  const Val s = f / (f + 2.0);
  const Val z = s * s;
  const Val r =
      z * polynomial(z, {},
                     {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                      2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                      1.479819860511658591e-01});
  const Val half = 0.5 * square;
  return fma(s, half + r, e * 1.90821492927058770002e-10) - half;
}

// Few enough bits that its product with e is exact.
double ln2_high(Val x) { return by_width(x, 0.693359375, 6.93147180369123816490e-01); }

Val assemble(Val f, Val e) { return fma(e, ln2_high(f), f + tail(f, e)); }

// NaN below 0, -inf at 0, inf at inf; `x` decides.
Val special(Val x, Val y) {
  y = select(x == kInf, x, y);
  return select(x > 0.0, y, select(x == 0.0, x.like(-kInf), kNan));
}

struct Scaled {
  Val x, e;
};

Scaled scale_subnormal(Val x) {
  const Val tiny = x < smallest_normal(x);
  const double power = by_width(x, 23, 52);
  return {select(tiny, x * by_width(x, 0x1p23, 0x1p52), x), select(tiny, x.like(-power), 0.0)};
}

}  // namespace

Val log(Val x) {
  const Scaled s = scale_subnormal(x);
  const Parts p = split(s.x);
  return special(x, assemble(p.f, p.e + s.e));
}

// u = 1 + x rounds; what it loses is added to f, scaled like it.
Val log1p(Val x) {
  const Val u = x + 1.0;
  const Val lost = select(u >= 2.0, 1.0 - (u - x), x - (u - 1.0));
  const Parts p = split(u);
  const Val two = p.exponent.whole(x.wide() ? 0x4000000000000000
                                            : 0x40000000);  // 2^(1-e): of the largest e it is 0
  const Val scale = float_of(two - (p.exponent << static_cast<double>(mantissa_bits(x))));
  const Val y = assemble(p.f + 0.5 * lost * scale, p.e);
  return select(abs(x) < by_width(x, 1e-12, 1e-20), x, special(u, y));
}

Split log_split(Val x) {
  const Scaled s = scale_subnormal(x);
  const Parts p = split(s.x);
  const Val e = p.e + s.e;
  const Val head = e * ln2_high(x);
  const Val sum = head + p.f;
  // |head| >= |f| or head is 0: the rounding error of the sum is exact.
  const Val error = (head - sum) + p.f;
  const Val low = error + tail(p.f, e);
  const Val high = sum + low;
  const Val finite = abs(x) < kInf;
  return {special(x, high), select(finite & (x > 0.0), (sum - high) + low, 0.0)};
}

}  // namespace weft::kernel::math
