// A matrix product with bias and GELU in its epilogue. A program owns a tile of the result; a loop walks k, and what the
// loop carries, the accumulator, is a Var. Matrix turns (row, column) into addresses and masks what is outside, so odd
// sizes need no code. Tile sizes are template parameters: the kernel is compiled for the ones chosen.
#include "example.h"

namespace examples {
namespace {

Tile gelu(const Tile& x) { return 0.5f * x * (1.0f + erf(x * 0.70710678f)); }

template <int R, int C, int K>
void product(In<float> a, In<float> b, In<float> bias, Out<float> c, Int m, Int n, Int depth) {
  const Tile across = (n + (C - 1)) / C;  // tiles in a row of the result
  const Tile i = program_id() / across * R + rows(R), j = program_id() % across * C + lanes(C);
  const Matrix left(a, m, depth), right(b, depth, n), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), right.load(k + rows(K), j), acc);
  out.store(i, j, gelu(acc + load(bias, j, j < n)));
}

}  // namespace

bool matmul(const weft::CompileOptions& options) {
  constexpr int R = 8, C = 32, K = 4;
  const int m = 65, n = 100, depth = 120;
  std::vector<float> a = random_floats(m * depth, 1), b = random_floats(depth * n, 2), bias = random_floats(n, 3), c(m * n),
                     expected(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double x = bias[j];
      for (int k = 0; k < depth; ++k) x += double{a[i * depth + k]} * b[k * n + j];
      expected[i * n + j] = static_cast<float>(0.5 * x * (1 + std::erf(x / std::sqrt(2.0))));
    }
  }
  const int grid = (m + R - 1) / R * ((n + C - 1) / C);
  return report({.kernel = kernel("matmul", product<R, C, K>), .grid = grid, .arguments = {a, b, bias, c, m, n, depth},
                 .result = c, .expected = expected, .least_bytes = 4LL * (m * depth + depth * n + n + m * n)}, options);
}

}  // namespace examples
