// Flash attention on f16, causal: scores and the weighted sum are products summed in f32, with weights rounded to f16 between
// them. On a GPU those weights stay in the registers in which the first product left them.
#include "example.h"

namespace examples {
namespace {

template <int R, int C, int D>
void attention(In<F16> q, In<F16> k, In<F16> v, Out<float> out, Int length) {
  const Tile blocks = (length + (R - 1)) / R;
  const Tile head = program_id() / blocks * length * D, first = program_id() % blocks * R;
  const Tile i = first + rows(R), d = lanes(D);
  const Matrix queries(q, length, D, D, 1, head), keys(k, length, D, D, 1, head), values(v, length, D, D, 1, head);
  const Matrix result(out, length, D, D, 1, head);
  const Tile query = queries.load(i, d);
  Var most = full<float>(R, 1, -1e30f), total = zeros<float>(R, 1), acc = zeros<float>(R, D);
  for (Tile block : range(0, minimum(first + R, length), C)) {
    const Tile j = block + lanes(C), down = block + rows(C);
    const Tile products = dot(query, transpose(keys.load(down, d))) * (1.0f / std::sqrt(float{D}));
    const Tile score = where((j <= i) & (j < length), products, -1e30f);
    const Tile higher = maximum(most, max(score));
    const Tile weight = exp(score - higher), shrink = exp(most - higher);
    total = total * shrink + sum(weight);
    acc = dot(cast<F16>(weight), values.load(down, d), acc * shrink);
    most = higher;
  }
  result.store(i, d, acc / total);
}

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
  const bool cpu = options.target.rfind("cpu", 0) == 0;
  const Kernel made = cpu ? kernel("half_attention", attention<8, 16, width>) : kernel("half_attention", attention<64, 64, width>);
  const int rows = cpu ? 8 : 64;
  return report({.kernel = made, .grid = heads * ((length + rows - 1) / rows), .arguments = {q.tensor(), k.tensor(), v.tensor(), out, length},
                 .result = out, .expected = expected_of(q, k, v, heads, length, width), .tolerance = 1e-3,  // weights have 11 bits
                 .least_bytes = 2LL * 3 * heads * length * width + 4LL * heads * length * width}, options);
}

}  // namespace examples
