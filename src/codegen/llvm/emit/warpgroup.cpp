// Products of four warps (wgmma). LLVM has no intrinsic for the product: it is inline assembly, as is the wait, which takes
// and gives the sums, so that nothing that reads them moves before it.
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/emit/lanes.h"

namespace weft::codegen {

using llvm::Value;

namespace {

const char* spelling(DType t) {
  switch (t) {
    case DType::F16: return "f16";
    case DType::BF16: return "bf16";
    case DType::F8E4M3FN: return "e4m3";
    case DType::F8E5M2: return "e5m2";
    case DType::I8: return "s8";
    default: return "u8";
  }
}

}  // namespace

void Emitter::fence_products() { b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_wgmma_fence_sync_aligned, {}); }
void Emitter::fence_shared() { b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_fence_proxy_async_shared_cta, {}); }
void Emitter::commit_products() { b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::nvvm_wgmma_commit_group_sync_aligned, {}); }

// Start, leading and stride in units of 16 bytes from bits 0, 16 and 32; the row's length from bit 62. What is constant of
// the index is added behind the shift: the address of a block is a multiple of 16, below 2^18.
Value* Emitter::block_descriptor(const ssa::BlockImm& block, ssa::ValueId index) {
  constexpr int kUnit = 4, kAddressBits = 18, kLeadingFrom = 16, kStrideFrom = 32, kModeFrom = 62, kLongestRow = 7;
  const int bytes = bits(f_.buffers[static_cast<std::size_t>(block.buffer)].dtype) / 8;
  Value *at = values_[index].value, *variable = nullptr;
  llvm::ConstantInt* constant = nullptr;
  using namespace llvm::PatternMatch;
  if (!match(at, m_Add(m_Value(variable), m_ConstantInt(constant)))) {
    constant = llvm::dyn_cast<llvm::ConstantInt>(at);
    variable = constant != nullptr ? b_.getInt64(0) : at;
  }
  const std::uint64_t added = constant == nullptr ? 0 : constant->getZExtValue() * static_cast<std::uint64_t>(bytes) >> kUnit;
  Value* base = buffers_[static_cast<std::size_t>(block.buffer)];
  Value* pointer = b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(variable, b_.getInt64(static_cast<std::uint64_t>(bytes))));
  Value* start = b_.CreateLShr(b_.CreateAnd(b_.CreatePtrToInt(pointer, b_.getInt32Ty()), (1U << kAddressBits) - 1), kUnit);
  const std::uint64_t leading = block.turned ? std::uint64_t{1} << (block.leading - kUnit) : 0;
  Value* low = b_.CreateAdd(start, b_.getInt32(static_cast<std::uint32_t>(added | leading << kLeadingFrom)));
  const std::uint64_t mode = static_cast<std::uint64_t>(kLongestRow - block.row + 1);  // 1, 2, 3: rows of 128, 64, 32 bytes
  const std::uint64_t high = mode << kModeFrom | std::uint64_t{1} << (block.stride - kUnit + kStrideFrom);
  return b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()), high);
}

// `text` names the sums $0, $1 ..., then the inputs. from_zero: it only writes the sums.
Value* Emitter::sums_by_assembly(const std::string& text, Value* sum, bool from_zero, const std::vector<Value*>& inputs,
                                 const std::string& constraints) {
  const auto count = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  std::string all;
  std::vector<Value*> operands;
  std::vector<llvm::Type*> types;
  llvm::Type* element = llvm::cast<llvm::FixedVectorType>(sum->getType())->getElementType();
  const std::string constraint = element->isFloatTy() ? "=f" : "=r";
  for (unsigned i = 0; i < count; ++i) all += (i == 0 ? "" : ",") + constraint;
  for (unsigned i = 0; i < count && !from_zero; ++i) {
    all += "," + std::to_string(i);
    operands.push_back(lane_of(b_, sum, i));
  }
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  for (Value* operand : operands) types.push_back(operand->getType());
  all += constraints + ",~{memory}";
  const std::vector<llvm::Type*> results(count, element);
  auto* type = llvm::FunctionType::get(llvm::StructType::get(b_.getContext(), results), types, false);
  llvm::CallInst* call = b_.CreateCall(type, llvm::InlineAsm::get(type, text, all, true), operands);
  call->setConvergent();
  Value* result = llvm::PoisonValue::get(sum->getType());
  for (unsigned i = 0; i < count; ++i) result = b_.CreateInsertElement(result, b_.CreateExtractValue(call, i), i);
  return result;
}

Value* Emitter::multiply_group(const ssa::Inst& inst) {
  const auto blocks = ssa::BlocksImm::of(inst.imm);
  Value* sum = values_[inst.operands[2]].value;
  const unsigned count = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  const bool from_zero = llvm::isa<llvm::Constant>(sum) && llvm::cast<llvm::Constant>(sum)->isNullValue();
  const bool in_registers = f_.type(inst.operands[0]).rank == 1;
  const DType right = f_.buffers[static_cast<std::size_t>(blocks.right.buffer)].dtype;
  const DType left = in_registers ? f_.type(inst.operands[0]).dtype : f_.buffers[static_cast<std::size_t>(blocks.left.buffer)].dtype;
  const bool floats = is_float(right);
  const int steps = kernel::kMatrixWords * kernel::word_elements(right);
  std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k" + std::to_string(steps) + (floats ? ".f32." : ".s32.") +
                     spelling(left) + "." + spelling(right) + " {";
  for (unsigned i = 0; i < count; ++i) text += (i == 0 ? "$" : ", $") + std::to_string(i);
  unsigned next = from_zero ? count : 2 * count;
  const auto number = [&] { return "$" + std::to_string(next++); };
  std::vector<Value*> inputs;
  std::string constraints;
  text += "}, ";
  if (in_registers) {
    constexpr unsigned kWords = 4;
    Value* words = b_.CreateBitCast(values_[inst.operands[0]].value, llvm::FixedVectorType::get(b_.getInt32Ty(), kWords));
    text += "{";
    for (unsigned i = 0; i < kWords; ++i) {
      inputs.push_back(b_.CreateExtractElement(words, i));
      constraints += ",r";
      text += (i == 0 ? "" : ", ") + number();
    }
    text += "}, ";
  } else {
    inputs.push_back(block_descriptor(blocks.left, inst.operands[0]));
    constraints += ",l";
    text += number() + ", ";
  }
  inputs.push_back(block_descriptor(blocks.right, inst.operands[1]));
  constraints += ",l";
  // Whether it adds to the sum, signs of floats, and which operands of 16 bits lie turned.
  text = "{\n.reg .pred adds;\nsetp.ne.b32 adds, " + std::string(from_zero ? "0" : "1") + ", 0;\n" + text + number() + ", adds";
  if (floats) text += ", 1, 1";
  if (bits(right) == 16 && !in_registers) text += blocks.left.turned ? ", 1" : ", 0";
  if (bits(right) == 16) text += blocks.right.turned ? ", 1" : ", 0";
  text += ";\n}";
  return sums_by_assembly(text, sum, from_zero, inputs, constraints);
}

Value* Emitter::wait_products(const ssa::Inst& inst) {
  return sums_by_assembly("wgmma.wait_group.sync.aligned " + std::to_string(inst.imm) + ";", values_[inst.operands[0]].value, false, {}, "");
}

}  // namespace weft::codegen
