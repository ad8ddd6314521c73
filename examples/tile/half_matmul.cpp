// A product of matrices of f16, summed in f32. Tiles are what the target's units multiply: four warps of an NVIDIA GPU have 64
// rows together (wgmma on sm_90a, else mma.sync by each); a core of a CPU holds fewer in its registers.
#include "example.h"

namespace examples {
namespace {

template <int R, int C, int K>
void product(In<F16> a, In<F16> b, Out<float> c, Int m, Int n, Int depth) {
  const Tile across = (n + (C - 1)) / C;
  const Tile i = program_id() / across * R + rows(R), j = program_id() % across * C + lanes(C);
  const Matrix left(a, m, depth), right(b, depth, n), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), right.load(k + rows(K), j), acc);
  out.store(i, j, acc);
}

}  // namespace

bool half_matmul(const weft::CompileOptions& options) {
  constexpr int m = 144, n = 160, depth = 96;  // multiples of 16: rows of memory begin where copies may
  Halves a(m * depth, 1), b(depth * n, 2);
  std::vector<float> c(m * n), expected(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) sum += double{a.values[i * depth + k]} * b.values[k * n + j];
      expected[i * n + j] = static_cast<float>(sum);
    }
  }
  const bool cpu = options.target.rfind("cpu", 0) == 0;
  const Kernel made = cpu ? kernel("half_matmul", product<8, 32, 4>) : kernel("half_matmul", product<64, 64, 32>);
  const int rows = cpu ? 8 : 64, columns = cpu ? 32 : 64;
  return report({.kernel = made, .grid = (m + rows - 1) / rows * ((n + columns - 1) / columns),
                 .arguments = {a.tensor(), b.tensor(), c, m, n, depth}, .result = c, .expected = expected,
                 .least_bytes = 2LL * (m * depth + depth * n) + 4LL * m * n}, options);
}

}  // namespace examples
