// Arithmetic: the way from a scalar op to the code of its dtype, floats, comparisons.
#include <utility>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::Intrinsic::ID;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* Emitter::scalar(ScalarOp op, const ssa::Type& from, const ssa::Type& to, std::vector<Value*> x) {
  if (op == ScalarOp::Select) return b_.CreateSelect(x[0], x[1], x[2]);
  if (op == ScalarOp::Cast) return cast(x[0], from.dtype, to.dtype);
  if (op == ScalarOp::Bitcast) return bitcast(x[0], from.dtype, to.dtype);
  const DType t = from.dtype;
  const bool narrow_float = t == DType::F16 || t == DType::BF16;
  if (narrow_float) {
    for (Value*& operand : x) operand = widen(operand, t);
  }
  Value* result = nullptr;
  if (info(op).result == ScalarResult::Bool) {
    return compare(op, t, x[0], x.size() > 1 ? x[1] : nullptr);
  } else if (is_float(t)) {
    if (x.size() == 1) result = unary_float(op, x[0]);
    if (x.size() == 2) result = binary_float(op == ScalarOp::FloorDiv ? ScalarOp::Div : op, x[0], x[1]);
    if (op == ScalarOp::FloorDiv) {  // of the quotient as the dtype rounds it
      if (narrow_float) result = widen(narrow(result, t), t);
      result = unary_float(ScalarOp::Floor, result);
    }
    if (op == ScalarOp::Fma) result = fma(t, x);
  } else {
    if (x.size() == 1) result = unary_int(op, t, x[0]);
    if (x.size() == 2) result = binary_int(op, t, x[0], x[1]);
    if (op == ScalarOp::Fma) result = b_.CreateAdd(b_.CreateMul(x[0], x[1]), x[2]);
  }
  return result && narrow_float ? narrow(result, t) : result;
}

Value* Emitter::fma(DType t, const std::vector<Value*>& x) {
  if (isa_.fma) return b_.CreateIntrinsic(Intrinsic::fma, {x[0]->getType()}, x);
  return t == DType::F64 ? soft_fma_f64(x[0], x[1], x[2]) : soft_fma_f32(x[0], x[1], x[2]);
}

Value* Emitter::unary_float(ScalarOp op, Value* x) {
  auto constant = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  auto intrinsic = [&](ID id) { return b_.CreateUnaryIntrinsic(id, x); };
  switch (op) {
    case ScalarOp::Neg: return b_.CreateFNeg(x);
    case ScalarOp::Abs: return intrinsic(Intrinsic::fabs);
    case ScalarOp::Ceil: return intrinsic(Intrinsic::ceil);
    case ScalarOp::Floor: return intrinsic(Intrinsic::floor);
    case ScalarOp::Round: return intrinsic(Intrinsic::roundeven);
    case ScalarOp::Trunc: return intrinsic(Intrinsic::trunc);
    case ScalarOp::Sqrt: return intrinsic(Intrinsic::sqrt);
    case ScalarOp::Rsqrt: return b_.CreateFDiv(constant(1), intrinsic(Intrinsic::sqrt));
    case ScalarOp::Reciprocal: return b_.CreateFDiv(constant(1), x);
    case ScalarOp::Sign: {  // of zeros and NaN: themselves
      Value* negative = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(0)), constant(-1), x);
      return b_.CreateSelect(b_.CreateFCmpOGT(x, constant(0)), constant(1), negative);
    }
    default: return nullptr;
  }
}

Value* Emitter::binary_float(ScalarOp op, Value* a, Value* b) {
  switch (op) {
    case ScalarOp::Add: return b_.CreateFAdd(a, b);
    case ScalarOp::Sub: return b_.CreateFSub(a, b);
    case ScalarOp::Mul: return b_.CreateFMul(a, b);
    case ScalarOp::Div: return b_.CreateFDiv(a, b);
    case ScalarOp::Max: return max_min_float(true, a, b);
    case ScalarOp::Min: return max_min_float(false, a, b);
    default: return nullptr;
  }
}

