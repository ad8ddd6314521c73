#include <limits>

#include "kernel/math/math.h"

namespace weft::kernel::math {

Val sign(Val x) { return select(x > 0.0, x.like(1), select(x < 0.0, -1.0, x)); }
Val rsqrt(Val x) { return 1.0 / sqrt(x); }
Val reciprocal(Val x) { return 1.0 / x; }
Val is_nan(Val x) { return x != x; }
Val is_inf(Val x) { return abs(x) == std::numeric_limits<double>::infinity(); }

}  // namespace weft::kernel::math
