#include "ssa/fold.h"

#include <cmath>
#include <utility>

#include "base/scalar_rules.h"

namespace weft::ssa {
namespace {

class Rules {
 public:
  Rules(Folding& b, ScalarOp op, std::vector<ValueId>& operands, const Type& type)
      : b_(b), op_(op), v_(operands), type_(type), from_(b.type_of(operands.back()).dtype) {
    for (const ValueId v : operands) c_.push_back(b.constant_of(v));
  }

  ValueId run() {
    if (is_commutative(op_) && (c_[0] || (v_[0] > v_[1])) && !c_[1]) {
      std::swap(v_[0], v_[1]);
      std::swap(c_[0], c_[1]);
    }
    if (const ValueId v = all_constant(); v >= 0) return v;
    if (op_ == ScalarOp::Cast || op_ == ScalarOp::Bitcast) {
      return from_ == type_.dtype ? v_[0] : -1;
    }
    if (op_ == ScalarOp::Select) return select();
    if (is_float(from_)) return floating();
    if (v_.size() == 1) return involution();
    if (v_.size() != 2) return -1;
    if (v_[0] == v_[1]) {
      if (const ValueId v = same_operands(); v >= 0) return v;
    }
    return is_bool(from_) || c_[1] == std::nullopt ? without_arithmetic() : with_constant();
  }

 private:
  ValueId constant(std::int64_t i) { return b_.make_constant(type_, {static_cast<double>(i), i}); }
  bool is(int operand, std::int64_t i) const {
    return c_[operand] &&
           (is_float(from_) ? c_[operand]->f == static_cast<double>(i) : c_[operand]->i == i);
  }

  ValueId all_constant() {
    std::vector<Scalar> values;
    for (const auto& c : c_) {
      if (!c) return -1;
      values.push_back(*c);
    }
    return b_.make_constant(type_, evaluate(op_, from_, type_.dtype, values));
  }

  ValueId select() {
    if (c_[0]) return c_[0]->i != 0 ? v_[1] : v_[2];
    return v_[1] == v_[2] ? v_[1] : -1;
  }

  ValueId involution() {
    const auto inner = b_.definition_of(v_[0]);
    const bool own_inverse = op_ == ScalarOp::Neg || op_ == ScalarOp::Not;
    return own_inverse && inner && inner->op == op_ ? inner->operands[0] : -1;
  }

  // What holds for NaN, infinities and signed zeros too.
  ValueId floating() {
    if (v_.size() == 1) return op_ == ScalarOp::Neg ? involution() : -1;
    if (v_.size() != 2) return -1;
    if ((op_ == ScalarOp::Max || op_ == ScalarOp::Min) && v_[0] == v_[1]) return v_[0];
    if (!c_[1]) return -1;
    if ((op_ == ScalarOp::Mul || op_ == ScalarOp::Div) && c_[1]->f == 1) return v_[0];
    const bool zero = c_[1]->f == 0;
    if (op_ == ScalarOp::Add && zero && std::signbit(c_[1]->f)) return v_[0];
    if (op_ == ScalarOp::Sub && zero && !std::signbit(c_[1]->f)) return v_[0];
    return -1;
  }

  ValueId same_operands() {
    switch (op_) {
      case ScalarOp::Eq:
      case ScalarOp::Le:
      case ScalarOp::Ge:
        return constant(1);
      case ScalarOp::Ne:
      case ScalarOp::Lt:
      case ScalarOp::Gt:
        return constant(0);
      case ScalarOp::And:
      case ScalarOp::Or:
      case ScalarOp::Max:
      case ScalarOp::Min:
        return v_[0];
      case ScalarOp::Sub:
      case ScalarOp::Xor:
        return constant(0);
      default:
        return -1;
    }
  }

  // Integers and bool, a constant in at most one operand and none of integer arithmetic's rules.
  ValueId without_arithmetic() {
    if (is_bool(from_) && c_[1]) {
      const bool one = c_[1]->i != 0;
      switch (op_) {
        case ScalarOp::And:
          return one ? v_[0] : v_[1];
        case ScalarOp::Or:
          return one ? v_[1] : v_[0];
        case ScalarOp::Xor:
        case ScalarOp::Ne:
          return one ? -1 : v_[0];
        case ScalarOp::Eq:
          return one ? v_[0] : -1;
        default:
          return -1;
      }
    }
    // A constant added to one operand moves outwards, where it meets others:
    // (x + c) + y = (x + y) + c.
    if (is_bool(from_) || (op_ != ScalarOp::Add && op_ != ScalarOp::Sub)) return -1;
    for (int i = 0; i < 2; ++i) {
      const auto inner = b_.definition_of(v_[i]);
      if (!inner || inner->op != ScalarOp::Add || !b_.constant_of(inner->operands[1])) continue;
      const ValueId x = inner->operands[0], c = inner->operands[1];
      if (i == 0) return b_.make(ScalarOp::Add, {b_.make(op_, {x, v_[1]}), c});
      return b_.make(op_, {b_.make(op_, {v_[0], x}), c});
    }
    return -1;
  }

  // Integers, operand 1 constant.
  ValueId with_constant() {
    const std::int64_t c = c_[1]->i;
    switch (op_) {
      case ScalarOp::Add:
        return c == 0 ? v_[0] : reassociated();
      case ScalarOp::Sub:
        return c == 0 ? v_[0] : b_.make(ScalarOp::Add, {v_[0], b_.make(ScalarOp::Neg, {v_[1]})});
      case ScalarOp::Mul:
        if (c == 0 || c == 1) return c == 0 ? v_[1] : v_[0];
        return reassociated();
      case ScalarOp::Div:
      case ScalarOp::FloorDiv:
        return c == 1 ? v_[0] : c == 0 ? v_[1] : -1;
      case ScalarOp::Mod:
      case ScalarOp::Fmod:
        return c == 1 ? constant(0) : -1;
      case ScalarOp::And:
        return c == 0 ? v_[1] : c == -1 ? v_[0] : -1;
      case ScalarOp::Or:
        return c == 0 ? v_[0] : c == -1 ? v_[1] : -1;
      case ScalarOp::Xor:
      case ScalarOp::Shl:
      case ScalarOp::Shr:
        return c == 0 ? v_[0] : -1;
      default:
        return -1;
    }
  }

  // (x + c1) + c2 = x + (c1 + c2), (x * c1) * c2 = x * (c1 * c2), (x + c1) * c2 = x * c2 + c1 * c2,
  // all modulo 2^n.
  ValueId reassociated() {
    const auto inner = b_.definition_of(v_[0]);
    if (!inner || inner->operands.size() != 2 || !b_.constant_of(inner->operands[1])) return -1;
    const ValueId x = inner->operands[0], c1 = inner->operands[1], c2 = v_[1];
    if (inner->op == op_) return b_.make(op_, {x, b_.make(op_, {c1, c2})});
    if (op_ != ScalarOp::Mul || inner->op != ScalarOp::Add) return -1;
    return b_.make(ScalarOp::Add,
                   {b_.make(ScalarOp::Mul, {x, c2}), b_.make(ScalarOp::Mul, {c1, c2})});
  }

  Folding& b_;
  const ScalarOp op_;
  std::vector<ValueId>& v_;
  const Type type_;
  const DType from_;
  std::vector<std::optional<Scalar>> c_;
};

}  // namespace

ValueId fold(Folding& builder, ScalarOp op, std::vector<ValueId>& operands, const Type& type) {
  return Rules(builder, op, operands, type).run();
}

}  // namespace weft::ssa
