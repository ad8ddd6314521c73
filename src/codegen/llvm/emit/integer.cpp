// Integer and bool arithmetic: nothing traps, everything wraps.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::Value;

Value* same_number(Value* x, std::int64_t v) { return llvm::ConstantInt::getSigned(x->getType(), v); }

namespace {

// The splatted integer constant that x is, if it is one.
const llvm::APInt* known(Value* x) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(x);
  if (constant && x->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return number ? &number->getValue() : nullptr;
}

}  // namespace

Value* Emitter::unary_int(ScalarOp op, DType t, Value* x) {
  switch (op) {
    case ScalarOp::Neg: return b_.CreateNeg(x);
    case ScalarOp::Not: return b_.CreateNot(x);
    case ScalarOp::Abs:
      if (!is_signed_int(t)) return x;
      return b_.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b_.getFalse()});
    case ScalarOp::Sign: {
      Value* zero = same_number(x, 0);
      if (!is_signed_int(t)) return b_.CreateZExt(b_.CreateICmpNE(x, zero), x->getType());
      return b_.CreateSub(b_.CreateZExt(b_.CreateICmpSGT(x, zero), x->getType()),
                          b_.CreateZExt(b_.CreateICmpSLT(x, zero), x->getType()));
    }
    case ScalarOp::Ceil:
    case ScalarOp::Floor:
    case ScalarOp::Round:
    case ScalarOp::Trunc: return x;
    default: return nullptr;
  }
}

Value* Emitter::binary_int(ScalarOp op, DType t, Value* a, Value* b) {
  const bool sign = is_signed_int(t);
  switch (op) {
    case ScalarOp::Add: return b_.CreateAdd(a, b);
    case ScalarOp::Sub: return b_.CreateSub(a, b);
    case ScalarOp::Mul: return b_.CreateMul(a, b);
    case ScalarOp::And: return b_.CreateAnd(a, b);
    case ScalarOp::Or: return b_.CreateOr(a, b);
    case ScalarOp::Xor: return b_.CreateXor(a, b);
    case ScalarOp::Max:
      if (is_bool(t)) return b_.CreateOr(a, b);
      return b_.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case ScalarOp::Min:
      if (is_bool(t)) return b_.CreateAnd(a, b);
      return b_.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case ScalarOp::Shl:
    case ScalarOp::Shr: return shift(op, t, a, b);
    case ScalarOp::Div:
    case ScalarOp::FloorDiv:
    case ScalarOp::Fmod:
    case ScalarOp::Mod: return divide_int(op, t, a, b);
    default: return nullptr;
  }
}

Value* Emitter::shift(ScalarOp op, DType t, Value* a, Value* b) {
  const int width = bits(t);
  Value* inside = b_.CreateICmpULT(b, same_number(b, width));
  if (op == ScalarOp::Shr && is_signed_int(t)) {
    return b_.CreateAShr(a, b_.CreateSelect(inside, b, same_number(b, width - 1)));
  }
  // Clamped first: a shift by the width or more is poison.
  Value* amount = b_.CreateSelect(inside, b, same_number(b, 0));
  Value* shifted = op == ScalarOp::Shl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
  return b_.CreateSelect(inside, shifted, same_number(a, 0));
}

// a / b towards zero for b that is neither 0 nor -1 (signed). Where there is no division of integer vectors: up to 32
// bits the quotient of floats with twice the digits, truncated, is exact.
Value* Emitter::quotient(DType t, Value* a, Value* b) {
  const bool sign = is_signed_int(t);
  if (!isa_.vector_divide && a->getType()->isVectorTy() && bits(t) <= 32 && !llvm::isa<llvm::Constant>(b)) {
    llvm::Type* real = a->getType()->getWithNewType(bits(t) <= 16 ? b_.getFloatTy() : b_.getDoubleTy());
    llvm::Type* whole = a->getType()->getWithNewType(b_.getInt32Ty());
    auto to_real = [&](Value* x) {
      if (bits(t) < 32) x = sign ? b_.CreateSExt(x, whole) : b_.CreateZExt(x, whole);
      return sign || bits(t) < 32 ? b_.CreateSIToFP(x, real) : b_.CreateUIToFP(x, real);
    };
    Value* q = b_.CreateFDiv(to_real(a), to_real(b));
    q = sign || bits(t) < 32 ? b_.CreateFPToSI(q, whole) : b_.CreateFPToUI(q, whole);
    return b_.CreateTrunc(q, a->getType());
  }
  return sign ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
}

Value* Emitter::divide_int(ScalarOp op, DType t, Value* a, Value* b) {
  const bool sign = is_signed_int(t);
  Value* zero = same_number(a, 0);
  Value* q;
  Value* by_zero = nullptr;
  const llvm::APInt* divisor = known(b);
  if (divisor && divisor->isZero()) return zero;
  if (divisor && !(sign && divisor->isAllOnes())) {
    q = quotient(t, a, b);
  } else {
    by_zero = b_.CreateICmpEQ(b, zero);
    Value* by_minus_one = b_.CreateICmpEQ(b, same_number(b, -1));
    Value* odd = sign ? b_.CreateOr(by_zero, by_minus_one) : by_zero;
    q = quotient(t, a, b_.CreateSelect(odd, same_number(b, 1), b));
    if (sign) q = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), q);
    q = b_.CreateSelect(by_zero, zero, q);
  }
  if (op == ScalarOp::Div || (op == ScalarOp::FloorDiv && !sign)) return q;
  Value* r = b_.CreateSub(a, b_.CreateMul(q, b));
  // x / 0 is 0, so that its remainder came out as x: it is 0 as well.
  if (by_zero) r = b_.CreateSelect(by_zero, zero, r);
  if (op == ScalarOp::Fmod || (op == ScalarOp::Mod && !sign)) return r;
  Value* differ = b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, b), zero));
  if (op == ScalarOp::Mod) return b_.CreateAdd(r, b_.CreateSelect(differ, b, zero));
  return b_.CreateSub(q, b_.CreateZExt(differ, q->getType()));
}

}  // namespace weft::codegen
