// Attention in one pass over keys and values. A program owns R queries of one head. It keeps the greatest score so far,
// the sum of exponentials relative to it and the weighted values; when a block brings a greater score, what was summed
// before is scaled down. No matrix of scores is ever in memory. Causal: a query sees the keys up to its own place, so
// the loop ends there. (Dao et al., FlashAttention, 2022; Milakov and Gimelshein, online softmax, 2018.)
#pragma once

#include "example.h"

namespace examples {

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

}  // namespace examples
