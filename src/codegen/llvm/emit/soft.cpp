// Instructions that older CPUs lack, from those that they have.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::Value;

namespace {

Value* integer(Value* like_x, std::uint64_t v) { return llvm::ConstantInt::get(like_x->getType(), v); }

struct TwoSum {
  Value* sum;
  Value* error;  // a + b - sum, exactly (Knuth)
};

TwoSum two_sum(llvm::IRBuilderBase& b, Value* x, Value* y) {
  Value* s = b.CreateFAdd(x, y);
  Value* part = b.CreateFSub(s, x);
  return {s, b.CreateFAdd(b.CreateFSub(x, b.CreateFSub(s, part)), b.CreateFSub(y, part))};
}

}  // namespace

// The product of two f32 is exact in f64. The sum is rounded to odd there, so that rounding to f32 is as from the exact
// sum (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd").
Value* Emitter::soft_fma_f32(Value* x, Value* y, Value* z) {
  llvm::Type* wide = like(b_.getDoubleTy(), x);
  llvm::Type* word = like(b_.getInt64Ty(), x);
  const auto extend = [&](Value* v) { return b_.CreateFPExt(v, wide); };
  const TwoSum s = two_sum(b_, b_.CreateFMul(extend(x), extend(y)), extend(z));
  Value* zero = llvm::ConstantFP::get(wide, 0.0);
  Value* inexact = b_.CreateFCmpONE(s.error, zero);  // ordered: infinities and NaN stay as they are
  Value* bits = b_.CreateBitCast(s.sum, word);
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, integer(bits, 1)), integer(bits, 0));
  Value* outward = b_.CreateICmpEQ(b_.CreateFCmpOGT(s.error, zero), b_.CreateFCmpOGT(s.sum, zero));
  Value* moved = b_.CreateSelect(outward, b_.CreateAdd(bits, integer(bits, 1)), b_.CreateSub(bits, integer(bits, 1)));
  Value* odd = b_.CreateSelect(b_.CreateAnd(inexact, even), moved, bits);
  return b_.CreateFPTrunc(b_.CreateBitCast(odd, wide), x->getType());
}

// Product and sum with their errors (Dekker), which gives all but the last bit in rare cases; where the splitting
// overflows, product and sum each rounded.
Value* Emitter::soft_fma_f64(Value* x, Value* y, Value* z) {
  const auto split = [&](Value* v) {
    Value* c = b_.CreateFMul(v, llvm::ConstantFP::get(v->getType(), 134217729.0));  // 2^27 + 1
    Value* high = b_.CreateFSub(c, b_.CreateFSub(c, v));
    return std::pair{high, b_.CreateFSub(v, high)};
  };
  const auto [xh, xl] = split(x);
  const auto [yh, yl] = split(y);
  Value* product = b_.CreateFMul(x, y);
  Value* error = b_.CreateFSub(b_.CreateFMul(xh, yh), product);
  error = b_.CreateFAdd(b_.CreateFAdd(error, b_.CreateFMul(xh, yl)), b_.CreateFMul(xl, yh));
  error = b_.CreateFAdd(error, b_.CreateFMul(xl, yl));
  const TwoSum s = two_sum(b_, product, z);
  Value* exact = b_.CreateFAdd(s.sum, b_.CreateFAdd(s.error, error));
  Value* finite = b_.CreateFCmpONE(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, exact), llvm::ConstantFP::getInfinity(x->getType()));
  return b_.CreateSelect(finite, exact, b_.CreateFAdd(product, z));
}

// Exponent and fraction shifted into place and scaled by 2^112, which also makes subnormals right.
Value* Emitter::soft_widen_f16(Value* x) {
  Value* bits = b_.CreateZExt(b_.CreateBitCast(x, like(b_.getInt16Ty(), x)), like(b_.getInt32Ty(), x));
  Value* magnitude = b_.CreateAnd(bits, integer(bits, 0x7fff));
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, integer(bits, 0x8000)), 16);
  Value* shifted = b_.CreateShl(magnitude, 13);
  llvm::Type* f32 = like(b_.getFloatTy(), x);
  Value* scale = b_.CreateBitCast(integer(bits, 0x77800000), f32);
  Value* finite = b_.CreateBitCast(b_.CreateFMul(b_.CreateBitCast(shifted, f32), scale), bits->getType());
  Value* special = b_.CreateOr(shifted, integer(bits, 0x7f800000));
  Value* is_special = b_.CreateICmpUGE(magnitude, integer(bits, 0x7c00));
  return b_.CreateBitCast(b_.CreateOr(b_.CreateSelect(is_special, special, finite), sign), f32);
}

// To nearest even: normal results by integers, subnormal ones by an addition that aligns them.
Value* Emitter::soft_narrow_f16(Value* x) {
  Value* bits = b_.CreateBitCast(x, like(b_.getInt32Ty(), x));
  Value* magnitude = b_.CreateAnd(bits, integer(bits, 0x7fffffff));
  Value* sign = b_.CreateLShr(b_.CreateAnd(bits, integer(bits, 0x80000000)), 16);
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), integer(bits, 1));
  Value* rebased = b_.CreateSub(magnitude, integer(bits, 0x38000000));
  Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(rebased, integer(bits, 0xfff)), odd), 13);
  Value* aligned = b_.CreateFAdd(b_.CreateBitCast(magnitude, x->getType()), llvm::ConstantFP::get(x->getType(), 0.5));
  Value* subnormal = b_.CreateSub(b_.CreateBitCast(aligned, bits->getType()), integer(bits, 0x3f000000));
  Value* quiet = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(magnitude, 13), integer(bits, 0x3ff)), integer(bits, 0x7e00));
  Value* over = b_.CreateSelect(b_.CreateICmpUGT(magnitude, integer(bits, 0x7f800000)), quiet, integer(bits, 0x7c00));
  Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, integer(bits, 0x38800000)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, integer(bits, 0x47800000)), over, result);
  result = b_.CreateTrunc(b_.CreateOr(result, sign), like(b_.getInt16Ty(), x));
  return b_.CreateBitCast(result, like(b_.getHalfTy(), x));
}

}  // namespace weft::codegen
