#include "ops/recurrent.h"

#include "ops/activation.h"
#include "ops/quantize.h"

namespace weft::ops {

using graph::Attr;
using graph::Attrs;
using graph::Op;

namespace {

ValueId activate(Builder& b, const GateActivation& a, ValueId x) {
  using Kind = GateActivation::Kind;
  DType t = b.dtype(x);
  auto scaled = [&](ValueId v, double by) { return b.binary(Op::Mul, v, b.scalar(t, by)); };
  switch (a.kind) {
    case Kind::Relu: return relu(b, x);
    case Kind::Tanh: return b.unary(Op::Tanh, x);
    case Kind::Sigmoid: return b.unary(Op::Sigmoid, x);
    case Kind::Affine: return b.binary(Op::Add, scaled(x, a.alpha), b.scalar(t, a.beta));
    case Kind::LeakyRelu: return leaky_relu(b, x, a.alpha);
    case Kind::ThresholdedRelu: {
      ValueId above = b.binary(Op::Gt, x, b.scalar(t, a.alpha));
      return b.select(above, x, b.scalar(t, 0));
    }
    case Kind::ScaledTanh: return scaled(b.unary(Op::Tanh, scaled(x, a.beta)), a.alpha);
    case Kind::HardSigmoid: return hard_sigmoid(b, x, a.alpha, a.beta);
    case Kind::Elu: return elu(b, x, a.alpha);
    case Kind::Softsign:
      return b.binary(Op::Div, x, b.binary(Op::Add, b.unary(Op::Abs, x), b.scalar(t, 1)));
    case Kind::Softplus: return softplus(b, x);
  }
  return -1;
}

// Weights [gates * hidden, k], which are quantised when there is a scale.
struct Weights {
  ValueId values, scale, zero;
};

// x [..., k] times weights'
ValueId weighted(Builder& b, ValueId x, const Weights& weights) {
  const DType t = b.dtype(x);
  const std::int64_t last = b.type(x).rank() - 1;
  if (weights.scale < 0) return b.dot(x, weights.values, {}, {}, {last}, {1}, t);
  const Quantized q = quantize_dynamically(b, x);
  const auto centred = [&](ValueId v, ValueId zero) { return b.binary(Op::Sub, b.cast(v, DType::I32), b.cast(zero, DType::I32)); };
  const ValueId sums = b.dot(centred(q.values, q.zero_point), centred(weights.values, weights.zero), {}, {}, {last}, {1}, DType::I32);
  return b.binary(Op::Mul, b.cast(sums, t), b.binary(Op::Mul, weights.scale, q.scale));
}

// What one step sees, inside the scan's region.
struct Step {
  Builder& b;
  const Recurrence& spec;
  std::int64_t hidden;
  ValueId gates;                        // [batch, gates * hidden]: inputs and biases, without the state's part
  ValueId h, c;
  Weights r;
  ValueId r_bias, peephole, valid;      // valid: bool [batch]

