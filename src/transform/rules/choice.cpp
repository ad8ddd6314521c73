// Select, comparisons with known outcome, casts.
#include "transform/rules/match.h"

namespace weft::transform {

using graph::Attr;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// select(c, x, x), select(true, a, b), select(not c, a, b)
Answer choice(const RewriteContext& c) {
  if (c.node.op != GOp::Select) return std::nullopt;
  const ValueId cond = c.operands[0];
  if (c.operands[1] == c.operands[2] || is_splat(c, cond, 1)) return c.operands[1];
  if (is_splat(c, cond, 0)) return c.operands[2];
  if (const Node* negated = operand_def(c, 0, GOp::Not)) {
    return c.builder.node(GOp::Select, {negated->operands[0], c.operands[2], c.operands[1]});
  }
  if (is_bool(c.builder.dtype(c.operands[1]))) {
    if (is_splat(c, c.operands[1], 1) && is_splat(c, c.operands[2], 0)) return cond;
    if (is_splat(c, c.operands[1], 0) && is_splat(c, c.operands[2], 1)) return c.builder.unary(GOp::Not, cond);
  }
  return std::nullopt;
}

// Of bools: and, or, xor, eq, ne with a known operand.
Answer logic(const RewriteContext& c) {
  const GOp op = c.node.op;
  if (op != GOp::And && op != GOp::Or && op != GOp::Xor && op != GOp::Eq && op != GOp::Ne) return std::nullopt;
  if (!is_bool(c.builder.dtype(c.operands[0]))) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const ValueId known = c.operands[i], other = c.operands[1 - i];
    const bool yes = is_splat(c, known, 1), no = is_splat(c, known, 0);
    if (!yes && !no) continue;
    if (op == GOp::And) return yes ? other : known;
    if (op == GOp::Or) return yes ? known : other;
    return yes == (op == GOp::Eq) ? other : c.builder.unary(GOp::Not, other);
  }
  return std::nullopt;
}

int mantissa_bits(DType t) {
  switch (t) {
    case DType::F64: return 53;
    case DType::F32: return 24;
    case DType::F16: return 11;
    case DType::BF16: return 8;
    default: return 0;
  }
}

// Every value of `from` is a value of `to`.
bool holds(DType to, DType from) {
  if (to == from) return true;
  if (is_bool(from)) return is_int(to) || mantissa_bits(to) > 0;
  if (is_int(from)) {
    const int digits = bits(from) - (is_signed_int(from) ? 1 : 0);
    if (is_float(to)) return mantissa_bits(to) >= digits && to != DType::F16 && to != DType::BF16;
    if (is_signed_int(to)) return bits(to) - 1 >= digits;
    return is_unsigned_int(to) && is_unsigned_int(from) && bits(to) >= bits(from);
  }
  if (from == DType::F16 || from == DType::BF16) return to == DType::F32 || to == DType::F64;
  return from == DType::F32 && to == DType::F64;
}

// The first of two casts goes when it loses nothing.
Answer cast_of_cast(const RewriteContext& c) {
  const Node* inner = c.node.op == GOp::Cast ? operand_def(c, 0, GOp::Cast) : nullptr;
  if (!inner) return std::nullopt;
  const ValueId x = inner->operands[0];
  const DType first = c.builder.dtype(x), middle = c.builder.dtype(c.operands[0]), last = result_type(c).dtype;
  if (!holds(middle, first)) return std::nullopt;
  if (first == last) return x;
  // A float clamps where an integer wraps.
  if (is_float(middle) && is_int(first) && is_int(last) && !holds(last, first)) return std::nullopt;
  return c.builder.node(GOp::Cast, {x}, c.node.attrs);
}

Answer cast_to_same(const RewriteContext& c) {
  if (c.node.op != GOp::Cast && c.node.op != GOp::Bitcast) return std::nullopt;
  return c.builder.dtype(c.operands[0]) == result_type(c).dtype ? Answer(c.operands[0]) : std::nullopt;
}

}  // namespace

const std::vector<Rule>& choice_rules() {
  static const std::vector<Rule> rules{
      {"choice", choice},
      {"logic", logic},
      {"cast-of-cast", cast_of_cast},
      {"cast-to-same", cast_to_same},
  };
  return rules;
}

}  // namespace weft::transform
