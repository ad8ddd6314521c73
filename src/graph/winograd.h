// Minimal filtering of Winograd, F(m x m, 3 x 3): a tile of m x m results of a 3 x 3 convolution as an elementwise
// product of (m + 2)^2 numbers, Y = At [(G g Gt) . (Bt d B)] A. Source: Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/tensor.h"

namespace weft::graph {

struct Winograd {
  int m = 0;       // results of a tile on each axis
  int size = 0;    // m + 2: numbers on each axis
  // Row-major: bt is size x size, g is size x 3, at is m x size.
  const double* bt = nullptr;
  const double* g = nullptr;
  const double* at = nullptr;
  int points() const { return size * size; }
};

const Winograd* winograd(std::int64_t m);  // m is 2 or 4; else null

// Weights [3, 3, C, K] of f32 -> G g Gt as [(m + 2)^2, C, K] of f32, computed in f64.
Result<Tensor> winograd_weights(const Tensor& weights, const Winograd& form);

}  // namespace weft::graph
