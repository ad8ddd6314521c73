// The attention of flash_attention.h, beside plain C++.
#include "flash_attention.h"

namespace examples {

bool flash_attention(const weft::CompileOptions& options) {
  constexpr int R = 4, C = 16, D = 32;
  const int heads = 2, length = 70;
  const std::size_t size = heads * length * D;
  std::vector<float> q = random_floats(size, 1), k = random_floats(size, 2), v = random_floats(size, 3), out(size), expected(size);
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < length; ++i) {
      std::vector<double> weight(i + 1);
      double total = 0;
      for (int j = 0; j <= i; ++j) {
        double score = 0;
        for (int d = 0; d < D; ++d) score += double{q[(h * length + i) * D + d]} * k[(h * length + j) * D + d];
        total += weight[j] = std::exp(score / std::sqrt(double{D}));
      }
      for (int d = 0; d < D; ++d) {
        double sum = 0;
        for (int j = 0; j <= i; ++j) sum += weight[j] * v[(h * length + j) * D + d];
        expected[(h * length + i) * D + d] = static_cast<float>(sum / total);
      }
    }
  }
  return report({.kernel = kernel("flash_attention", attention<R, C, D>), .grid = heads * ((length + R - 1) / R),
                 .arguments = {q, k, v, out, length}, .result = out, .expected = expected,
                 .least_bytes = 4LL * 4 * static_cast<std::int64_t>(size)}, options);
}

}  // namespace examples
