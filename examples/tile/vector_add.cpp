// The first kernel: each program of the grid owns 256 elements, reads two vectors and writes their sum. The last
// program has fewer: its index tile runs past the end, and the mask keeps it from touching what is not there.
#include "example.h"

namespace examples {

bool vector_add(const weft::CompileOptions& options) {
  constexpr int kBlock = 256;  // a C++ constant is a constant of the kernel
  const Kernel add = kernel("vector_add", [](In<float> x, In<float> y, Out<float> sum, Int n) {
    const Tile i = program_id() * kBlock + lanes(kBlock);
    const Tile inside = i < n;
    store(sum, i, load(x, i, inside) + load(y, i, inside), inside);
  });

  const int n = 100'000;
  std::vector<float> x = random_floats(n, 1), y = random_floats(n, 2), sum(n), expected(n);
  for (int i = 0; i < n; ++i) expected[i] = x[i] + y[i];
  return report({.kernel = add, .grid = (n + kBlock - 1) / kBlock, .arguments = {x, y, sum, n}, .result = sum,
                 .expected = expected, .tolerance = 0, .least_bytes = 3LL * n * 4}, options);
}

}  // namespace examples
