// Storing the sums of dot and conv: f64 sums round once, u64 sums wrap, or become floats where the result is one.
#pragma once

#include "base/wide.h"

namespace weft::graph::interpreter {

inline void store_sums(Tensor& y, std::int64_t at, const std::vector<double>& sums) {
  const auto n = static_cast<std::int64_t>(sums.size());
  if (is_float(y.dtype())) return store_wide(y, at, n, sums.data());
  for (std::int64_t i = 0; i < n; ++i) y.set_i64(at + i, clamp_to_int(y.dtype(), sums[i]));
}

inline void store_sums(Tensor& y, std::int64_t at, const std::vector<std::uint64_t>& sums) {
  const auto n = static_cast<std::int64_t>(sums.size());
  if (!is_float(y.dtype())) return store_wide(y, at, n, sums.data());
  for (std::int64_t i = 0; i < n; ++i) {
    y.set_f64(at + i, int_to_float(y.dtype(), static_cast<std::int64_t>(sums[i]), false));
  }
}

}  // namespace weft::graph::interpreter
