// The transcendental ops with their references, and arguments that reach every exponent and special
// value.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/scalar.h"

namespace weft::kernel {

struct MathCase {
  ScalarOp op;
  double ulp_f32;  // allowed error, in units of the result's last place
  double (*reference)(double);
};

inline double sigmoid_reference(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

inline const std::vector<MathCase>& math_cases() {
  static const std::vector<MathCase> cases = {
      {ScalarOp::Exp, 2, std::exp},     {ScalarOp::Expm1, 2.5, std::expm1},
      {ScalarOp::Log, 2, std::log},     {ScalarOp::Log1p, 2, std::log1p},
      {ScalarOp::Sin, 2, std::sin},     {ScalarOp::Cos, 2, std::cos},
      {ScalarOp::Tan, 4, std::tan},     {ScalarOp::Asin, 4, std::asin},
      {ScalarOp::Acos, 4, std::acos},   {ScalarOp::Atan, 3, std::atan},
      {ScalarOp::Sinh, 4, std::sinh},   {ScalarOp::Cosh, 3, std::cosh},
      {ScalarOp::Tanh, 2, std::tanh},   {ScalarOp::Asinh, 4, std::asinh},
      {ScalarOp::Acosh, 4, std::acosh}, {ScalarOp::Atanh, 4, std::atanh},
      {ScalarOp::Erf, 2, std::erf},     {ScalarOp::Sigmoid, 2, sigmoid_reference},
  };
  return cases;
}

// `count` floats spread evenly over all bit patterns, hence over all exponents, and dense ones in
// [-100, 100].
inline std::vector<float> sweep_f32(std::int64_t count) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1,
                          -1,
                          inf,
                          -inf,
                          std::nanf(""),
                          1e-45f,
                          -1e-45f,
                          88.72283f,
                          -103.97f,
                          0.5f,
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest()};
  for (std::int64_t i = 0; i < count / 2; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(i * (0x100000000 / (count / 2)))));
    x.push_back(
        static_cast<float>(-100 + 200.0 * static_cast<double>(i) / static_cast<double>(count / 2)));
  }
  return x;
}

// Distance of y from the exact value in units of the last place of `exact` in f32; 0 when both are
// NaN.
inline double ulps_f32(float y, double exact) {
  if (std::isnan(exact)) return std::isnan(y) ? 0 : std::numeric_limits<double>::infinity();
  const float rounded = static_cast<float>(exact);
  if (y == rounded) return 0;
  if (std::isnan(y) || std::isinf(y) != std::isinf(rounded)) {
    // Within half a step of the border to infinity both are right.
    const double largest = std::numeric_limits<float>::max();
    const bool near = !std::isnan(y) && std::fabs(exact) > largest * (1 - 0x1p-23);
    return near ? 1 : std::numeric_limits<double>::infinity();
  }
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::fabs(static_cast<double>(y) - exact) / std::ldexp(1.0, exponent - 23);
}

}  // namespace weft::kernel
