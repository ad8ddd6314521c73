// How floats of at most 16 bits are laid out.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"

namespace weft {

// What the codes beyond the finite ones mean.
enum class FloatSpecial : std::uint8_t {
  Ieee,    // all-ones exponent: infinities and NaNs
  NanTop,  // only the all-ones code is NaN, no infinity
  NanNegZero,  // the code of -0 is NaN, no infinity, no -0
  None,        // every code is finite
};

// A float of at most 16 bits: sign, exponent, mantissa, with subnormals.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  FloatSpecial special;

  constexpr int sign_shift() const { return exponent_bits + mantissa_bits; }
  constexpr std::uint64_t magnitude_mask() const { return (1u << sign_shift()) - 1; }
  constexpr std::uint64_t infinity() const { return ((1u << exponent_bits) - 1u) << mantissa_bits; }
  constexpr std::uint64_t max_finite() const {
    if (special == FloatSpecial::Ieee) return infinity() - 1;
    if (special == FloatSpecial::NanTop) return magnitude_mask() - 1;
    return magnitude_mask();
  }
  constexpr std::uint64_t nan() const {
    if (special == FloatSpecial::Ieee) return infinity() | (1u << (mantissa_bits - 1));
    if (special == FloatSpecial::NanTop) return magnitude_mask();
    if (special == FloatSpecial::NanNegZero) return 1u << sign_shift();
    return 1u << sign_shift();  // None: a NaN becomes -0, as in ml_dtypes
  }
};
std::optional<FloatFormat> float_format(DType t);  // of those floats that have a sign

}  // namespace weft
