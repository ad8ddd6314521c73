// Elementwise operators that are one prim: arithmetic, comparison, logic, bits.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;

template <Op op>
Result<void> unary(NodeContext& c) {
  c.out(0, c.b.unary(op, c.in(0)));
  return {};
}

template <Op op>
Result<void> binary(NodeContext& c) {
  c.out(0, c.b.binary(op, c.in(0), c.in(1)));
  return {};
}

// Before opset 7 the second operand stretches only where `broadcast` says so: from `axis` of the first on, or at its end.
Result<ValueId> stretched_operand(NodeContext& c) {
  const ValueId x = c.in(1);
  if (c.integer("broadcast", 0) == 0) return x;
  const int rank = c.rank(0), own = c.rank(1);
  if (own > rank) return c.bad("the second operand has more axes than the first");
  if (!c.has_attr("axis")) return c.b.broadcast_to(x, c.shape(0));
  const std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), rank));
  if (axis + own > rank) return c.bad("the second operand does not fit at the axis");
  std::vector<std::int64_t> axes(own);
  std::iota(axes.begin(), axes.end(), axis);
  return c.b.broadcast_in(x, c.shape(0), axes);
}

template <Op op>
Result<void> binary_before_7(NodeContext& c) {
  c.out(0, c.b.binary(op, c.in(0), WEFT_TRY(stretched_operand(c))));
  return {};
}

// Max, Min, Sum and Mean take any number of operands.
template <Op op>
Result<void> variadic(NodeContext& c) {
  ValueId result = c.in(0);
  for (int i = 1; i < c.input_count(); ++i) result = c.b.binary(op, result, c.in(i));
  c.out(0, result);
  return {};
}

Result<void> mean_of_inputs(NodeContext& c) {
  ValueId sum = c.in(0);
  for (int i = 1; i < c.input_count(); ++i) sum = c.b.binary(Op::Add, sum, c.in(i));
  c.out(0, c.b.binary(Op::Div, sum, c.b.scalar(c.dtype(0), c.input_count())));
  return {};
}

Result<void> mod(NodeContext& c) {
  bool fmod = c.integer("fmod", 0) != 0;
  if (!fmod && is_float(c.dtype(0))) return c.bad("float operands need fmod = 1");
  c.out(0, c.b.binary(fmod ? Op::Fmod : Op::Mod, c.in(0), c.in(1)));
  return {};
}

// The exponent may have another dtype; the result has the base's.
Result<void> pow(NodeContext& c) {
  ValueId x = c.in(0), y = c.in(1);
  DType base = c.dtype(0), exponent = c.dtype(1);
  if (base != exponent) {
    // An integer base with a float exponent is computed in the exponent's type.
    DType t = is_int(base) && is_float(exponent) ? exponent : base;
    x = c.b.cast(x, t);
    y = c.b.cast(y, t);
  }
  c.out(0, c.b.cast(c.b.binary(Op::Pow, x, y), base));
  return {};
}

Result<void> bit_shift(NodeContext& c) {
  std::string direction = c.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return c.bad("direction must be LEFT or RIGHT");
  c.out(0, c.b.binary(direction == "LEFT" ? Op::Shl : Op::Shr, c.in(0), c.in(1)));
  return {};
}

Result<void> is_inf(NodeContext& c) {
  bool negative = c.integer("detect_negative", 1) != 0, positive = c.integer("detect_positive", 1) != 0;
  ValueId inf = c.b.unary(Op::IsInf, c.in(0));
  ValueId zero = c.b.like(c.in(0), 0);
  if (!negative) inf = c.b.binary(Op::And, inf, c.b.binary(Op::Gt, c.in(0), zero));
  if (!positive) inf = c.b.binary(Op::And, inf, c.b.binary(Op::Lt, c.in(0), zero));
  c.out(0, inf);
  return {};
}

Result<void> where(NodeContext& c) {
  c.out(0, c.b.select(c.in(0), c.in(1), c.in(2)));
  return {};
}

