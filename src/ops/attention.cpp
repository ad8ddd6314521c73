#include "ops/attention.h"

#include <cmath>

#include "ops/norm.h"

namespace weft::ops {

using graph::Attr;
using graph::Attrs;
using graph::Op;

namespace {

// A mask of rank 2 to 4 with the heads split into [kv heads, group].
ValueId grouped_mask(Builder& b, ValueId mask, const Dim& kv_heads, const Dim& group) {
  Shape s = b.shape(mask);
  s.insert(s.begin(), 4 - s.size(), Dim(1));
  bool shared = s[1].is(1);
  return b.reshape(mask, {s[0], shared ? Dim(1) : kv_heads, shared ? Dim(1) : group, s[2], s[3]});
}

// bool [queries, keys]: which keys a query sees.
ValueId causal_mask(Builder& b, const Dim& queries, const Dim& keys, const Dim& past) {
  Shape matrix{queries, keys};
  ValueId last = b.binary(Op::Add, b.iota(DType::I64, matrix, 0), b.reshape(b.shape_value({past}), {}));
  return b.binary(Op::Le, b.iota(DType::I64, matrix, 1), last);
}

ValueId masked(Builder& b, ValueId scores, ValueId mask) {
  if (b.dtype(mask) != DType::Bool) return b.binary(Op::Add, scores, b.cast(mask, b.dtype(scores)));
  return b.select(mask, scores, b.scalar(b.dtype(scores), -INFINITY));
}

// Wide types take the scale on the queries; narrow ones half on either side, where it keeps the product in range.
void scale_operands(Builder& b, ValueId& q, ValueId& k, double scale) {
  DType t = b.dtype(q);
  if (bits(t) >= 32) {
    q = b.binary(Op::Mul, q, b.scalar(t, scale));
    return;
  }
  q = b.binary(Op::Mul, q, b.scalar(t, std::sqrt(scale)));
  k = b.binary(Op::Mul, k, b.scalar(t, std::sqrt(scale)));
}

std::vector<ValueId> attention_body(Builder& b, const std::vector<ValueId>& in, const AttentionSpec& spec) {
  ValueId q = in[0], k = in[1], v = in[2];
  const Shape qs = b.shape(q), ks = b.shape(k), vs = b.shape(v);
  DType t = b.dtype(q);
  Dim group = floor_div(qs[1], ks[1]);
  scale_operands(b, q, k, spec.scale);
  q = b.reshape(q, {qs[0], ks[1], group, qs[2], qs[3]});
  ValueId product = b.dot(q, k, {0, 1}, {0, 1}, {4}, {3}, t);
  ValueId capped = product;
  if (spec.softcap > 0) {
    ValueId cap = b.scalar(t, spec.softcap);
    capped = b.binary(Op::Mul, b.unary(Op::Tanh, b.binary(Op::Div, product, cap)), cap);
  }
  ValueId biased = capped;
  if (in.size() > 3) biased = masked(b, biased, grouped_mask(b, in[3], ks[1], group));
  if (spec.causal) biased = masked(b, biased, causal_mask(b, qs[2], ks[2], spec.past));
  ValueId probabilities = b.cast(softmax(b, b.cast(biased, spec.softmax_dtype), {4}), t);
  ValueId y = b.dot(probabilities, v, {0, 1}, {0, 1}, {4}, {2}, t);
  Shape scores{qs[0], qs[1], qs[2], ks[2]};
  return {b.reshape(y, {qs[0], qs[1], qs[2], vs[3]}), b.reshape(product, scores), b.reshape(capped, scores),
          b.reshape(biased, scores), b.reshape(probabilities, scores)};
}

}  // namespace

AttentionResult attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId mask, const AttentionSpec& spec) {
  std::vector<ValueId> operands{q, k, v};
  if (mask >= 0) operands.push_back(mask);
  auto results = composite(b, "attention", operands, [&](Builder& inner, const std::vector<ValueId>& in) {
    return attention_body(inner, in, spec);
  });
  if (results.size() != 5) return {-1, -1, -1, -1, -1};
  return {results[0], results[1], results[2], results[3], results[4]};
}

