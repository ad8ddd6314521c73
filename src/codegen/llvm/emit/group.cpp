// Kernels for groups of threads, as NVPTX has them: one call a thread, buffers in global memory (address space 1), what
// a group shares in space 3, ids in special registers.
//
// Parameters: a pointer for each Memory buffer, the sizes as i64, a pointer to the status word.
#include <algorithm>

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emit/emitter.h"
#include "runtime/kernel_abi.h"

namespace weft::codegen {

using llvm::BasicBlock;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kGlobal = 1, kShared = 3;  // address spaces
constexpr int kAlign = static_cast<int>(runtime::kGroupBufferAlign);

// Whether products of four warps read the buffer.
bool is_block(const ssa::Block& block, int buffer) {
  return std::any_of(block.insts.begin(), block.insts.end(), [&](const ssa::Inst& inst) {
    const bool product = static_cast<kernel::Op>(inst.op) == kernel::Op::MultiplyGroup;
    const auto blocks = ssa::BlocksImm::of(inst.imm);
    if (product && (blocks.left.buffer == buffer || blocks.right.buffer == buffer)) return true;
    return std::any_of(inst.regions.begin(), inst.regions.end(), [&](const ssa::Block& region) { return is_block(region, buffer); });
  });
}

}  // namespace

Value* Emitter::shared_memory(const ssa::Buffer& buffer, std::size_t number) {
  const auto elements = static_cast<std::uint64_t>(std::max<std::int64_t>(buffer.elements, 1));
  auto* type = llvm::ArrayType::get(memory_element(buffer.dtype), elements);
  if (f_.threads == 1) return b_.CreateAlloca(type);  // a thread's own
  auto* memory = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::UndefValue::get(type), fn_->getName() + "_shared" + llvm::Twine(number),
                                          nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  memory->setAlignment(llvm::Align(is_block(f_.body, static_cast<int>(number)) ? kernel::kGroupAlign : kAlign));
  return memory;
}

Value* Emitter::special_register(unsigned intrinsic) {
  return b_.CreateZExt(b_.CreateIntrinsic(b_.getInt32Ty(), intrinsic, {}), b_.getInt64Ty());
}

void Emitter::open_kernel(const std::string& symbol, const std::vector<llvm::Type*>& parameters, unsigned convention) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), parameters, false);
  fn_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  fn_->setCallingConv(convention);
  fn_->addFnAttr(llvm::Attribute::NoUnwind);
  b_.SetInsertPoint(new_block("entry"));
}

void Emitter::open_group_frame(const std::string& symbol) {
  llvm::Type* pointer = b_.getPtrTy(kGlobal);
  std::vector<llvm::Type*> parameters;
  for (const auto& buffer : f_.buffers) {
    if (buffer.space == ssa::Space::Memory) parameters.push_back(pointer);
  }
  parameters.insert(parameters.end(), static_cast<std::size_t>(f_.sizes), b_.getInt64Ty());
  parameters.push_back(pointer);
  open_kernel(symbol, parameters, llvm::CallingConv::PTX_Kernel);
  fn_->addFnAttr("nvvm.maxntid", std::to_string(f_.threads));
  fn_->addFnAttr("nvvm.minctasm", "1");  // else the assembler spills registers for more groups than the schedule counts on
  unsigned next = 0;
  for (std::size_t i = 0; i < f_.buffers.size(); ++i) {
    if (f_.buffers[i].space == ssa::Space::OnChip) {
      buffers_.push_back(shared_memory(f_.buffers[i], i));
      continue;
    }
    fn_->addParamAttr(next, llvm::Attribute::NoAlias);
    fn_->addParamAttr(next, llvm::Attribute::getWithAlignment(module_.getContext(), llvm::Align(kAlign)));
    buffers_.push_back(fn_->getArg(next++));
  }
  for (int i = 0; i < f_.sizes; ++i) sizes_.push_back(fn_->getArg(next++));
  status_ = fn_->getArg(next);
  program_ = special_register(Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  thread_ = special_register(Intrinsic::nvvm_read_ptx_sreg_tid_x);
}

Result<void> Emitter::run_group(const std::string& symbol) {
  isa_.spirv ? open_spirv_frame(symbol) : open_group_frame(symbol);
  BasicBlock* entry = b_.GetInsertBlock();
  BasicBlock* body = new_block("program");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  preheaders_.push_back(entry);
  WEFT_TRY(block(f_.body));
  b_.CreateRetVoid();
  return {};
}

void Emitter::barrier() {
  constexpr unsigned kLocalFence = 1;
  if (isa_.spirv) return void(call_builtin("_Z7barrierj", b_.getVoidTy(), {b_.getInt32(kLocalFence)}));
  b_.CreateIntrinsic(b_.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b_.getInt32(0)});
}

// In words of 32 bits.
Value* Emitter::shuffle(const ssa::Type& t, Value* x, Value* lane) {
  if (isa_.spirv) return isa_.shuffles ? shuffle_subgroup(x, lane) : nullptr;
  llvm::Type* own = type(t);
  const unsigned width = own->getScalarSizeInBits();
  const auto word = [&](Value* w) {
    constexpr int all_lanes = -1, whole_warp = 31;
    return b_.CreateIntrinsic(b_.getInt32Ty(), Intrinsic::nvvm_shfl_sync_idx_i32,
                              {b_.getInt32(all_lanes), w, b_.CreateTrunc(lane, b_.getInt32Ty()),
                               b_.getInt32(whole_warp)});
  };
  Value* bits = b_.CreateBitCast(x, b_.getIntNTy(width));
  if (width <= 32) {
    bits = b_.CreateTrunc(word(b_.CreateZExt(bits, b_.getInt32Ty())), b_.getIntNTy(width));
  } else {
    Value* low = b_.CreateZExt(word(b_.CreateTrunc(bits, b_.getInt32Ty())), b_.getInt64Ty());
    Value* high = b_.CreateZExt(word(b_.CreateTrunc(b_.CreateLShr(bits, 32), b_.getInt32Ty())), b_.getInt64Ty());
    bits = b_.CreateOr(low, b_.CreateShl(high, 32));
  }
  return b_.CreateBitCast(bits, own);
}

// Zero where it is not; `type` is that of the access's value, null for none.
Value* Emitter::only_if(Value* mask, llvm::Type* type, const std::function<Value*()>& access) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* allowed = new_block("access");
  BasicBlock* after = new_block("accessed");
  b_.CreateCondBr(mask, allowed, after);
  b_.SetInsertPoint(allowed);
  Value* value = access();
  BasicBlock* accessed = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  if (type == nullptr) return nullptr;
  auto* result = b_.CreatePHI(type, 2);
  result->addIncoming(llvm::Constant::getNullValue(type), before);
  result->addIncoming(value, accessed);
  return result;
}

}  // namespace weft::codegen
