// Scaled dot product attention with grouped queries, rotary embedding, and linear attention as a recurrence.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

struct AttentionSpec {
  double scale = 1;
  double softcap = 0;                 // 0: none
  DType softmax_dtype = DType::F32;   // of the softmax
  bool causal = false;
  Dim past = 0;                       // query i sees the keys up to past + i
};

struct AttentionResult {
  ValueId y;                                             // [batch, heads, queries, value size]
  ValueId product, capped, biased, probabilities;        // [batch, heads, queries, keys]
};

// q [batch, heads, queries, size], k and v [batch, kv heads, keys, size]; query head h reads kv head
// h / (heads / kv heads). mask (id < 0: none): added when a float, a key takes part where true when a bool; of rank 2
// to 4, it broadcasts to [batch, heads, queries, keys]. A query that sees no key gives NaN.
AttentionResult attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId mask, const AttentionSpec& spec);

// x [batch, positions, heads, size]: its first 2 * half features are rotated by the angles whose cosines and sines are
// given, [batch, positions, half]. Pairs are (i, i + half), or neighbours when interleaved.
ValueId rotary_embedding(Builder& b, ValueId x, ValueId cosines, ValueId sines, bool interleaved);

struct LinearAttentionResult {
  ValueId y, state;
};
// A state S [batch, kv heads, key size, value size] in f32, per step: S *= exp(decay); v = beta (v - S' k) when there
// is a beta; S += k v'; y = scale S' q. Operands lie with time in front: q [time, batch, heads, size], k, v likewise,
// decay [time, batch, kv heads, 1 or key size], beta [time, batch, kv heads or 1, 1]; ids < 0: not there.
LinearAttentionResult linear_attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId decay, ValueId beta,
                                       ValueId state, double scale);

}  // namespace weft::ops
