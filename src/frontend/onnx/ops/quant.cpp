// Quantisation, and arithmetic on quantised tensors. Rounding is to nearest, ties to even, before the zero point is
// added; results saturate.
#include <fmt/format.h>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/ops/conv.h"
#include "frontend/onnx/ops/unfolded.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/quantize.h"

namespace weft::onnx {

namespace {

using graph::Op;
using ops::to_integers;

// A scale or zero point spread over `shape`: one for all, one per index of the axis, or one per block along it.
Result<ValueId> spread(NodeContext& c, int operand, const Shape& shape, const char* what) {
  ValueId v = c.in(operand);
  const Shape from = c.b.shape(v);
  std::int64_t block = c.integer("block_size", 0);
  if (from.empty() || product(from).is(1)) return c.b.broadcast_in(c.b.reshape(v, {}), shape, {});
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 1), static_cast<int>(shape.size())));
  if (from.size() == 1) return c.b.broadcast_in(v, shape, {axis});
  if (block < 1 || from.size() != shape.size()) {
    return c.bad(fmt::format("{} must be a scalar, a vector, or given per block", what)).found(str(from));
  }
  Shape split = shape, joined = shape;
  split[axis] = from[axis];
  split.insert(split.begin() + axis + 1, Dim(block));
  joined[axis] = from[axis] * block;
  std::vector<std::int64_t> axes;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(split.size()); ++d) {
    if (d != axis + 1) axes.push_back(d);
  }
  v = c.b.reshape(c.b.broadcast_in(v, split, axes), joined);
  return c.b.slice_axis(v, axis, 0, shape[axis]);
}

Result<DType> type_attribute(NodeContext& c, const char* name, DType fallback) {
  std::int64_t number = c.integer(name, 0);
  if (number == 0) return fallback;
  auto t = dtype_from_onnx(number);
  if (!t) return c.bad(fmt::format("{}: unknown element type {}", name, number));
  return *t;
}

Result<void> quantize(NodeContext& c) {
  const Shape shape = c.shape(0);
  DType to = WEFT_TRY(type_attribute(c, "output_dtype", DType::U8));
  if (c.has(2)) {
    if (c.integer("output_dtype", 0) != 0 && to != c.dtype(2)) return c.bad("output_dtype differs from the zero point's type");
    to = c.dtype(2);
  }
  DType compute = WEFT_TRY(type_attribute(c, "precision", c.dtype(1)));
  if (!is_float(compute)) return c.bad("the division needs a float type");
  ValueId scale = c.b.cast(WEFT_TRY(spread(c, 1, shape, "y_scale")), compute);
  ValueId x = c.b.binary(Op::Div, c.b.cast(c.in(0), compute), scale);
  ValueId zero_point = c.has(2) ? WEFT_TRY(spread(c, 2, shape, "y_zero_point")) : -1;
  if (is_int(to)) {
    c.out(0, to_integers(c.b, x, zero_point, to));
    return {};
  }
  if (!is_float(to)) return c.bad("the result must be integers or floats");
  if (zero_point >= 0) x = c.b.binary(Op::Add, x, c.b.cast(zero_point, compute));
  c.out(0, c.b.cast(x, to, c.integer("saturate", 1) != 0));
  return {};
}

Result<void> dequantize(NodeContext& c) {
  const Shape shape = c.shape(0);
  DType to = WEFT_TRY(type_attribute(c, "output_dtype", c.dtype(1)));
  DType compute = bits(to) > 32 || bits(c.dtype(1)) > 32 ? DType::F64 : DType::F32;
  ValueId x = c.in(0);
  const Unfolded unfolded(c.b);
  // The difference of integers is taken exactly.
  DType difference = is_int(c.dtype(0)) ? DType::I32 : compute;
  x = c.b.cast(x, difference);
  if (c.has(2)) {
    if (c.dtype(2) != c.dtype(0)) return c.bad("the zero point has another type than x");
    x = c.b.binary(Op::Sub, x, c.b.cast(WEFT_TRY(spread(c, 2, shape, "x_zero_point")), difference));
  }
  ValueId scale = c.b.cast(WEFT_TRY(spread(c, 1, shape, "x_scale")), compute);
  c.out(0, c.b.cast(c.b.binary(Op::Mul, c.b.cast(x, compute), scale), to));
  return {};
}

