#include "loop/fold.h"

#include <array>

#include "base/scalar_rules.h"

namespace weft::loop {
namespace {

bool is_const(const Expr& e) { return e.op == Op::Const; }

bool is_value(const Expr& e, std::int64_t v) {
  return is_const(e) &&
         (is_float(e.dtype) ? e.constant.f == static_cast<double>(v) : e.constant.i == v);
}

bool constant_like(const Expr& e) { return e.op == Op::Const || e.op == Op::Size; }

std::optional<ExprId> fold_constants(Group& g, ScalarOp op, const Expr& e) {
  std::array<Scalar, 3> operands;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    const Expr& a = g.expr(e.args[i]);
    if (!is_const(a) || i >= operands.size()) return std::nullopt;
    operands[i] = a.constant;
  }
  Expr c;
  c.op = Op::Const;
  c.dtype = e.dtype;
  const DType from = g.expr(e.args[info(op).result == ScalarResult::Select ? 1 : 0]).dtype;
  c.constant = evaluate(op, from, e.dtype, {operands.data(), e.args.size()});
  return g.add(std::move(c));
}

// i64 arithmetic on size expressions.
std::optional<ExprId> fold_sizes(Group& g, ScalarOp op, const Expr& e) {
  if (e.dtype != DType::I64 || e.args.size() != 2) return std::nullopt;
  const auto a = as_dim(g, e.args[0]), b = as_dim(g, e.args[1]);
  if (!a || !b) return std::nullopt;
  switch (op) {
    case ScalarOp::Add:
      return g.size(*a + *b);
    case ScalarOp::Sub:
      return g.size(*a - *b);
    case ScalarOp::Mul:
      return g.size(*a * *b);
    case ScalarOp::Max:
      return g.size(max(*a, *b));
    case ScalarOp::Min:
      return g.size(min(*a, *b));
    case ScalarOp::FloorDiv:
      if (b->is_const() && b->value() > 0) return g.size(floor_div(*a, *b));
      return std::nullopt;
    case ScalarOp::Mod:
      if (b->is_const() && b->value() > 0) return g.size(mod(*a, *b));
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<ExprId> fold_unary(Group& g, ScalarOp op, const Expr& e) {
  const ExprId x = e.args[0];
  switch (op) {
    case ScalarOp::Cast:
    case ScalarOp::Bitcast:
      if (g.expr(x).dtype == e.dtype) return x;
      return std::nullopt;
    case ScalarOp::Neg:
      if (g.expr(x).op == Op::Neg) return g.expr(x).args[0];
      return std::nullopt;
    case ScalarOp::Not:
      if (g.expr(x).op == Op::Not) return g.expr(x).args[0];
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// (x op c1) op c2 -> x op (c1 op c2), integers.
std::optional<ExprId> fold_chain(Group& g, ScalarOp op, const Expr& e) {
  const Expr a = g.expr(e.args[0]);
  if (!is_int(e.dtype) || a.op != e.op || !constant_like(g.expr(e.args[1]))) return std::nullopt;
  if (!constant_like(g.expr(a.args[1]))) return std::nullopt;
  const ExprId c = g.scalar(op, e.dtype, {a.args[1], e.args[1]});
  return g.scalar(op, e.dtype, {a.args[0], c});
}

std::optional<ExprId> fold_division(Group& g, ScalarOp op, const Expr& e) {
  const bool quotient = op == ScalarOp::FloorDiv;
  if (is_value(g.expr(e.args[1]), 1)) return quotient ? e.args[0] : g.constant_i64(0, e.dtype);
  if (e.dtype != DType::I64) return std::nullopt;
  const auto b = as_dim(g, e.args[1]);
  if (!b) return std::nullopt;
  const auto divided = divide(g, e.args[0], *b);
  if (!divided) return std::nullopt;
  return quotient ? divided->quotient : divided->remainder;
}

std::optional<ExprId> fold_integer_binary(Group& g, ScalarOp op, const Expr& e) {
  const ExprId x = e.args[0], y = e.args[1];
  const Expr b = g.expr(y);
  switch (op) {
    case ScalarOp::Add:
      if (is_value(b, 0)) return x;
      return fold_chain(g, op, e);
    case ScalarOp::Sub:
      if (is_value(b, 0)) return x;
      if (x == y) return g.constant_i64(0, e.dtype);
      if (is_const(b) && b.constant.i != INT64_MIN) {
        return g.scalar(ScalarOp::Add, e.dtype, {x, g.constant_i64(-b.constant.i, e.dtype)});
      }
      return std::nullopt;
    case ScalarOp::Mul:
      if (is_value(b, 1)) return x;
      if (is_value(b, 0)) return y;
      return fold_chain(g, op, e);
    case ScalarOp::Div:
      if (is_value(b, 1)) return x;
      return std::nullopt;
    case ScalarOp::FloorDiv:
    case ScalarOp::Mod:
      return fold_division(g, op, e);
    default:
      return std::nullopt;
  }
}

// -0 + 0 is 0, so x + 0 stays; x * 0 stays for NaN and infinities.
std::optional<ExprId> fold_float_binary(Group& g, ScalarOp op, const Expr& e) {
  const ExprId x = e.args[0];
  const Expr b = g.expr(e.args[1]);
  if (!is_const(b)) return std::nullopt;
  const bool negative = __builtin_signbit(b.constant.f);
  switch (op) {
    case ScalarOp::Mul:
    case ScalarOp::Div:
      if (is_value(b, 1)) return x;
      return std::nullopt;
    case ScalarOp::Add:
      if (is_value(b, 0) && negative) return x;
      return std::nullopt;
    case ScalarOp::Sub:
      if (is_value(b, 0) && !negative) return x;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<ExprId> fold_logic(Group& g, ScalarOp op, const Expr& e) {
  const ExprId x = e.args[0], y = e.args[1];
  if (x == y &&
      (op == ScalarOp::And || op == ScalarOp::Or || op == ScalarOp::Max || op == ScalarOp::Min))
    return x;
  if (!is_bool(e.dtype) || !is_const(g.expr(y))) return std::nullopt;
  const bool set = g.expr(y).constant.i != 0;
  if (op == ScalarOp::And) return set ? x : y;
  if (op == ScalarOp::Or) return set ? y : x;
  return std::nullopt;
}

std::optional<ExprId> fold_compare(Group& g, ScalarOp op, const Expr& e) {
  if (e.dtype != DType::Bool || g.expr(e.args[0]).dtype != DType::I64) return std::nullopt;
  // Index in range: 0 <= x and x < bound, which conditions of padded reads are made of.
  const auto limit = as_dim(g, e.args[1]);
  if (!limit) return std::nullopt;
  const auto hi = upper_bound(g, e.args[0]);
  if (!hi) return std::nullopt;
  const DimFacts none;
  if (op == ScalarOp::Ge && limit->is_const() && limit->value() <= 0)
    return g.constant_i64(1, DType::Bool);
  if (op == ScalarOp::Lt && none.known_less(*hi, *limit)) return g.constant_i64(1, DType::Bool);
  if (op == ScalarOp::Le && none.known_less_equal(*hi, *limit))
    return g.constant_i64(1, DType::Bool);
  return std::nullopt;
}

std::optional<ExprId> fold_select(Group& g, const Expr& e) {
  if (e.args[1] == e.args[2]) return e.args[1];
  const Expr& c = g.expr(e.args[0]);
  if (is_const(c)) return e.args[c.constant.i != 0 ? 1 : 2];
  return std::nullopt;
}

}  // namespace

std::optional<ExprId> fold(Group& g, Expr& e) {
  const ScalarOp op = *as_scalar(e.op);
  if (static_cast<int>(e.args.size()) != info(op).operands)
    return std::nullopt;  // verify() says so
  if (auto r = fold_constants(g, op, e)) return r;
  if (auto r = fold_sizes(g, op, e)) return r;
  if (op == ScalarOp::Select) return fold_select(g, e);
  if (e.args.size() == 1) return fold_unary(g, op, e);
  if (e.args.size() != 2) return std::nullopt;
  if (is_commutative(op) && constant_like(g.expr(e.args[0])) && !constant_like(g.expr(e.args[1]))) {
    std::swap(e.args[0], e.args[1]);
  }
  if (auto r = fold_logic(g, op, e)) return r;
  if (auto r = fold_compare(g, op, e)) return r;
  if (is_int(e.dtype)) return fold_integer_binary(g, op, e);
  if (is_float(e.dtype)) return fold_float_binary(g, op, e);
  return std::nullopt;
}

}  // namespace weft::loop
