// Layer normalisation with scale and shift. A C++ function is a helper: it is called while the kernel is recorded, and
// leaves its operations behind. The row stays on chip; mean and variance come from it in two passes, which is what
// keeps the variance exact.
#include "example.h"

namespace examples {
namespace {

Tile mean(const Tile& x, const Tile& inside, const Tile& n) { return sum(where(inside, x, 0.0f)) / cast<float>(n); }

}  // namespace

bool layer_norm(const weft::CompileOptions& options) {
  constexpr int kWidth = 256;
  const Kernel norm = kernel("layer_norm", [](In<float> x, In<float> scale, In<float> shift, Out<float> y, Int n) {
    const Tile column = lanes(kWidth), inside = column < n;
    const Tile at = program_id() * n + column;
    const Tile v = load(x, at, inside);
    const Tile centred = v - mean(v, inside, n);
    const Tile variance = mean(centred * centred, inside, n);
    store(y, at, centred * rsqrt(variance + 1e-5f) * load(scale, column, inside) + load(shift, column, inside), inside);
  });

  const int rows = 100, n = 250;
  std::vector<float> x = random_floats(rows * n, 1), scale = random_floats(n, 2), shift = random_floats(n, 3), y(rows * n),
                     expected(rows * n);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int i = 0; i < n; ++i) mean += x[r * n + i] / double{n};
    for (int i = 0; i < n; ++i) variance += std::pow(x[r * n + i] - mean, 2) / n;
    for (int i = 0; i < n; ++i)
      expected[r * n + i] = static_cast<float>((x[r * n + i] - mean) / std::sqrt(variance + 1e-5) * scale[i] + shift[i]);
  }
  return report({.kernel = norm, .grid = rows, .arguments = {x, scale, shift, y, n}, .result = y, .expected = expected,
                 .least_bytes = (2LL * rows * n + 2 * n) * 4}, options);
}

}  // namespace examples
