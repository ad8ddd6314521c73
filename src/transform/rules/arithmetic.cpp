#include <cmath>

#include "transform/rules/match.h"

namespace weft::transform {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// x * 1, x / 1, x - 0, integers x + 0 (not floats: -0 + 0 is +0).
Answer neutral_element(const RewriteContext& c) {
  if (c.operands.size() != 2) return std::nullopt;
  ValueId a = c.operands[0], b = c.operands[1];
  switch (c.node.op) {
    case GOp::Mul:
      if (is_splat(c, b, 1)) return a;
      if (is_splat(c, a, 1)) return b;
      return std::nullopt;
    case GOp::Div:
      return is_splat(c, b, 1) ? Answer(a) : std::nullopt;
    case GOp::Sub:
      return is_splat(c, b, 0) ? Answer(a) : std::nullopt;
    case GOp::Add:
      if (!is_int(c.builder.dtype(a))) return std::nullopt;
      if (is_splat(c, b, 0)) return a;
      if (is_splat(c, a, 0)) return b;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// A float that is no -0 and not below 0, or NaN.
bool positive(const Graph& g, ValueId v, int depth = 0) {
  if (depth > 8) return false;
  if (const Tensor* data = splat_of(g, v)) return is_float(data->dtype()) && !std::signbit(data->f64(0));
  const Node* node = g.def(v);
  if (!node) return false;
  const auto operand = [&](std::size_t i) { return positive(g, node->operands[i], depth + 1); };
  switch (node->op) {
    case GOp::Abs:
    case GOp::Exp:
    case GOp::Sigmoid: return true;
    case GOp::Mul: return node->operands[0] == node->operands[1] || (operand(0) && operand(1));
    case GOp::Add:
    case GOp::Div: return operand(0) && operand(1);
    case GOp::ReduceSum:
    case GOp::Broadcast:
    case GOp::Reshape:
    case GOp::Transpose:
    case GOp::Slice:
    case GOp::Sqrt: return operand(0);
    default: return false;
  }
}

// int(x + 0) = int(x): only the sign of a zero is lost.
Answer zero_under_cast(const RewriteContext& c) {
  if (c.node.op != GOp::Cast || !is_int(result_type(c).dtype)) return std::nullopt;
  const Node* sum = operand_def(c, 0, GOp::Add);
  if (!sum || !is_float(c.builder.dtype(c.operands[0])) || !is_splat(c, sum->operands[1], 0)) return std::nullopt;
  return c.builder.node(GOp::Cast, {sum->operands[0]}, c.node.attrs);
}

// Small powers: cheaper, and as exact as a power is.
Answer power(const RewriteContext& c) {
  if (c.node.op != GOp::Pow) return std::nullopt;
  graph::Builder& b = c.builder;
  const ValueId x = c.operands[0];
  const DType t = b.dtype(x);
  if (is_splat(c, c.operands[1], 1)) return x;
  if (is_splat(c, c.operands[1], 0)) return b.like(x, 1);
  if (is_splat(c, c.operands[1], 2)) return b.binary(GOp::Mul, x, x);
  if (!is_float(t)) return std::nullopt;
  if (is_splat(c, c.operands[1], -1)) return b.unary(GOp::Reciprocal, x);
  // The square of a narrow float would round on the way.
  const bool wide = t == DType::F32 || t == DType::F64;
  if (wide && is_splat(c, c.operands[1], 3)) return b.binary(GOp::Mul, b.binary(GOp::Mul, x, x), x);
  // Of -0 and -inf the root and the power differ.
  if (is_splat(c, c.operands[1], 0.5) && positive(b.graph(), x)) return b.unary(GOp::Sqrt, x);
  return std::nullopt;
}

// x / 2^k is x * 2^-k when that is a normal number of the dtype: both round the same real number.
Answer division_by_power_of_two(const RewriteContext& c) {
  if (c.node.op != GOp::Div || !is_float(c.builder.dtype(c.operands[0]))) return std::nullopt;
  const Tensor* by = splat_of(c.builder.graph(), c.operands[1]);
  if (!by || by->dtype() != c.builder.dtype(c.operands[0])) return std::nullopt;
  int exponent = 0;
  const double value = by->f64(0);
  if (std::fabs(std::frexp(value, &exponent)) != 0.5 || std::abs(exponent) > 100) return std::nullopt;
  const DType t = by->dtype();
  if (t != DType::F64 && t != DType::F32 && t != DType::BF16 && (t != DType::F16 || std::abs(exponent) > 10)) {
    return std::nullopt;
  }
  return c.builder.node(GOp::Mul, {c.operands[0], c.builder.like(c.operands[0], 1 / value)});
}

// f(f(x)) = f(x)
Answer idempotent(const RewriteContext& c) {
  switch (c.node.op) {
    case GOp::Abs:
    case GOp::Sign:
    case GOp::Ceil:
    case GOp::Floor:
    case GOp::Round:
    case GOp::Trunc: return operand_def(c, 0, c.node.op) ? Answer(c.operands[0]) : std::nullopt;
    case GOp::Max:
    case GOp::Min:
    case GOp::And:
    case GOp::Or: return c.operands[0] == c.operands[1] ? Answer(c.operands[0]) : std::nullopt;
    default: return std::nullopt;
  }
}

// f(f(x)) = x
Answer involution(const RewriteContext& c) {
  if (c.node.op != GOp::Neg && c.node.op != GOp::Not) return std::nullopt;
  const Node* inner = operand_def(c, 0, c.node.op);
  return inner ? Answer(inner->operands[0]) : std::nullopt;
}

// x + -y, x - -y
Answer sum_with_negation(const RewriteContext& c) {
  if (c.node.op != GOp::Add && c.node.op != GOp::Sub) return std::nullopt;
  const Node* negated = operand_def(c, 1, GOp::Neg);
  if (!negated) return std::nullopt;
  return c.builder.node(c.node.op == GOp::Add ? GOp::Sub : GOp::Add, {c.operands[0], negated->operands[0]});
}

// An operation on values that were spread out alike is done before: on fewer elements.
Answer below_broadcast(const RewriteContext& c) {
  if (!info(c.node.op).elementwise || c.operands.empty()) return std::nullopt;
  graph::Builder& b = c.builder;
  const Node* main = nullptr;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Node* spread = operand_def(c, i, GOp::Broadcast);
    if (!spread) return std::nullopt;
    if (!main || b.shape(main->operands[0]).empty()) main = spread;
  }
  const Shape shape = b.shape(main->operands[0]);
  const Axes axes = main->attrs.ints(Attr::Axes);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Node* spread = operand_def(c, i, GOp::Broadcast);
    const ValueId source = spread->operands[0];
    const bool scalar = b.shape(source).empty();
    if (!scalar && (spread->attrs.ints(Attr::Axes) != axes || b.shape(source) != shape)) return std::nullopt;
    operands.push_back(source);
  }
  for (ValueId& v : operands) {
    if (b.shape(v).empty()) v = b.broadcast_in(v, shape, {});  // others have the shape already
  }
  return b.broadcast_in(b.node(c.node.op, operands, c.node.attrs), result_type(c).shape, axes);
}

}  // namespace

const std::vector<Rule>& arithmetic_rules() {
  static const std::vector<Rule> rules{
      {"neutral-element", neutral_element},
      {"zero-under-cast", zero_under_cast},
      {"power", power},
      {"division-by-power-of-two", division_by_power_of_two},
      {"idempotent", idempotent},
      {"involution", involution},
      {"sum-with-negation", sum_with_negation},
      {"below-broadcast", below_broadcast},
  };
  return rules;
}

}  // namespace weft::transform
