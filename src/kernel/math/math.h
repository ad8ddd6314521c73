// The families: each function replaces one op on f32 or f64 scalars or vectors by arithmetic,
// comparisons, selects, shifts, casts and ldexp. Errors are for f32 over its whole range; f64 stays
// within about 1e-15 relative. Coefficients are minimax fits with the weight of the relative error
// of the result.
#pragma once

#include "kernel/math/value.h"

namespace weft::kernel::math {

// basic.cpp
Val sign(Val x);
Val rsqrt(Val x);
Val reciprocal(Val x);
Val is_nan(Val x);
Val is_inf(Val x);
// exponential.cpp
Val exp(Val x);
Val exp_by_unit(Val x);  // of f32, where there is exp2_unit: to 4e-7
Val exp2(Val x);         // of f32
Val expm1(Val x);
Val sigmoid(Val x);
Val exp_scaled(Val x, int power, const Val* low = nullptr);  // exp(x + low) * 2^power
Val exp2_product(
    Val x, double c);  // 2^(x c) of f32 with a normal result, to 2e-7: where it is a part of a sum
Val reduced_exp2(Val f);  // 2^f of f32, |f| <= 1/2
// logarithm.cpp
Val log(Val x);
Val log1p(Val x);
struct Split {
  Val high, low;
};
Split log_split(Val x);  // log of a positive f64 as an unevaluated sum
// hyperbolic.cpp
Val sinh(Val x);
Val cosh(Val x);
Val tanh(Val x);
Val asinh(Val x);
Val acosh(Val x);
Val atanh(Val x);
// trigonometric.cpp
Val sin(Val x);
Val cos(Val x);
Val tan(Val x);
// inverse_trigonometric.cpp
Val asin(Val x);
Val acos(Val x);
Val atan(Val x);
Val atan2(Val y, Val x);
// error_function.cpp
Val erf(Val x);
Val one_plus_erf(Val x);  // of f32 to 2e-7: what GELU multiplies with, in two thirds of erf's instructions
// power.cpp
Val pow(Val x, Val y);          // floats, with IEEE's special cases
Val integer_pow(Val x, Val y);  // by squaring, wraps
// narrow.cpp
bool is_f8(DType t);                // of 8 bits, with a sign
Val decode_f8(Val code, DType from);  // u8 -> f32
Val encode_f8(Val x, DType to);     // f32 or f64 -> u8, to nearest even; what is too large is infinity, or NaN
// remainder.cpp
Val fmod(Val x, Val y);  // exact
Val mod(Val x, Val y);
Val floor_div(Val x, Val y);

}  // namespace weft::kernel::math
