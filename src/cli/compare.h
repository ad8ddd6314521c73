// Comparing results: what differs, by how much, and whether that is more than a tolerance allows.
#pragma once

#include <cstdint>
#include <string>

#include "base/tensor.h"

namespace weft::cli {

// A float is right when |got - want| <= atol + rtol * |want|; NaN is right for NaN, an infinity for the same one.
// Everything else must be equal.
struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
};

struct Difference {
  std::string problem;          // dtype or shape differ: nothing was compared
  double max_abs = 0, max_rel = 0;
  double max_ulp = 0;           // in steps of the element type; of floats
  std::int64_t beyond = 0;      // elements outside the tolerance
  std::int64_t worst = -1;      // the one furthest outside, by its number
  std::int64_t elements = 0;

  bool within() const { return problem.empty() && beyond == 0; }
};

Difference compare(const Tensor& got, const Tensor& want, const Tolerance& tolerance);
double largest_magnitude(const Tensor& tensor);  // of the finite elements
std::string element_text(const Tensor& tensor, std::int64_t i);

// One line: "12 of 100 elements differ, the worst at [3, 4]: 1.5 instead of 1.25".
std::string describe(const Difference& difference, const Tensor& got, const Tensor& want);

}  // namespace weft::cli
