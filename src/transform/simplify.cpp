// Local algebra on graphs, as a table of rules. Only what holds for every value, NaN and infinities included.
#include <algorithm>
#include <cmath>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

using Answer = std::optional<ValueId>;

// What defines an operand in the new graph.
const Node* def(const RewriteContext& c, std::size_t operand) { return c.builder.graph().def(c.operands[operand]); }

// A constant (through broadcasts) whose elements are all `value`.
bool is_splat(const RewriteContext& c, ValueId v, double value) {
  const Graph& g = c.builder.graph();
  const Node* node = g.def(v);
  while (node && (node->op == GOp::Broadcast || node->op == GOp::Reshape)) {
    v = node->operands[0];
    node = g.def(v);
  }
  const Tensor* data = g.constant(v);
  if (!data || data->size() != 1 || is_complex(data->dtype()) || is_string(data->dtype())) return false;
  return is_float(data->dtype()) ? data->f64(0) == value && !(value == 0 && std::signbit(data->f64(0)))
                                 : static_cast<double>(data->i64(0)) == value;
}

// x * 1, x / 1, integers x + 0 and x - 0 (not floats: -0 + 0 is +0; x - 0 is fine for all).
Answer neutral_element(const RewriteContext& c) {
  if (c.operands.size() != 2) return std::nullopt;
  DType t = c.builder.dtype(c.operands[0]);
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
      if (!is_int(t)) return std::nullopt;
      if (is_splat(c, b, 0)) return a;
      if (is_splat(c, a, 0)) return b;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// A square, a square root: cheaper than a power, and as exact.
Answer power(const RewriteContext& c) {
  if (c.node.op != GOp::Pow || !is_float(c.builder.dtype(c.operands[0]))) return std::nullopt;
  ValueId x = c.operands[0];
  if (is_splat(c, c.operands[1], 2)) return c.builder.binary(GOp::Mul, x, x);
  if (is_splat(c, c.operands[1], 1)) return x;
  return std::nullopt;
}

Answer transpose_of_transpose(const RewriteContext& c) {
  const Node* inner = c.node.op == GOp::Transpose ? def(c, 0) : nullptr;
  if (!inner || inner->op != GOp::Transpose) return std::nullopt;
  const auto& outer_axes = c.node.attrs.ints(Attr::Axes);
  const auto& inner_axes = inner->attrs.ints(Attr::Axes);
  std::vector<std::int64_t> axes;
  for (std::int64_t a : outer_axes) axes.push_back(inner_axes[a]);
  return c.builder.transpose(inner->operands[0], axes);
}

// A transpose that moves nothing, or only axes of size 1, is a reshape.
Answer transpose_of_ones(const RewriteContext& c) {
  if (c.node.op != GOp::Transpose) return std::nullopt;
  const Shape& shape = c.builder.shape(c.operands[0]);
  std::int64_t last = -1;
  for (std::int64_t a : c.node.attrs.ints(Attr::Axes)) {
    if (shape[a].is(1)) continue;
    if (a < last) return std::nullopt;
    last = a;
  }
  return c.builder.reshape(c.operands[0], c.from.type(c.node.results[0]).shape);
}

Answer reshape_of_reshape(const RewriteContext& c) {
  const Node* inner = c.node.op == GOp::Reshape ? def(c, 0) : nullptr;
  if (!inner || inner->op != GOp::Reshape) return std::nullopt;
  const DimFacts& facts = c.builder.graph().facts;
  // The middle shape may be a claim about sizes that is checked when they are known: keep it then.
  const Shape& from = c.builder.shape(inner->operands[0]);
  const Shape& middle = c.builder.shape(c.operands[0]);
  if (!facts.known_equal(product(from), product(middle))) return std::nullopt;
  return c.builder.reshape(inner->operands[0], c.from.type(c.node.results[0]).shape);
}

Answer broadcast_of_broadcast(const RewriteContext& c) {
  const Node* inner = c.node.op == GOp::Broadcast ? def(c, 0) : nullptr;
  if (!inner || inner->op != GOp::Broadcast) return std::nullopt;
  std::vector<std::int64_t> axes;
  for (std::int64_t a : inner->attrs.ints(Attr::Axes)) axes.push_back(c.node.attrs.ints(Attr::Axes)[a]);
  return c.builder.broadcast_in(inner->operands[0], c.from.type(c.node.results[0]).shape, axes);
}

// Widening and back: exact.
Answer cast_pair(const RewriteContext& c) {
  const Node* inner = c.node.op == GOp::Cast ? def(c, 0) : nullptr;
  if (!inner || inner->op != GOp::Cast) return std::nullopt;
  DType first = c.builder.dtype(inner->operands[0]), middle = c.builder.dtype(c.operands[0]);
  DType last = c.from.type(c.node.results[0]).dtype;
  bool exact = (is_int(first) && is_int(middle) && is_signed_int(first) == is_signed_int(middle) && bits(middle) >= bits(first)) ||
               (first == DType::F16 && (middle == DType::F32 || middle == DType::F64)) ||
               (first == DType::BF16 && (middle == DType::F32 || middle == DType::F64)) ||
               (first == DType::F32 && middle == DType::F64) || (is_bool(first) && is_int(middle));
  if (!exact) return std::nullopt;
  if (first == last) return inner->operands[0];
  return std::nullopt;
}

// select(c, x, x)
Answer same_choice(const RewriteContext& c) {
  if (c.node.op != GOp::Select || c.operands[1] != c.operands[2]) return std::nullopt;
  return c.operands[1];
}

// One-operand concatenation.
Answer lonely_concat(const RewriteContext& c) {
  if (c.node.op != GOp::Concat || c.operands.size() != 1) return std::nullopt;
  return c.operands[0];
}

struct Rule {
  const char* name;
  Answer (*apply)(const RewriteContext&);
};

constexpr Rule kRules[] = {
    {"neutral-element", neutral_element},
    {"power", power},
    {"transpose-of-transpose", transpose_of_transpose},
    {"transpose-of-ones", transpose_of_ones},
    {"reshape-of-reshape", reshape_of_reshape},
    {"broadcast-of-broadcast", broadcast_of_broadcast},
    {"cast-pair", cast_pair},
    {"same-choice", same_choice},
    {"lonely-concat", lonely_concat},
};

}  // namespace

Result<Graph> simplify(const Graph& graph, const PassOptions&) {
  return graph::Rewriter([](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           for (const Rule& rule : kRules) {
             if (auto v = rule.apply(c)) return std::vector<ValueId>{*v};
           }
           return std::nullopt;
         })
      .run(graph);
}

}  // namespace weft::transform