// x86's max gives the second operand when either is NaN, which is this select. A NaN in the second comes through; one
// in the first needs a second select, unless the first is a constant.
Value* Emitter::max_min_float(bool max, Value* a, Value* b) {
  if (isa_.nan_max) return b_.CreateBinaryIntrinsic(max ? Intrinsic::maximum : Intrinsic::minimum, a, b);
  if (llvm::isa<llvm::Constant>(b)) std::swap(a, b);
  Value* ordered = max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
  Value* result = b_.CreateSelect(ordered, a, b);
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(a); constant && !constant->isNaN()) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, result);
}

Value* Emitter::compare(ScalarOp op, DType t, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  if (op == ScalarOp::IsNan) return is_float(t) ? b_.CreateFCmpUNO(a, a) : nullptr;
  if (op == ScalarOp::IsInf) {
    if (!is_float(t)) return nullptr;
    return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(Intrinsic::fabs, a), llvm::ConstantFP::getInfinity(a->getType()));
  }
  struct Row { ScalarOp op; P real, sign, bits; };
  static constexpr Row rows[] = {
      {ScalarOp::Eq, P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {ScalarOp::Ne, P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
      {ScalarOp::Lt, P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {ScalarOp::Le, P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
      {ScalarOp::Gt, P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {ScalarOp::Ge, P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE},
  };
  for (const Row& row : rows) {
    if (row.op != op) continue;
    if (is_float(t)) return b_.CreateFCmp(row.real, a, b);
    Value* order = b_.CreateICmp(is_signed_int(t) ? row.sign : row.bits, a, b);
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(order)) {
      if (constant->isAllOnesValue() || constant->isNullValue()) return order;
    }
    // LLVM repeats a compare in every block that uses it, even in loops; where masks have registers, keep it in one.
    return isa_.avx512 && a->getType()->isVectorTy() ? b_.CreateFreeze(order) : order;
  }
  return nullptr;
}

// x * 2^n. AVX-512 has an instruction; elsewhere by four multiplications with powers of two that are normal numbers, n
// clamped to where more changes nothing: from the least denormal to infinity and back.
Value* Emitter::ldexp(Value* x, Value* n, const ssa::Type& t) {
  x = widen(x, t.dtype);
  if (isa_.avx512) {
    x = b_.CreateIntrinsic(Intrinsic::ldexp, {x->getType(), n->getType()}, {x, n});
    return narrow(x, t.dtype);
  }
  const bool wide = t.dtype == DType::F64;
  const int mantissa = wide ? 52 : 23;
  const int bias = wide ? 1023 : 127;
  const int limit = 2 * bias + mantissa + 2;
  auto number = [](Value* like, std::int64_t v) { return llvm::ConstantInt::getSigned(like->getType(), v); };
  n = b_.CreateBinaryIntrinsic(Intrinsic::smin, n, number(n, limit));
  n = b_.CreateBinaryIntrinsic(Intrinsic::smax, n, number(n, -limit));
  Value* quarter = b_.CreateAShr(n, 2);
  Value* rest = b_.CreateSub(n, b_.CreateMul(quarter, number(n, 3)));
  llvm::Type* integer = x->getType()->getWithNewType(wide ? b_.getInt64Ty() : b_.getInt32Ty());
  auto power = [&](Value* e) {
    e = b_.CreateAdd(b_.CreateSExt(e, integer), llvm::ConstantInt::get(integer, bias));
    return b_.CreateBitCast(b_.CreateShl(e, mantissa), x->getType());
  };
  Value* step = power(quarter);
  x = b_.CreateFMul(b_.CreateFMul(b_.CreateFMul(x, power(rest)), step), step);
  return narrow(b_.CreateFMul(x, step), t.dtype);
}

}  // namespace weft::codegen
