// What the machine can do at most, measured with kernels that do nothing else: what kernels of models are held against.
#pragma once

#include <optional>

#include "base/error.h"
#include "base/machine.h"

namespace weft::compiler {

struct Limits {
  double gflops = 0;   // of f32, by fused multiplications on registers (a multiplication and an addition each)
  double gbytes = 0;   // a second, read from memory that no cache holds
  // Of one core, whatever the threads:
  double ghz = 0;                 // from the latency of a fused multiplication, which is taken to be 4 cycles
  double l1_gbytes = 0, l2_gbytes = 0, l3_gbytes = 0;
  double dispatch_us = 0;         // of a parallel region without work; 0 with one thread
};

// On `threads` threads at once; takes a few seconds. The result is kept beside the compile cache; the best that was ever
// seen of each stays.
Result<Limits> measure_limits(int threads);
// What was measured on a machine of this kind; nothing when that was never done.
std::optional<Limits> known_limits(int threads);

// Gives the machine the rates that were measured here, where they were and it has the vectors that they were measured
// with. Looked up once in a process.
void apply_measured_rates(Machine& machine);

}  // namespace weft::compiler