  ValueId part(ValueId v, std::int64_t k, std::int64_t count = 1) const {
    return b.slice_axis(v, b.type(v).rank() - 1, k * hidden, count * hidden);
  }
  Weights rows(std::int64_t k, std::int64_t count) const { return {b.slice_axis(r.values, 0, k * hidden, count * hidden), r.scale, r.zero}; }
  ValueId add(ValueId x, ValueId y) const { return b.binary(Op::Add, x, y); }
  ValueId mul(ValueId x, ValueId y) const { return b.binary(Op::Mul, x, y); }
  ValueId one_less(ValueId x) const { return b.binary(Op::Sub, b.scalar(b.dtype(x), 1), x); }
  // state @ weights'
  ValueId product(ValueId state, const Weights& weights) const { return weighted(b, state, weights); }
  ValueId act(int which, ValueId x) const {
    if (spec.clip > 0) {
      DType t = b.dtype(x);
      x = clip(b, x, b.scalar(t, -spec.clip), b.scalar(t, spec.clip));
    }
    return activate(b, spec.activations[which], x);
  }
};

struct State {
  ValueId h, c;
};

State rnn_step(const Step& s) { return {s.act(0, s.add(s.gates, s.product(s.h, s.r))), -1}; }

State gru_step(const Step& s) {
  ValueId linear;  // the hidden gate's input
  ValueId update, reset;
  if (s.spec.linear_before_reset) {
    // One product serves all three gates.
    ValueId all = s.product(s.h, s.r);
    ValueId both = s.act(0, s.add(s.part(s.gates, 0, 2), s.part(all, 0, 2)));
    update = s.part(both, 0);
    reset = s.part(both, 1);
    ValueId state = s.part(all, 2);
    if (s.r_bias >= 0) state = s.add(state, s.part(s.r_bias, 2));
    linear = s.mul(reset, state);
  } else {
    ValueId both = s.act(0, s.add(s.part(s.gates, 0, 2), s.product(s.h, s.rows(0, 2))));
    update = s.part(both, 0);
    reset = s.part(both, 1);
    linear = s.product(s.mul(reset, s.h), s.rows(2, 1));
  }
  ValueId candidate = s.act(1, s.add(s.part(s.gates, 2), linear));
  return {s.add(s.mul(s.one_less(update), candidate), s.mul(update, s.h)), -1};
}

State lstm_step(const Step& s) {
  ValueId gates = s.add(s.gates, s.product(s.h, s.r));
  auto peek = [&](ValueId gate, int k, ValueId cell) {
    return s.peephole < 0 ? gate : s.add(gate, s.mul(cell, s.part(s.peephole, k)));
  };
  ValueId input = s.act(0, peek(s.part(gates, 0), 0, s.c));
  ValueId forget = s.spec.input_forget ? s.one_less(input) : s.act(0, peek(s.part(gates, 2), 2, s.c));
  ValueId candidate = s.act(1, s.part(gates, 3));
  ValueId cell = s.add(s.mul(forget, s.c), s.mul(input, candidate));
  ValueId output = s.act(0, peek(s.part(gates, 1), 1, cell));
  return {s.mul(output, s.act(2, cell)), cell};
}

ValueId reversed(Builder& b, ValueId x) {
  return b.node(Op::Reverse, {x}, Attrs().set(Attr::Axes, std::vector<std::int64_t>{0}));
}

// The inputs' part of all gates at all steps, with the biases that can be added here.
ValueId input_gates(Builder& b, const Recurrence& spec, std::int64_t hidden) {
  ValueId gates = weighted(b, spec.x, {spec.w, spec.w_scale, spec.w_zero});
  if (spec.w_bias >= 0) gates = b.binary(Op::Add, gates, spec.w_bias);
  if (spec.r_bias >= 0) {
    ValueId bias = spec.r_bias;
    if (spec.cell == Cell::Gru && spec.linear_before_reset) {
      // The hidden gate's is added inside, before the reset gate acts.
      ValueId zero = b.splat({b.dtype(bias), {Dim(hidden)}}, 0);
      bias = b.concat({b.slice_axis(bias, 0, 0, 2 * hidden), zero}, 0);
    }
    gates = b.binary(Op::Add, gates, bias);
  }
  return gates;
}

struct Operands {
  std::vector<ValueId> carried, xs, captures;
  std::vector<ValueId> all() const {
    std::vector<ValueId> list = carried;
    list.insert(list.end(), xs.begin(), xs.end());
    list.insert(list.end(), captures.begin(), captures.end());
    return list;
  }
};

// Whether a step needs the state's bias by itself.
bool has_inner_bias(const Recurrence& spec) {
  return spec.cell == Cell::Gru && spec.linear_before_reset && spec.r_bias >= 0;
}

Operands operands_of(Builder& b, const Recurrence& spec, std::int64_t hidden) {
  Operands o;
  o.carried.push_back(spec.h);
  if (spec.cell == Cell::Lstm) o.carried.push_back(spec.c);
  o.xs.push_back(input_gates(b, spec, hidden));
  if (spec.lengths >= 0) {
    Shape steps{b.shape(spec.x)[0], b.shape(spec.x)[1]};
    ValueId time = b.iota(DType::I64, steps, 0);
    ValueId lengths = b.broadcast_in(b.cast(spec.lengths, DType::I64), steps, {1});
    o.xs.push_back(b.node(Op::Lt, {time, lengths}));
  }
  if (spec.reverse) {
    for (ValueId& v : o.xs) v = reversed(b, v);
  }
  o.captures.push_back(spec.r);
  if (spec.r_scale >= 0) o.captures.insert(o.captures.end(), {spec.r_scale, spec.r_zero});
  if (has_inner_bias(spec)) o.captures.push_back(spec.r_bias);
  if (spec.peephole >= 0) o.captures.push_back(spec.peephole);
  return o;
}

// One step over the region's inputs, which stand in the order of Operands::all().
void build_step(Builder& b, const Recurrence& spec, std::int64_t hidden, const Operands& o) {
  const std::vector<ValueId> in = b.graph().inputs();
  std::size_t next = 0;
  auto take = [&](bool there) { return there ? in[next++] : -1; };
  Step s{b, spec, hidden, -1, -1, -1, {-1, -1, -1}, -1, -1, -1};
  s.h = take(true);
  s.c = take(spec.cell == Cell::Lstm);
  s.gates = take(true);
  s.valid = take(o.xs.size() == 2);
  s.r.values = take(true);
  s.r.scale = take(spec.r_scale >= 0);
  s.r.zero = take(spec.r_scale >= 0);
  s.r_bias = take(has_inner_bias(spec));
  s.peephole = take(spec.peephole >= 0);
  State state = spec.cell == Cell::Rnn ? rnn_step(s) : spec.cell == Cell::Gru ? gru_step(s) : lstm_step(s);
  ValueId y = state.h;
  if (s.valid >= 0) {
    ValueId valid = b.broadcast_in(s.valid, b.shape(s.h), {0});
    y = b.select(valid, state.h, b.scalar(b.dtype(s.h), 0));
    state.h = b.select(valid, state.h, s.h);
    if (state.c >= 0) state.c = b.select(valid, state.c, s.c);
  }
  std::vector<ValueId> outputs{state.h};
  if (state.c >= 0) outputs.push_back(state.c);
  outputs.push_back(y);
  b.graph().set_outputs(outputs);
}

}  // namespace

Recurred recur(Builder& b, const Recurrence& spec) {
  const Shape& weights = b.shape(spec.r);
  if (weights.size() != 2 || !weights[1].is_const()) {
    b.fail(unsupported("symbolic-hidden-size", "a recurrence whose hidden size is not known"));
    return {-1, -1, -1};
  }
  std::int64_t hidden = weights[1].value();
  Operands o = operands_of(b, spec, hidden);
  if (!b.status().ok()) return {-1, -1, -1};
  auto region = std::make_shared<graph::Graph>();
  region->name = "step";
  region->facts = b.graph().facts;
  for (ValueId v : o.carried) region->add_input(b.type(v));
  for (ValueId v : o.xs) {
    graph::Type slice = b.type(v);
    slice.shape.erase(slice.shape.begin());
    region->add_input(slice);
  }
  for (ValueId v : o.captures) region->add_input(b.type(v));
  Builder inner(*region);
  inner.set_origin(b.origin());
  build_step(inner, spec, hidden, o);
  if (auto status = inner.status(); !status.ok()) {
    b.fail(status.error());
    return {-1, -1, -1};
  }
  Attrs attrs;
  attrs.set(Attr::Carried, static_cast<std::int64_t>(o.carried.size()));
  attrs.set(Attr::Xs, static_cast<std::int64_t>(o.xs.size()));
  auto results = b.nodes(Op::Scan, o.all(), std::move(attrs), {region});
  if (results.size() != o.carried.size() + 1 || !b.status().ok()) return {-1, -1, -1};
  ValueId y = spec.reverse ? reversed(b, results.back()) : results.back();
  return {y, results[0], spec.cell == Cell::Lstm ? results[1] : -1};
}

}  // namespace weft::ops
