// What NVIDIA's multiprocessors have beside their threads: units for exponentials and matrices, copies from global to shared memory.
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/emit/lanes.h"

namespace weft::codegen {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

unsigned product_of(DType a, DType b) {
  switch (a) {
    case DType::F16: return Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
    case DType::BF16: return Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
    case DType::F32: return Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
    case DType::F8E4M3FN: return b == DType::F8E4M3FN ? Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e4m3_e4m3_f32 : Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e4m3_e5m2_f32;
    case DType::F8E5M2: return b == DType::F8E5M2 ? Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e5m2_e5m2_f32 : Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e5m2_e4m3_f32;
    case DType::I8: return b == DType::I8 ? Intrinsic::nvvm_mma_m16n8k32_row_col_s8 : Intrinsic::nvvm_mma_m16n8k32_row_col_s8_u8;
    default: return b == DType::U8 ? Intrinsic::nvvm_mma_m16n8k32_row_col_u8 : Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8;
  }
}

}  // namespace

// Lane by lane.
Value* Emitter::math_unit(kernel::Op op, Value* x) {
  const auto one = [&](Value* lane) -> Value* {
    if (op == kernel::Op::Exp2Unit) return b_.CreateUnaryIntrinsic(Intrinsic::nvvm_ex2_approx_ftz, lane);
    return b_.CreateIntrinsic(b_.getFloatTy(), Intrinsic::nvvm_saturate_f, {lane});
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr) return one(x);
  Value* result = llvm::PoisonValue::get(x->getType());
  for (std::uint64_t i = 0; i < vector->getNumElements(); ++i) result = b_.CreateInsertElement(result, one(lane_of(b_, x, i)), i);
  return result;
}

// A word is an i32, or two halves.
Value* Emitter::multiply_matrix(const ssa::Inst& inst) {
  const DType t = f_.type(inst.operands[0]).dtype;
  std::vector<Value*> operands;
  for (const int n : {0, 1}) {
    const int words = n == 0 ? 4 : 2, lanes = kernel::word_elements(t);
    Value* x = values_[inst.operands[n]].value;
    if (t != DType::F16) x = b_.CreateBitCast(x, llvm::FixedVectorType::get(b_.getInt32Ty(), words));
    for (int i = 0; i < words; ++i) {
      operands.push_back(t == DType::F16 ? b_.CreateShuffleVector(x, {lanes * i, lanes * i + 1}) : b_.CreateExtractElement(x, b_.getInt64(i)));
    }
  }
  Value* sum = values_[inst.operands[2]].value;
  for (std::uint64_t i = 0; i < 4; ++i) operands.push_back(lane_of(b_, sum, i));
  const unsigned op = product_of(t, f_.type(inst.operands[1]).dtype);
  llvm::CallInst* product = b_.CreateCall(Intrinsic::getOrInsertDeclaration(&module_, op), operands);
  product->setConvergent();
  Value* result = llvm::PoisonValue::get(sum->getType());
  for (unsigned i = 0; i < 4; ++i) result = b_.CreateInsertElement(result, b_.CreateExtractValue(product, i), i);
  return result;
}

Value* Emitter::load_matrix(const ssa::Inst& inst) {
  const ssa::Type& r = f_.type(inst.results[0]);
  const int matrices = r.lanes() / kernel::word_elements(r.dtype);
  const bool turned = static_cast<kernel::Op>(inst.op) == kernel::Op::LoadMatrixTurned;
  const unsigned plain[] = {Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_b16, Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                            Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16};
  const unsigned changed[] = {Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16, Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16,
                              Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16};
  Value* pointer = address(static_cast<int>(inst.imm), inst.operands[0]);
  const unsigned op = (turned ? changed : plain)[matrices / 2];
  llvm::CallInst* words = b_.CreateCall(Intrinsic::getOrInsertDeclaration(&module_, op, {pointer->getType()}), {pointer});
  words->setConvergent();
  if (matrices == 1) return b_.CreateBitCast(words, type(r));
  Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(matrices)));
  for (int i = 0; i < matrices; ++i) result = b_.CreateInsertElement(result, b_.CreateExtractValue(words, static_cast<unsigned>(i)), b_.getInt64(i));
  return b_.CreateBitCast(result, type(r));
}

// A select, out of which LLVM would make one for each part of a conjunction.
Value* Emitter::bytes_if(Value* mask, int bytes) {
  if (llvm::isa<llvm::Constant>(mask)) return b_.CreateSelect(mask, b_.getInt32(static_cast<std::uint32_t>(bytes)), b_.getInt32(0));
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {mask->getType()}, false);
  return b_.CreateCall(type, llvm::InlineAsm::get(type, "selp.b32 $0, " + std::to_string(bytes) + ", 0, $1;", "=r,b", false), {mask});
}

// Where masked, it reads no byte and fills up with zeros. 16 bytes go past the first-level cache.
void Emitter::copy_async(const ssa::Inst& inst) {
  const auto copy = ssa::CopyImm::of(inst.imm);
  const int bytes = copy.elements * bits(f_.buffers[copy.to].dtype) / 8;
  std::vector<Value*> operands = {address(copy.to, inst.operands[0]), address(copy.from, inst.operands[1])};
  const bool masked = inst.operands.size() > 2;
  if (masked) operands.push_back(bytes_if(values_[inst.operands[2]].value, bytes));
  unsigned op = masked ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s : Intrinsic::nvvm_cp_async_cg_shared_global_16;
  if (bytes == 8) op = masked ? Intrinsic::nvvm_cp_async_ca_shared_global_8_s : Intrinsic::nvvm_cp_async_ca_shared_global_8;
  if (bytes == 4) op = masked ? Intrinsic::nvvm_cp_async_ca_shared_global_4_s : Intrinsic::nvvm_cp_async_ca_shared_global_4;
  b_.CreateCall(Intrinsic::getOrInsertDeclaration(&module_, op), operands);
}

void Emitter::commit_copies() { b_.CreateIntrinsic(b_.getVoidTy(), Intrinsic::nvvm_cp_async_commit_group, {}); }

void Emitter::wait_copies(const ssa::Inst& inst) {
  b_.CreateIntrinsic(b_.getVoidTy(), Intrinsic::nvvm_cp_async_wait_group, {b_.getInt32(static_cast<std::uint32_t>(inst.imm))});
}

}  // namespace weft::codegen
