// What the examples share: random data, a comparison, and one line of report each.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "weft/tile.h"

namespace examples {

using namespace weft::tile;

inline std::vector<float> random_floats(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(n);
  for (float& v : x) v = uniform(random);
  return x;
}

// Numbers of 16 bits: from 0.5 to 1, of either sign.
struct Halves {
  Halves(std::size_t n, unsigned seed) : bits(n), values(n) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned word = random(), fraction = word & 1023;
      const bool negative = (word & 1024) != 0;
      bits[i] = static_cast<std::uint16_t>((negative ? 0x8000U : 0U) | 14U << 10 | fraction);
      values[i] = std::ldexp((negative ? -1.0F : 1.0F) * static_cast<float>(1024 + fraction), -11);
    }
  }
  weft::Tensor tensor() { return weft::Tensor::mutable_view(weft::DType::F16, {static_cast<std::int64_t>(bits.size())}, bits.data()); }
  std::vector<std::uint16_t> bits;
  std::vector<float> values;
};

// A kernel, what it is run with, and what must come out.
struct Case {
  Kernel kernel;
  std::int64_t grid;
  Arguments arguments;
  std::vector<float>& result;         // one of the arguments
  std::vector<float> expected;        // as plain C++ computes it
  double tolerance = 1e-5;            // of the largest expected value
  std::int64_t least_bytes;           // each input element read once, each output element written once
};

// Where --print names a stage, prints what that makes of the kernel; it is not run then.
bool print_only(const Kernel& kernel, const weft::CompileOptions& options);

// Compiles for the target, runs, compares; prints time, traffic (counted by the interpreter) and error. False: wrong.
bool report(const Case& c, const weft::CompileOptions& options);
double worst_difference(const std::vector<float>& found, const std::vector<float>& expected);  // NaN where they differ in it

using Example = bool (*)(const weft::CompileOptions& options);
bool vector_add(const weft::CompileOptions& options);
bool softmax(const weft::CompileOptions& options);
bool layer_norm(const weft::CompileOptions& options);
bool matmul(const weft::CompileOptions& options);
bool int4_matmul(const weft::CompileOptions& options);
bool flash_attention(const weft::CompileOptions& options);
bool paged_attention(const weft::CompileOptions& options);
bool running_sum(const weft::CompileOptions& options);
bool histogram(const weft::CompileOptions& options);
bool embedding_bag(const weft::CompileOptions& options);
bool half_matmul(const weft::CompileOptions& options);
bool f8_matmul(const weft::CompileOptions& options);
bool half_attention(const weft::CompileOptions& options);

}  // namespace examples
