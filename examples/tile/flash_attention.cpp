// Attention in one pass over keys and values. A program owns R queries of one head. It keeps the greatest score so far,
// the sum of exponentials relative to it and the weighted values; when a block brings a greater score, what was summed
// before is scaled down. No matrix of scores is ever in memory. Causal: a query sees the keys up to its own place, so
// the loop ends there. (Dao et al., FlashAttention, 2022; Milakov and Gimelshein, online softmax, 2018.)
#include "example.h"

namespace examples {
namespace {

template <int R, int C, int D>
void attention(In<float> q, In<float> k, In<float> v, Out<float> out, Int length) {
  const Tile blocks = (length + (R - 1)) / R;
  const Tile head = program_id() / blocks * length * D, first = program_id() % blocks * R;
  const Tile i = first + rows(R), d = lanes(D);
  const Matrix queries(q, length, D, D, 1, head), values(v, length, D, D, 1, head), result(out, length, D, D, 1, head);
  const Matrix keys(k, D, length, 1, D, head);  // transposed: element (d, j)
  const Tile scaled = queries.load(i, d) * (1.0f / std::sqrt(float{D}));
  Var most = full<float>(R, 1, -1e30f), total = zeros<float>(R, 1), acc = zeros<float>(R, D);
  for (Tile block : range(0, minimum(first + R, length), C)) {
    const Tile j = block + lanes(C);
    const Tile score = where((j <= i) & (j < length), dot(scaled, keys.load(rows(D), j)), -1e30f);
    const Tile higher = maximum(most, max(score));
    const Tile weight = exp(score - higher), shrink = exp(most - higher);
    total = total * shrink + sum(weight);
    acc = dot(weight, values.load(block + rows(C), d), acc * shrink);
    most = higher;
  }
  result.store(i, d, acc / total);
}

}  // namespace

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
