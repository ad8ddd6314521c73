// Flash attention on f16, causal unless said otherwise: scores and the weighted sum are products summed in f32, with weights rounded to f16 between
// them. On a GPU those weights stay in the registers in which the first product left them.
#pragma once

#include "example.h"

namespace examples {

template <int R, int C, int D, bool Causal = true>
void attention_f16(In<F16> q, In<F16> k, In<F16> v, Out<float> out, Int length) {
  const Tile blocks = (length + (R - 1)) / R;
  const Tile head = program_id() / blocks * length * D, first = program_id() % blocks * R;
  const Tile i = first + rows(R), d = lanes(D);
  const Matrix queries(q, length, D, D, 1, head), keys(k, length, D, D, 1, head), values(v, length, D, D, 1, head);
  const Matrix result(out, length, D, D, 1, head);
  const Tile query = queries.load(i, d);
  Var most = full<float>(R, 1, -1e30f), total = zeros<float>(R, 1), acc = zeros<float>(R, D);
  for (Tile block : range(0, Causal ? minimum(first + R, length) : length, C)) {
    const Tile j = block + lanes(C), down = block + rows(C);
    const Tile products = dot(query, transpose(keys.load(down, d))) * (1.0f / std::sqrt(float{D}));
    const Tile score = where(Causal ? (j <= i) & (j < length) : j < length, products, -1e30f);
    const Tile higher = maximum(most, max(score));
    const Tile weight = exp(score - higher), shrink = exp(most - higher);
    total = total * shrink + sum(weight);
    acc = dot(cast<F16>(weight), values.load(down, d), acc * shrink);
    most = higher;
  }
  result.store(i, d, acc / total);
}

}  // namespace examples
