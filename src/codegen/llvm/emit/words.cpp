// Dot products of narrow elements, a word of each operand at a time. Of bytes, four: exact on every CPU, by the unit made
// for it (x86's vpdpbusd), in pairs of 16 bits (vpmaddwd, whose sums of two cannot overflow; vpmaddubsw would saturate), or
// by plain multiplications. Of bf16, two: by x86's vdpbf16ps, or by two multiply-adds of f32.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

unsigned lanes_of(Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? vector->getNumElements() : 1;
}

Value* bits_of(Value* x, std::uint64_t v) { return llvm::ConstantInt::get(x->getType(), v); }

}  // namespace

Value* Emitter::words(Value* elements, const ssa::Type& to) { return b_.CreateBitCast(elements, type(to)); }

Value* Emitter::dot4(Value* a, Value* b, Value* sum) {
  if (Value* v = dot4_by_unit(a, b, sum)) return v;
  if (Value* v = dot4_by_pairs(a, b, sum)) return v;
  for (int k = 0; k < 4; ++k) {
    Value* x = b_.CreateAnd(b_.CreateLShr(a, bits_of(a, 8 * k)), bits_of(a, 255));
    Value* y = b_.CreateAShr(b_.CreateShl(b, bits_of(b, 24 - 8 * k)), bits_of(b, 24));
    sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
  }
  return sum;
}

Value* Emitter::dot4_by_unit(Value* a, Value* b, Value* sum) {
  const unsigned n = lanes_of(sum);
  if (!(n == 4 || n == 8 || n == 16) || !(isa_.vnni || (isa_.vnni_vex && n < 16))) return nullptr;
  const auto id = n == 4   ? Intrinsic::x86_avx512_vpdpbusd_128
                  : n == 8 ? Intrinsic::x86_avx512_vpdpbusd_256
                           : Intrinsic::x86_avx512_vpdpbusd_512;
  llvm::Type* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 4 * n);
  return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {sum, b_.CreateBitCast(a, bytes), b_.CreateBitCast(b, bytes)});
}

// Bytes 0 and 2 of each word as a pair of 16 bits, bytes 1 and 3 as another.
Value* Emitter::dot4_by_pairs(Value* a, Value* b, Value* sum) {
  const unsigned n = lanes_of(sum);
  if (!isa_.x86 || !(n == 4 || (n == 8 && isa_.avx2) || (n == 16 && isa_.avx512))) return nullptr;
  const auto id = n == 4   ? Intrinsic::x86_sse2_pmadd_wd
                  : n == 8 ? Intrinsic::x86_avx2_pmadd_wd
                           : Intrinsic::x86_avx512_pmaddw_d_512;
  llvm::Type* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * n);
  Value* x = b_.CreateBitCast(a, halves);
  Value* y = b_.CreateBitCast(b, halves);
  const auto products = [&](Value* p, Value* q) { return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {p, q}); };
  Value* even = products(b_.CreateAnd(x, bits_of(x, 255)), b_.CreateAShr(b_.CreateShl(y, bits_of(y, 8)), bits_of(y, 8)));
  Value* odd = products(b_.CreateLShr(x, bits_of(x, 8)), b_.CreateAShr(y, bits_of(y, 8)));
  return b_.CreateAdd(sum, b_.CreateAdd(even, odd));
}

Value* Emitter::dot2(Value* a, Value* b, Value* sum) {
  const unsigned n = lanes_of(sum);
  if (isa_.bf16_pairs && (n == 4 || n == 8 || n == 16)) {
    const auto id = n == 4   ? Intrinsic::x86_avx512bf16_dpbf16ps_128
                    : n == 8 ? Intrinsic::x86_avx512bf16_dpbf16ps_256
                             : Intrinsic::x86_avx512bf16_dpbf16ps_512;
    llvm::Type* pairs = llvm::FixedVectorType::get(b_.getBFloatTy(), 2 * n);
    return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {sum, b_.CreateBitCast(a, pairs), b_.CreateBitCast(b, pairs)});
  }
  llvm::Type* f32 = sum->getType();
  const auto upper = [&](Value* x) { return b_.CreateBitCast(b_.CreateAnd(x, bits_of(x, 0xffff0000)), f32); };
  const auto lower = [&](Value* x) { return b_.CreateBitCast(b_.CreateShl(x, bits_of(x, 16)), f32); };
  sum = fma(DType::F32, {upper(a), upper(b), sum});
  return fma(DType::F32, {lower(a), lower(b), sum});
}

}  // namespace weft::codegen