ValueId rotary_embedding(Builder& b, ValueId x, ValueId cosines, ValueId sines, bool interleaved) {
  return composite1(b, "rotary_embedding", {x, cosines, sines}, [&](Builder& b, const std::vector<ValueId>& in) {
    const Shape s = b.shape(in[0]);
    Dim half = b.shape(in[1])[2];
    Shape part{s[0], s[1], s[2], half};
    ValueId turned = b.slice_axis(in[0], 3, 0, half * 2);
    ValueId first = interleaved ? b.slice_axis(turned, 3, 0, half, 2) : b.slice_axis(turned, 3, 0, half);
    ValueId second = interleaved ? b.slice_axis(turned, 3, 1, half, 2) : b.slice_axis(turned, 3, half, half);
    ValueId c = b.broadcast_in(in[1], part, {0, 1, 3}), d = b.broadcast_in(in[2], part, {0, 1, 3});
    ValueId real = b.binary(Op::Sub, b.binary(Op::Mul, c, first), b.binary(Op::Mul, d, second));
    ValueId imaginary = b.binary(Op::Add, b.binary(Op::Mul, d, first), b.binary(Op::Mul, c, second));
    ValueId y;
    if (interleaved) {
      Shape pair = part;
      pair.push_back(1);
      y = b.concat({b.reshape(real, pair), b.reshape(imaginary, pair)}, 4);
      y = b.reshape(y, {s[0], s[1], s[2], half * 2});
    } else {
      y = b.concat({real, imaginary}, 3);
    }
    Dim rest = s[3] - half * 2;
    return rest.is(0) ? y : b.concat({y, b.slice_axis(in[0], 3, half * 2, rest)}, 3);
  });
}

namespace {

// One step; in: state, then slices of q, k, v, and of decay and beta when there are any.
std::vector<ValueId> linear_step(Builder& b, const std::vector<ValueId>& in, bool decays, bool corrects, double scale) {
  ValueId state = in[0], q = in[1], k = in[2], v = in[3];
  const Shape s = b.shape(state), heads = b.shape(q);
  auto column = [&](ValueId x) {
    Shape shape = b.shape(x);
    shape.push_back(1);
    return b.reshape(x, shape);
  };
  if (decays) state = b.binary(Op::Mul, state, b.unary(Op::Exp, column(in[4])));
  if (corrects) {
    ValueId known = b.dot(k, state, {0, 1}, {0, 1}, {2}, {2}, DType::F32);
    v = b.binary(Op::Mul, in[decays ? 5 : 4], b.binary(Op::Sub, v, known));
  }
  ValueId row = b.reshape(v, {s[0], s[1], Dim(1), s[3]});
  state = b.binary(Op::Add, state, b.binary(Op::Mul, column(k), row));
  ValueId grouped = b.reshape(q, {s[0], s[1], floor_div(heads[1], s[1]), s[2]});
  ValueId y = b.reshape(b.dot(grouped, state, {0, 1}, {0, 1}, {3}, {2}, DType::F32), {s[0], heads[1], s[3]});
  return {state, b.binary(Op::Mul, y, b.scalar(DType::F32, scale))};
}

}  // namespace

LinearAttentionResult linear_attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId decay, ValueId beta,
                                       ValueId state, double scale) {
  std::vector<ValueId> operands{state, q, k, v};
  if (decay >= 0) operands.push_back(decay);
  if (beta >= 0) operands.push_back(beta);
  auto region = std::make_shared<graph::Graph>();
  region->name = "linear_attention_step";
  region->facts = b.graph().facts;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    graph::Type type = b.type(operands[i]);
    if (i > 0 && !type.shape.empty()) type.shape.erase(type.shape.begin());
    inputs.push_back(region->add_input(type));
  }
  Builder inner(*region);
  inner.set_origin(b.origin());
  region->set_outputs(linear_step(inner, inputs, decay >= 0, beta >= 0, scale));
  if (auto status = inner.status(); !status.ok()) {
    b.fail(status.error());
    return {-1, -1};
  }
  Attrs attrs;
  attrs.set(Attr::Carried, std::int64_t{1}).set(Attr::Xs, static_cast<std::int64_t>(operands.size()) - 1);
  auto results = b.nodes(Op::Scan, operands, std::move(attrs), {region});
  if (results.size() != 2) return {-1, -1};
  return {results[1], results[0]};
}

}  // namespace weft::ops
