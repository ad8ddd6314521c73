// Weights of 4 bits: two to a byte along k, with a scale for each column and each group of k. One row times a matrix is
// bound by the bytes of the matrix, so that unpacking them on chip costs little and reading an eighth of them saves much.
// A product of [1, k] with integers is not what dot() does: the sum is written out over rows.
#include "example.h"

namespace examples {

bool int4_matmul(const weft::CompileOptions& options) {
  constexpr int C = 64, kGroup = 32;
  const Kernel product = kernel("int4_matmul", [](In<float> x, In<std::uint8_t> packed, In<float> scales, Out<float> y,
                                                  Int n, Int depth) {
    const Tile j = program_id() * C + lanes(C), inside = j < n;
    Var total = zeros<float>(1, C);
    for (Tile group : range(0, depth / kGroup)) {
      const Tile pair = group * (kGroup / 2) + rows(kGroup / 2);  // [16, 1]: rows of bytes
      const Tile bytes = cast<std::int32_t>(load(packed, pair * n + j, inside));
      const Tile low = cast<float>((bytes & 15) - 8), high = cast<float>((bytes >> 4) - 8);
      const Tile part = sum(low * load(x, pair * 2) + high * load(x, pair * 2 + 1), 0);
      total += part * load(scales, group * n + j, inside);
    }
    store(y, j, total, inside);
  });

  const int n = 200, depth = 256;
  std::vector<float> x = random_floats(depth, 1), scales = random_floats(depth / kGroup * n, 2), y(n), expected(n);
  std::vector<std::uint8_t> packed(depth / 2 * n);
  std::mt19937 random(3);
  for (auto& byte : packed) byte = static_cast<std::uint8_t>(random());
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int k = 0; k < depth; ++k) {
      const int byte = packed[k / 2 * n + j], weight = (k % 2 == 0 ? byte & 15 : byte >> 4) - 8;
      sum += double{x[k]} * weight * scales[k / kGroup * n + j];
    }
    expected[j] = static_cast<float>(sum);
  }
  return report({.kernel = product, .grid = (n + C - 1) / C, .arguments = {x, packed, scales, y, n, depth}, .result = y,
                 .expected = expected, .tolerance = 1e-4,
                 .least_bytes = depth / 2 * n + 4LL * (depth + depth / kGroup * n + n)}, options);
}

}  // namespace examples
