// Activations.
#include <cmath>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/activation.h"

namespace weft::onnx {

namespace {

using graph::Op;

Result<void> relu(NodeContext& c) {
  c.out(0, ops::relu(c.b, c.in(0)));
  return {};
}

Result<void> leaky_relu(NodeContext& c) {
  c.out(0, ops::leaky_relu(c.b, c.in(0), c.real("alpha", 0.01)));
  return {};
}

Result<void> prelu(NodeContext& c) {
  ValueId negative = c.b.binary(Op::Lt, c.in(0), c.b.scalar(c.dtype(0), 0));
  // The slope broadcasts to the input, never the other way round.
  // Before opset 7 a slope of one axis is one for each channel.
  const bool channels = c.opset() < 7 && c.rank(1) == 1 && c.rank(0) > 1 && !c.shape(1)[0].is(1);
  ValueId slope = channels ? c.b.broadcast_in(c.in(1), c.shape(0), {1}) : c.b.broadcast_to(c.in(1), c.shape(0));
  c.out(0, c.b.select(negative, c.b.binary(Op::Mul, c.in(0), slope), c.in(0)));
  return {};
}

Result<void> clip(NodeContext& c) {
  ValueId lo = -1, hi = -1;
  if (c.opset() < 11) {
    if (c.has_attr("min")) lo = c.b.scalar(c.dtype(0), c.real("min", 0));
    if (c.has_attr("max")) hi = c.b.scalar(c.dtype(0), c.real("max", 0));
  } else {
    if (c.has_attr("min") || c.has_attr("max")) return c.bad("min and max are operands since opset 11");
    if (c.has(1)) lo = c.b.reshape(c.in(1), {});
    if (c.has(2)) hi = c.b.reshape(c.in(2), {});
  }
  c.out(0, ops::clip(c.b, c.in(0), lo, hi));
  return {};
}

Result<void> elu(NodeContext& c) {
  c.out(0, ops::elu(c.b, c.in(0), c.real("alpha", 1)));
  return {};
}

Result<void> celu(NodeContext& c) {
  // max(0, x) + min(0, alpha (exp(x / alpha) - 1))
  DType t = c.dtype(0);
  double alpha = c.real("alpha", 1);
  ValueId e = c.b.unary(Op::Expm1, c.b.binary(Op::Div, c.in(0), c.b.scalar(t, alpha)));
  ValueId low = c.b.binary(Op::Min, c.b.binary(Op::Mul, e, c.b.scalar(t, alpha)), c.b.scalar(t, 0));
  c.out(0, c.b.binary(Op::Add, ops::relu(c.b, c.in(0)), low));
  return {};
}

Result<void> selu(NodeContext& c) {
  const bool exact = c.opset() >= 6;  // before, the defaults were written with four digits
  double alpha = c.real("alpha", exact ? 1.67326319217681884765625 : 1.6732);
  double gamma = c.real("gamma", exact ? 1.05070102214813232421875 : 1.0507);
  c.out(0, c.b.binary(Op::Mul, ops::elu(c.b, c.in(0), alpha), c.b.scalar(c.dtype(0), gamma)));
  return {};
}

Result<void> hard_sigmoid(NodeContext& c) {
  c.out(0, ops::hard_sigmoid(c.b, c.in(0), c.real("alpha", 0.2), c.real("beta", 0.5)));
  return {};
}

Result<void> hard_swish(NodeContext& c) {
  c.out(0, c.b.binary(Op::Mul, c.in(0), ops::hard_sigmoid(c.b, c.in(0), 1.0 / 6, 0.5)));
  return {};
}

Result<void> gelu(NodeContext& c) {
  std::string form = c.text("approximate", "none");
  if (form != "none" && form != "tanh") return c.bad("approximate must be none or tanh");
  c.out(0, ops::gelu(c.b, c.in(0), form == "tanh"));
  return {};
}

Result<void> swish(NodeContext& c) {
  ValueId scaled = c.b.binary(Op::Mul, c.in(0), c.b.scalar(c.dtype(0), c.real("alpha", 1)));
  c.out(0, c.b.binary(Op::Mul, c.in(0), c.b.unary(Op::Sigmoid, scaled)));
  return {};
}

Result<void> mish(NodeContext& c) {
  c.out(0, c.b.binary(Op::Mul, c.in(0), c.b.unary(Op::Tanh, ops::softplus(c.b, c.in(0)))));
  return {};
}

Result<void> softplus(NodeContext& c) {
  c.out(0, ops::softplus(c.b, c.in(0)));
  return {};
}

Result<void> softsign(NodeContext& c) {
  ValueId one_more = c.b.binary(Op::Add, c.b.unary(Op::Abs, c.in(0)), c.b.scalar(c.dtype(0), 1));
  c.out(0, c.b.binary(Op::Div, c.in(0), one_more));
  return {};
}

Result<void> thresholded_relu(NodeContext& c) {
  ValueId above = c.b.binary(Op::Gt, c.in(0), c.b.scalar(c.dtype(0), c.real("alpha", 1)));
  c.out(0, c.b.select(above, c.in(0), c.b.scalar(c.dtype(0), 0)));
  return {};
}

// x < -lambd ? x + bias : x > lambd ? x - bias : 0
Result<void> shrink(NodeContext& c) {
  DType t = c.dtype(0);
  double bias = c.real("bias", 0), lambd = c.real("lambd", 0.5);
  ValueId low = c.b.binary(Op::Lt, c.in(0), c.b.scalar(t, -lambd));
  ValueId high = c.b.binary(Op::Gt, c.in(0), c.b.scalar(t, lambd));
  ValueId up = c.b.binary(Op::Add, c.in(0), c.b.scalar(t, bias));
  ValueId down = c.b.binary(Op::Sub, c.in(0), c.b.scalar(t, bias));
  c.out(0, c.b.select(low, up, c.b.select(high, down, c.b.scalar(t, 0))));
  return {};
}

constexpr OpEntry kActivationOps[] = {
    {"Relu", 1, kOpsetMax, 1, 1, "", relu},
    {"LeakyRelu", 1, kOpsetMax, 1, 1, "alpha", leaky_relu},
    {"PRelu", 1, kOpsetMax, 2, 2, "", prelu},
    {"Clip", 1, kOpsetMax, 1, 3, "min max", clip},
    {"Elu", 1, kOpsetMax, 1, 1, "alpha", elu},
    {"Celu", 12, kOpsetMax, 1, 1, "alpha", celu},
    {"Selu", 1, kOpsetMax, 1, 1, "alpha gamma", selu},
    {"HardSigmoid", 1, kOpsetMax, 1, 1, "alpha beta", hard_sigmoid},
    {"HardSwish", 14, kOpsetMax, 1, 1, "", hard_swish},
    {"Gelu", 20, kOpsetMax, 1, 1, "approximate", gelu},
    {"Swish", 24, kOpsetMax, 1, 1, "alpha", swish},
    {"Mish", 18, kOpsetMax, 1, 1, "", mish},
    {"Softplus", 1, kOpsetMax, 1, 1, "", softplus},
    {"Softsign", 1, kOpsetMax, 1, 1, "", softsign},
    {"ThresholdedRelu", 10, kOpsetMax, 1, 1, "alpha", thresholded_relu},
    {"Shrink", 9, kOpsetMax, 1, 1, "bias lambd", shrink},
};

}  // namespace

OpTable activation_ops() { return {kActivationOps, std::size(kActivationOps)}; }

}  // namespace weft::onnx