constexpr OpEntry kElementwiseOps[] = {
    {"Abs", 1, kOpsetMax, 1, 1, "", unary<Op::Abs>},
    {"Acos", 7, kOpsetMax, 1, 1, "", unary<Op::Acos>},
    {"Acosh", 9, kOpsetMax, 1, 1, "", unary<Op::Acosh>},
    {"Asin", 7, kOpsetMax, 1, 1, "", unary<Op::Asin>},
    {"Asinh", 9, kOpsetMax, 1, 1, "", unary<Op::Asinh>},
    {"Atan", 7, kOpsetMax, 1, 1, "", unary<Op::Atan>},
    {"Atanh", 9, kOpsetMax, 1, 1, "", unary<Op::Atanh>},
    {"BitwiseNot", 18, kOpsetMax, 1, 1, "", unary<Op::Not>},
    {"Ceil", 1, kOpsetMax, 1, 1, "", unary<Op::Ceil>},
    {"Cos", 7, kOpsetMax, 1, 1, "", unary<Op::Cos>},
    {"Cosh", 9, kOpsetMax, 1, 1, "", unary<Op::Cosh>},
    {"Erf", 9, kOpsetMax, 1, 1, "", unary<Op::Erf>},
    {"Exp", 1, kOpsetMax, 1, 1, "", unary<Op::Exp>},
    {"Floor", 1, kOpsetMax, 1, 1, "", unary<Op::Floor>},
    {"IsNaN", 9, kOpsetMax, 1, 1, "", unary<Op::IsNan>},
    {"IsInf", 10, kOpsetMax, 1, 1, "detect_negative detect_positive", is_inf},
    {"Log", 1, kOpsetMax, 1, 1, "", unary<Op::Log>},
    {"Neg", 1, kOpsetMax, 1, 1, "", unary<Op::Neg>},
    {"Not", 1, kOpsetMax, 1, 1, "", unary<Op::Not>},
    {"Reciprocal", 1, kOpsetMax, 1, 1, "", unary<Op::Reciprocal>},
    {"Round", 11, kOpsetMax, 1, 1, "", unary<Op::Round>},
    {"Sigmoid", 1, kOpsetMax, 1, 1, "", unary<Op::Sigmoid>},
    {"Sign", 9, kOpsetMax, 1, 1, "", unary<Op::Sign>},
    {"Sin", 7, kOpsetMax, 1, 1, "", unary<Op::Sin>},
    {"Sinh", 9, kOpsetMax, 1, 1, "", unary<Op::Sinh>},
    {"Sqrt", 1, kOpsetMax, 1, 1, "", unary<Op::Sqrt>},
    {"Tan", 7, kOpsetMax, 1, 1, "", unary<Op::Tan>},
    {"Tanh", 1, kOpsetMax, 1, 1, "", unary<Op::Tanh>},
    {"Add", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Add>},
    {"Add", 7, kOpsetMax, 2, 2, "", binary<Op::Add>},
    {"And", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::And>},
    {"And", 7, kOpsetMax, 2, 2, "", binary<Op::And>},
    {"BitShift", 11, kOpsetMax, 2, 2, "direction", bit_shift},
    {"BitwiseAnd", 18, kOpsetMax, 2, 2, "", binary<Op::And>},
    {"BitwiseOr", 18, kOpsetMax, 2, 2, "", binary<Op::Or>},
    {"BitwiseXor", 18, kOpsetMax, 2, 2, "", binary<Op::Xor>},
    {"Div", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Div>},
    {"Div", 7, kOpsetMax, 2, 2, "", binary<Op::Div>},
    {"Equal", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Eq>},
    {"Equal", 7, kOpsetMax, 2, 2, "", binary<Op::Eq>},
    {"Greater", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Gt>},
    {"Greater", 7, kOpsetMax, 2, 2, "", binary<Op::Gt>},
    {"GreaterOrEqual", 12, kOpsetMax, 2, 2, "", binary<Op::Ge>},
    {"Less", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Lt>},
    {"Less", 7, kOpsetMax, 2, 2, "", binary<Op::Lt>},
    {"LessOrEqual", 12, kOpsetMax, 2, 2, "", binary<Op::Le>},
    {"Mod", 10, kOpsetMax, 2, 2, "fmod", mod},
    {"Mul", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Mul>},
    {"Mul", 7, kOpsetMax, 2, 2, "", binary<Op::Mul>},
    {"Or", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Or>},
    {"Or", 7, kOpsetMax, 2, 2, "", binary<Op::Or>},
    {"Pow", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Pow>},
    {"Pow", 7, kOpsetMax, 2, 2, "", pow},
    {"Sub", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Sub>},
    {"Sub", 7, kOpsetMax, 2, 2, "", binary<Op::Sub>},
    {"Xor", 1, 6, 2, 2, "axis broadcast", binary_before_7<Op::Xor>},
    {"Xor", 7, kOpsetMax, 2, 2, "", binary<Op::Xor>},
    {"Max", 1, kOpsetMax, 1, -1, "", variadic<Op::Max>},
    {"Mean", 1, kOpsetMax, 1, -1, "", mean_of_inputs},
    {"Min", 1, kOpsetMax, 1, -1, "", variadic<Op::Min>},
    {"Sum", 1, kOpsetMax, 1, -1, "", variadic<Op::Add>},
    {"Where", 9, kOpsetMax, 3, 3, "", where},
};

}  // namespace

OpTable elementwise_ops() { return {kElementwiseOps, std::size(kElementwiseOps)}; }

}  // namespace weft::onnx
