// Attention and what goes with it: rotary embedding, cache updates, linear attention, causal convolution.
#include "ops/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/activation.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

// [batch, positions, heads * size] -> [batch, heads, positions, size]
ValueId split_heads(NodeContext& c, ValueId x, std::int64_t heads) {
  const Shape s = c.b.shape(x);
  return c.b.transpose(c.b.reshape(x, {s[0], s[1], Dim(heads), floor_div(s[2], Dim(heads))}), {0, 2, 1, 3});
}

ValueId merge_heads(NodeContext& c, ValueId x) {
  const Shape s = c.b.shape(x);
  return c.b.reshape(c.b.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

struct QueryKeyValue {
  ValueId q, k, v;  // [batch, heads, positions, size], the past included
  Dim past = 0;
};

Result<QueryKeyValue> operands_of(NodeContext& c) {
  int rank = c.rank(0);
  if ((rank != 3 && rank != 4) || c.rank(1) != rank || c.rank(2) != rank) return c.bad("Q, K and V must all have rank 3 or 4");
  QueryKeyValue o{c.in(0), c.in(1), c.in(2)};
  if (rank == 3) {
    std::int64_t heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
    if (heads < 1 || kv_heads < 1) return c.bad("q_num_heads and kv_num_heads are required for operands of rank 3");
    o.q = split_heads(c, o.q, heads);
    o.k = split_heads(c, o.k, kv_heads);
    o.v = split_heads(c, o.v, kv_heads);
  }
  const Dim &heads = c.b.shape(o.q)[1], &kv_heads = c.b.shape(o.k)[1];
  if (heads.is_const() && kv_heads.is_const() && (kv_heads.is(0) || heads.value() % kv_heads.value() != 0)) {
    return c.bad("the number of query heads must be a multiple of the key heads").found(fmt::format("{} and {}", heads.str(), kv_heads.str()));
  }
  if (c.has(4) != c.has(5)) return c.bad("past_key and past_value go together");
  if (c.has(4)) {
    if (c.rank(4) != 4 || c.rank(5) != 4) return c.bad("past_key and past_value must have rank 4");
    o.past = c.shape(4)[2];
    o.k = c.b.concat({c.in(4), o.k}, 2);
    o.v = c.b.concat({c.in(5), o.v}, 2);
  }
  return o;
}

// The mask operand, padded to all keys by what masks out; and where keys are padding, per batch row.
Result<ValueId> mask_of(NodeContext& c, const QueryKeyValue& o) {
  Dim keys = c.b.shape(o.k)[2];
  ValueId mask = -1;
  if (c.has(3)) {
    mask = c.in(3);
    int rank = c.rank(3);
    if (rank < 2 || rank > 4) return c.bad("attn_mask must have rank 2 to 4");
    Dim last = c.shape(3)[rank - 1];
    // A last axis of 1 broadcasts; a shorter one is padded.
    if (last.is_const() && !last.is(1) && !(last == keys)) {
      Shape lo(rank, Dim(0)), hi(rank, Dim(0));
      hi[rank - 1] = c.b.graph().facts.simplify(keys - last);
      bool boolean = c.dtype(3) == DType::Bool;
      mask = boolean ? c.b.cast(mask, DType::U8) : mask;
      mask = c.b.pad(mask, lo, hi, c.b.scalar(c.b.dtype(mask), boolean ? 0 : -INFINITY));
      mask = boolean ? c.b.cast(mask, DType::Bool) : mask;
    }
  }
  if (!c.has(6)) return mask;
  if (c.rank(6) != 1) return c.bad("nonpad_kv_seqlen must be a vector");
  Shape rows{c.shape(6)[0], Dim(1), Dim(1), keys};
  ValueId lengths = c.b.broadcast_in(c.b.cast(c.in(6), DType::I64), rows, {0});
  ValueId there = c.b.binary(Op::Lt, c.b.iota(DType::I64, rows, 3), lengths);
  if (mask < 0) return there;
  if (c.b.dtype(mask) == DType::Bool) return c.b.binary(Op::And, mask, there);
  return c.b.select(there, mask, c.b.scalar(c.b.dtype(mask), -INFINITY));
}

Result<void> attention(NodeContext& c) {
  QueryKeyValue o = WEFT_TRY(operands_of(c));
  WEFT_TRY(c.b.status());
  ops::AttentionSpec spec;
  const Dim& size = c.b.shape(o.q)[3];
  if (c.has_attr("scale")) {
    spec.scale = c.real("scale", 1);
  } else if (size.is_const() && !size.is(0)) {
    spec.scale = 1 / std::sqrt(static_cast<double>(size.value()));
  } else {
    return c.missing("a head size that is not known");
  }
  spec.softcap = c.real("softcap", 0);
  spec.causal = c.integer("is_causal", 0) != 0;
  spec.past = o.past;
  spec.softmax_dtype = c.dtype(0);
  if (c.has_attr("softmax_precision")) {
    auto wanted = dtype_from_onnx(c.integer("softmax_precision", 1));
    if (!wanted || !is_float(*wanted)) return c.bad("softmax_precision must be a float type");
    spec.softmax_dtype = *wanted;
  }
  std::int64_t shown = c.integer("qk_matmul_output_mode", 0);
  if (shown < 0 || shown > 3) return c.bad("qk_matmul_output_mode must be 0 to 3");
  ops::AttentionResult r = ops::attention(c.b, o.q, o.k, o.v, WEFT_TRY(mask_of(c, o)), spec);
  WEFT_TRY(c.b.status());
  c.out(0, c.rank(0) == 3 ? merge_heads(c, r.y) : r.y);
  c.out(1, o.k);
  c.out(2, o.v);
  const ValueId stages[] = {r.product, r.capped, r.biased, r.probabilities};
  c.out(3, stages[shown]);
  return {};
}

Result<void> rotary_embedding(NodeContext& c) {
  int rank = c.rank(0);
  if (rank != 3 && rank != 4) return c.bad("X must have rank 3 or 4");
  ValueId x = c.in(0);
  if (rank == 3) {
    std::int64_t heads = c.integer("num_heads", 0);
    if (heads < 1) return c.bad("num_heads is required for an input of rank 3");
    const Shape s = c.shape(0);
    x = c.b.reshape(x, {s[0], s[1], Dim(heads), floor_div(s[2], Dim(heads))});
  } else {
    x = c.b.transpose(x, {0, 2, 1, 3});
  }
  ValueId cosines = c.in(1), sines = c.in(2);
  if (c.has(3)) {
    cosines = c.b.gather(cosines, c.in(3), 0);
    sines = c.b.gather(sines, c.in(3), 0);
  }
  if (c.b.type(cosines).rank() != 3 || c.b.type(sines).rank() != 3) return c.bad("the caches must have rank 3, or 2 with position_ids");
  std::int64_t turned = c.integer("rotary_embedding_dim", 0);
  Dim half = turned > 0 ? Dim(turned / 2) : floor_div(c.b.shape(x)[3], Dim(2));
  const Shape angles{c.b.shape(x)[0], c.b.shape(x)[1], half};
  cosines = c.b.broadcast_to(cosines, angles);
  sines = c.b.broadcast_to(sines, angles);
  ValueId y = ops::rotary_embedding(c.b, x, cosines, sines, c.integer("interleaved", 0) != 0);
  c.out(0, rank == 3 ? c.b.reshape(y, c.shape(0)) : c.b.transpose(y, {0, 2, 1, 3}));
  return {};
}

// Writes `update` into the cache from write_indices[batch] on, along an axis; circular: modulo its length.
Result<void> tensor_scatter(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", -2), c.rank(0)));
  std::string mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.bad(fmt::format("unknown mode '{}'", mode));
  if (axis == 0 || c.rank(1) != c.rank(0)) return c.bad("the axis must not be the batch, and the ranks must agree");
  const Shape shape = c.shape(1);
  ValueId index = c.b.iota(DType::I64, shape, axis);
  if (c.has(2)) index = c.b.binary(Op::Add, index, c.b.broadcast_in(c.b.cast(c.in(2), DType::I64), shape, {0}));
  if (mode == "circular") {
    ValueId length = c.b.reshape(c.b.shape_value({c.shape(0)[axis]}), {});
    index = c.b.binary(Op::Mod, index, length);
  }
  Attrs attrs;
  attrs.set(Attr::Axis, axis).set(Attr::Combine, std::string("none"));
  c.out(0, c.b.node(Op::ScatterElements, {c.in(0), index, c.in(1)}, std::move(attrs)));
  return {};
}

// [batch, time, heads * size] -> [time, batch, heads, size] in f32
ValueId time_first(NodeContext& c, int i, Dim heads) {
  const Shape s = c.shape(i);
  ValueId x = c.b.cast(c.b.reshape(c.in(i), {s[0], s[1], heads, floor_div(s[2], heads)}), DType::F32);
  return c.b.transpose(x, {1, 0, 2, 3});
}

Result<void> linear_attention(NodeContext& c) {
  std::int64_t heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) return c.bad("q_num_heads must be a positive multiple of kv_num_heads");
  for (int i : {0, 1, 2}) {
    if (c.rank(i) != 3) return c.bad("query, key and value must have rank 3");
  }
  std::string rule = c.text("update_rule", "gated_delta");
  bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear") return c.bad(fmt::format("unknown update_rule '{}'", rule));
  if (decays != c.has(4) || corrects != c.has(5)) return c.bad(fmt::format("update_rule '{}' does not go with the operands given", rule));
  ValueId q = time_first(c, 0, heads), k = time_first(c, 1, kv_heads), v = time_first(c, 2, kv_heads);
  ValueId decay = decays ? time_first(c, 4, kv_heads) : -1;
  ValueId beta = corrects ? time_first(c, 5, c.shape(5)[2].is(1) ? 1 : kv_heads) : -1;
  const Dim key_size = c.b.shape(k)[3];
  ValueId state = c.has(3) ? c.b.cast(c.in(3), DType::F32)
                           : c.b.splat({DType::F32, {c.shape(0)[0], Dim(kv_heads), key_size, c.b.shape(v)[3]}}, 0);
  double scale = c.real("scale", 0);
  if (scale == 0) {
    if (!key_size.is_const() || key_size.is(0)) return c.missing("a key size that is not known");
    scale = 1 / std::sqrt(static_cast<double>(key_size.value()));
  }
  auto r = ops::linear_attention(c.b, q, k, v, decay, beta, state, scale);
  WEFT_TRY(c.b.status());
  const Shape y = c.b.shape(r.y);
  c.out(0, c.b.cast(c.b.reshape(c.b.transpose(r.y, {1, 0, 2, 3}), {y[1], y[0], y[2] * y[3]}), c.dtype(0)));
  c.out(1, c.b.cast(r.state, c.has(3) ? c.dtype(3) : c.dtype(0)));
  return {};
}

// A depthwise convolution over the past state and the input; the state is the last k - 1 positions.
Result<void> causal_conv(NodeContext& c) {
  if (c.rank(0) != 3 || c.rank(1) != 3) return c.bad("input and weight must have rank 3");
  std::string activation = c.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") return c.bad(fmt::format("unknown activation '{}'", activation));
  const Dim channels = c.shape(1)[0], taps = c.shape(1)[2];
  if (!channels.is_const() || !taps.is_const()) return c.missing("a kernel of symbolic size");
  DType t = c.dtype(0);
  const Shape s = c.shape(0);
  Dim kept = taps - 1;
  ValueId past = c.has(3) ? c.in(3) : c.b.splat({t, {s[0], s[1], kept}}, 0);
  ValueId padded = c.b.concat({past, c.in(0)}, 2);
  Attrs attrs;
  const std::vector<std::int64_t> one{1};
  attrs.set(Attr::Strides, one).set(Attr::Dilations, one).set(Attr::BaseDilations, one);
  attrs.set(Attr::Lo, Shape{0}).set(Attr::Hi, Shape{0}).set(Attr::Groups, channels.value());
  attrs.set(Attr::ChannelsLast, false).set(Attr::DType, t);
  ValueId y = c.b.node(Op::Conv, {padded, c.in(1)}, std::move(attrs));
  if (c.has(2)) y = c.b.binary(Op::Add, y, c.b.broadcast_in(c.in(2), c.b.shape(y), {1}));
  if (activation != "none") y = c.b.cast(ops::silu(c.b, c.b.cast(y, DType::F32)), t);
  c.out(0, y);
  c.out(1, c.b.slice_axis(padded, 2, c.b.shape(padded)[2] - kept, kept));
  return {};
}

constexpr OpEntry kAttentionOps[] = {
    {"Attention", 23, kOpsetMax, 3, 7,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision", attention},
    {"RotaryEmbedding", 23, kOpsetMax, 3, 4, "interleaved num_heads rotary_embedding_dim", rotary_embedding},
    {"TensorScatter", 24, kOpsetMax, 2, 3, "axis mode", tensor_scatter},
    {"LinearAttention", 27, kOpsetMax, 3, 6, "chunk_size kv_num_heads q_num_heads scale update_rule", linear_attention},
    {"CausalConvWithState", 27, kOpsetMax, 2, 4, "activation", causal_conv},
};

}  // namespace

OpTable attention_ops() { return {kAttentionOps, std::size(kAttentionOps)}; }

}  // namespace weft::onnx
