// The kernel of half_attention.h, with tiles of the target.
#include "half_attention.h"

namespace examples {
namespace {

std::vector<float> expected_of(const Halves& q, const Halves& k, const Halves& v, int heads, int length, int width) {
  std::vector<float> out(q.values.size());
  std::vector<double> weight(length);
  for (int row = 0; row < heads * length; ++row) {
    const int head = row / length * length, count = row % length + 1;
    double total = 0;
    for (int j = 0; j < count; ++j) {
      double score = 0;
      for (int d = 0; d < width; ++d) score += double{q.values[row * width + d]} * k.values[(head + j) * width + d];
      total += weight[j] = std::exp(score / std::sqrt(double(width)));
    }
    for (int d = 0; d < width; ++d) {
      double sum = 0;
      for (int j = 0; j < count; ++j) sum += weight[j] * v.values[(head + j) * width + d];
      out[row * width + d] = static_cast<float>(sum / total);
    }
  }
  return out;
}

}  // namespace

bool half_attention(const weft::CompileOptions& options) {
  constexpr int heads = 2, length = 150, width = 64;
  Halves q(heads * length * width, 1), k(heads * length * width, 2), v(heads * length * width, 3);
  std::vector<float> out(q.values.size());
  // As large as a matrix unit wants, as a work group's memory of 32 KiB holds, as a core's registers hold.
  const bool unit = options.target.rfind("cuda", 0) == 0 || options.target.find("sm_") != std::string::npos;
  const bool cpu = options.target.rfind("cpu", 0) == 0;
  const int rows = unit ? 64 : cpu ? 8 : 32;
  const auto body = unit ? attention_f16<64, 64, width> : cpu ? attention_f16<8, 16, width> : attention_f16<32, 32, width>;
  const Kernel made = kernel("half_attention", body);
  return report({.kernel = made, .grid = heads * ((length + rows - 1) / rows), .arguments = {q.tensor(), k.tensor(), v.tensor(), out, length},
                 .result = out, .expected = expected_of(q, k, v, heads, length, width), .tolerance = 1e-3,  // weights have 11 bits
                 .least_bytes = 2LL * 3 * heads * length * width + 4LL * heads * length * width}, options);
}

}  // namespace examples
