// A running sum along rows that are longer than a tile: cumsum() within a block, and the total so far is carried on.
#include "example.h"

namespace examples {

bool running_sum(const weft::CompileOptions& options) {
  constexpr int kBlock = 64;
  const Kernel running = kernel("running_sum", [](In<float> x, Out<float> y, Int n) {
    const Tile row = program_id() * n;
    Var before = zeros<float>(1, 1);
    for (Tile k : range(0, n, kBlock)) {
      const Tile i = k + lanes(kBlock), inside = i < n;
      const Tile v = load(x, row + i, inside);
      store(y, row + i, cumsum(v) + before, inside);
      before += sum(v);
    }
  });

  const int rows = 30, n = 1000;
  std::vector<float> x = random_floats(rows * n), y(rows * n), expected(rows * n);
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) expected[r * n + i] = static_cast<float>(sum += x[r * n + i]);
  }
  return report({.kernel = running, .grid = rows, .arguments = {x, y, n}, .result = y, .expected = expected,
                 .least_bytes = 2LL * rows * n * 4}, options);
}

}  // namespace examples
