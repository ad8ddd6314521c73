// Conversions. Each rounds once: a way through an intermediate type is taken only where that cannot change the result.
#include <cmath>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::Value;

llvm::Type* like(llvm::Type* element, Value* x) { return x->getType()->getWithNewType(element); }

Value* Emitter::widen(Value* x, DType from) {
  if (from == DType::F16 && !isa_.f16c) return soft_widen_f16(x);
  if (from == DType::F16) return b_.CreateFPExt(x, like(b_.getFloatTy(), x));
  if (from != DType::BF16) return x;
  Value* bits = b_.CreateZExt(x, like(b_.getInt32Ty(), x));
  return b_.CreateBitCast(b_.CreateShl(bits, 16), like(b_.getFloatTy(), x));
}

Value* Emitter::narrow(Value* x, DType to) {
  if (to == DType::F16 && !isa_.f16c) return soft_narrow_f16(x);
  if (to == DType::F16) return b_.CreateFPTrunc(x, like(b_.getHalfTy(), x));
  if (to != DType::BF16) return x;
  // To nearest even by integers: x86's vcvtneps2bf16 would flush denormals.
  Value* bits = b_.CreateBitCast(x, like(b_.getInt32Ty(), x));
  Value* high = b_.CreateLShr(bits, 16);
  Value* odd = b_.CreateAnd(high, same_number(high, 1));
  Value* rounded = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, odd), same_number(bits, 0x7fff)), 16);
  Value* quiet = b_.CreateOr(high, same_number(high, 0x40));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  return b_.CreateTrunc(result, like(b_.getInt16Ty(), x));
}

// Towards zero, with the last bit set when inexact: a later rounding to 22 bits or fewer is then as from f64.
Value* Emitter::round_to_odd(Value* x) {
  Value* near = b_.CreateFPTrunc(x, like(b_.getFloatTy(), x));
  Value* back = b_.CreateFPExt(near, x->getType());
  Value* inexact = b_.CreateFCmpONE(back, x);
  Value* above = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                  b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* bits = b_.CreateBitCast(near, like(b_.getInt32Ty(), x));
  bits = b_.CreateSub(bits, b_.CreateZExt(above, bits->getType()));
  bits = b_.CreateOr(bits, b_.CreateZExt(inexact, bits->getType()));
  return b_.CreateBitCast(bits, near->getType());
}

Value* Emitter::float_to_int(Value* x, DType from, DType to) {
  x = widen(x, from);
  llvm::Type* ty = x->getType();
  const int width = bits(to);
  const bool sign = is_signed_int(to);
  const double high = std::ldexp(1.0, sign ? width - 1 : width);  // first value out of range
  Value* zero = llvm::ConstantFP::get(ty, 0.0);
  Value* low = llvm::ConstantFP::get(ty, sign ? -high : 0.0);
  if (sign) x = b_.CreateSelect(b_.CreateFCmpORD(x, x), x, zero);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, low), x, low);  // NaN becomes low
  if (width < 32) {
    // Through i32: vector units convert to nothing narrower.
    Value* most = llvm::ConstantFP::get(ty, high - 1);
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, most), x, most);
    // What is widened again needs no mask: no bit is lost.
    return b_.CreateTrunc(b_.CreateFPToSI(x, like(b_.getInt32Ty(), x)), like(element(to), x), "", !sign, sign);
  }
  Value* over = b_.CreateFCmpOGE(x, llvm::ConstantFP::get(ty, high));
  x = b_.CreateSelect(over, zero, x);
  llvm::Type* result = like(element(to), x);
  Value* n = sign ? b_.CreateFPToSI(x, result) : b_.CreateFPToUI(x, result);
  const auto largest = sign ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
  return b_.CreateSelect(over, llvm::ConstantInt::get(result, largest), n);
}

Value* Emitter::int_to_float(Value* x, DType from, DType to) {
  const bool sign = is_signed_int(from);
  auto convert = [&](llvm::Type* element) {
    return sign ? b_.CreateSIToFP(x, like(element, x)) : b_.CreateUIToFP(x, like(element, x));
  };
  if (bits(from) < 32) {
    llvm::Type* wide = like(b_.getInt32Ty(), x);
    x = sign ? b_.CreateSExt(x, wide) : b_.CreateZExt(x, wide);
    return narrow(b_.CreateSIToFP(x, like(to == DType::F64 ? b_.getDoubleTy() : b_.getFloatTy(), x)), to);
  }
  if (to == DType::F32 || to == DType::F64) return convert(element(to));
  if (to == DType::F16) return narrow(convert(b_.getFloatTy()), to);  // what f32 rounds is out of range for f16
  if (bits(from) == 64) {
    // Beyond 2^53 the bits that f64 would round away collapse into one below those that bf16 keeps.
    Value* lost = b_.CreateICmpNE(b_.CreateAnd(x, same_number(x, 0x7ff)), same_number(x, 0));
    constexpr std::uint64_t exact = std::uint64_t{1} << 53;
    Value* big = sign ? b_.CreateICmpUGT(b_.CreateAdd(x, same_number(x, exact)), same_number(x, 2 * exact))
                      : b_.CreateICmpUGT(x, same_number(x, exact));
    Value* sticky = b_.CreateOr(b_.CreateAnd(x, same_number(x, ~std::int64_t{0x7ff})), same_number(x, 0x800));
    x = b_.CreateSelect(b_.CreateAnd(lost, big), sticky, x);
  }
  return narrow(round_to_odd(convert(b_.getDoubleTy())), to);
}

Value* Emitter::cast(Value* x, DType from, DType to) {
  if (from == to) return x;
  if (is_float(from)) {
    if (is_float(to)) {
      if (from == DType::F64) {
        return to == DType::F32 ? b_.CreateFPTrunc(x, like(b_.getFloatTy(), x)) : narrow(round_to_odd(x), to);
      }
      x = widen(x, from);
      return to == DType::F64 ? b_.CreateFPExt(x, like(b_.getDoubleTy(), x)) : narrow(x, to);
    }
    if (is_bool(to)) {
      x = widen(x, from);
      return b_.CreateFCmpUNE(x, llvm::ConstantFP::get(x->getType(), 0.0));
    }
    return float_to_int(x, from, to);
  }
  if (is_bool(to)) return b_.CreateICmpNE(x, same_number(x, 0));
  if (is_float(to)) {
    if (!is_bool(from)) return int_to_float(x, from, to);
    const ssa::Type shape = x->getType()->isVectorTy()
                                ? ssa::Type::vector(to, llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements())
                                : ssa::Type::scalar(to);
    return b_.CreateSelect(x, number(to, 1, shape), number(to, 0, shape));
  }
  llvm::Type* result = like(element(to), x);
  if (is_signed_int(from)) return b_.CreateSExtOrTrunc(x, result);
  return b_.CreateZExtOrTrunc(x, result);
}

Value* Emitter::bitcast(Value* x, DType from, DType to) {
  if (is_bool(from)) x = b_.CreateZExt(x, like(b_.getInt8Ty(), x));
  if (is_bool(to)) return b_.CreateICmpNE(x, same_number(x, 0));
  return b_.CreateBitCast(x, like(element(to), x));
}

}  // namespace weft::codegen
