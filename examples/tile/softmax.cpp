// Fused softmax: a program owns a row, keeps it on chip and reads memory once. Written with library calls it would read
// and write the row three more times (maximum, exponential, sum), and memory is what such a kernel waits for.
#include "example.h"

namespace examples {

bool softmax(const weft::CompileOptions& options) {
  constexpr int kWidth = 256;  // rows are no longer than this
  const Kernel softmax = kernel("softmax", [](In<float> x, Out<float> y, Int n) {
    const Tile column = lanes(kWidth), inside = column < n;
    const Tile at = program_id() * n + column;
    const Tile v = where(inside, load(x, at, inside), -INFINITY);  // what is outside does not count
    const Tile e = exp(v - max(v));                                // max(v) is [1, 1] and stretches
    store(y, at, e / sum(e), inside);
  });

  const int rows = 200, n = 250;
  std::vector<float> x = random_floats(rows * n), y(rows * n), expected(rows * n);
  for (int r = 0; r < rows; ++r) {
    double total = 0;
    for (int i = 0; i < n; ++i) total += std::exp(x[r * n + i]);
    for (int i = 0; i < n; ++i) expected[r * n + i] = static_cast<float>(std::exp(x[r * n + i]) / total);
  }
  return report({.kernel = softmax, .grid = rows, .arguments = {x, y, n}, .result = y, .expected = expected,
                 .least_bytes = 2LL * rows * n * 4}, options);
}

}  // namespace examples