Result<void> dynamic_quantize(NodeContext& c) {
  const ops::Quantized q = ops::quantize_dynamically(c.b, c.in(0));
  c.out(0, q.values);
  c.out(1, q.scale);
  c.out(2, q.zero_point);
  return {};
}

// A scalar, or a vector along `axis` of a tensor of this rank: as what broadcasts to it. Any other rank stands as it is.
ValueId along(NodeContext& c, ValueId v, int rank, int axis) {
  if (product(c.b.shape(v)).is(1)) return c.b.reshape(v, {});
  if (c.b.type(v).rank() != 1 || rank < 2) return v;
  Shape shape(rank, Dim(1));
  shape[axis < 0 ? axis + rank : axis] = c.b.shape(v)[0];
  return c.b.reshape(v, shape);
}

// The operand less its zero point, as i32. A zero point per row stands on axis -2, per column on axis -1.
ValueId centred(NodeContext& c, int operand, int zero_point, int axis) {
  const Unfolded unfolded(c.b);
  ValueId x = c.b.cast(c.in(operand), DType::I32);
  if (!c.has(zero_point)) return x;
  ValueId zero = along(c, c.b.cast(c.in(zero_point), DType::I32), c.rank(operand), axis);
  return c.b.binary(Op::Sub, x, zero);
}

// sums * (a_scale * b_scale / y_scale), as integers of y_zero_point's type.
ValueId rescaled(NodeContext& c, ValueId sums, ValueId a_scale, ValueId b_scale, int y_scale, int y_zero_point) {
  ValueId factor = c.b.binary(Op::Mul, c.b.cast(a_scale, DType::F32), c.b.cast(b_scale, DType::F32));
  factor = c.b.binary(Op::Div, factor, c.b.cast(c.b.reshape(c.in(y_scale), {}), DType::F32));
  ValueId y = c.b.binary(Op::Mul, c.b.cast(sums, DType::F32), factor);
  return to_integers(c.b, y, c.b.reshape(c.in(y_zero_point), {}), c.dtype(y_zero_point));
}

Result<void> matmul_integer(NodeContext& c) {
  c.out(0, c.b.matmul(centred(c, 0, 2, -2), centred(c, 1, 3, -1)));
  return {};
}

Result<void> qlinear_matmul(NodeContext& c) {
  ValueId sums = c.b.matmul(centred(c, 0, 2, -2), centred(c, 3, 5, -1));
  ValueId a_scale = along(c, c.in(1), c.rank(0), -2), b_scale = along(c, c.in(4), c.rank(3), -1);
  c.out(0, rescaled(c, sums, a_scale, b_scale, 6, 7));
  return {};
}

Result<void> conv_integer(NodeContext& c) {
  c.out(0, WEFT_TRY(convolution(c, centred(c, 0, 2, 1), centred(c, 1, 3, 0), DType::I32)));
  return {};
}

Result<void> qlinear_conv(NodeContext& c) {
  ValueId sums = WEFT_TRY(convolution(c, centred(c, 0, 2, 1), centred(c, 3, 5, 0), DType::I32));
  if (c.has(8)) sums = c.b.binary(Op::Add, sums, c.b.broadcast_in(c.in(8), c.b.shape(sums), {1}));
  ValueId w_scale = along(c, c.in(4), c.rank(0), 1);
  c.out(0, rescaled(c, sums, c.b.reshape(c.in(1), {}), w_scale, 6, 7));
  return {};
}

constexpr OpEntry kQuantOps[] = {
    {"QuantizeLinear", 10, kOpsetMax, 2, 3, "axis block_size output_dtype precision saturate", quantize},
    {"DequantizeLinear", 10, kOpsetMax, 2, 3, "axis block_size output_dtype", dequantize},
    {"DynamicQuantizeLinear", 11, kOpsetMax, 1, 1, "", dynamic_quantize},
    {"MatMulInteger", 10, kOpsetMax, 2, 4, "", matmul_integer},
    {"QLinearMatMul", 10, kOpsetMax, 8, 8, "", qlinear_matmul},
    {"ConvInteger", 10, kOpsetMax, 2, 4, "auto_pad dilations group kernel_shape pads strides", conv_integer},
    {"QLinearConv", 10, kOpsetMax, 8, 9, "auto_pad dilations group kernel_shape pads strides", qlinear_conv},
};

}  // namespace

OpTable quant_ops() { return {kQuantOps, std::size(kQuantOps)}; }

}  // namespace weft::onnx
