// What the machine can do at most, measured with kernels that do nothing else: what kernels of models are held against.
#pragma once

#include <optional>

#include "base/error.h"

namespace weft::compiler {

struct Limits {
  double gflops = 0;   // of f32, by fused multiplications on registers (a multiplication and an addition each)
  double gbytes = 0;   // a second, read from memory that no cache holds
};

// On `threads` threads at once; takes about a second. The result is kept beside the compile cache.
Result<Limits> measure_limits(int threads);
// What was measured on a machine of this kind; nothing when that was never done.
std::optional<Limits> known_limits(int threads);

}  // namespace weft::compiler
