// Kernels for OpenCL devices as SPIR-V: what group.cpp says, in OpenCL's calling convention. Builtins are called by the
// names that OpenCL C's would have, which LLVM knows.
//
// Parameters, the same as of the OpenCL text: for each Memory buffer a pointer and the byte where it starts there, the
// sizes, the same pair for the status word.
#include <algorithm>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::BasicBlock;
using llvm::Value;

void Emitter::open_spirv_frame(const std::string& symbol) {
  constexpr unsigned kGlobal = 1;  // address space
  llvm::Type* i64 = b_.getInt64Ty();
  std::vector<llvm::Type*> parameters;
  const auto add_span = [&] { parameters.insert(parameters.end(), {b_.getPtrTy(kGlobal), i64}); };
  for (const auto& buffer : f_.buffers) {
    if (buffer.space == ssa::Space::Memory) add_span();
  }
  parameters.insert(parameters.end(), static_cast<std::size_t>(f_.sizes), i64);
  add_span();
  open_kernel(symbol, parameters, llvm::CallingConv::SPIR_KERNEL);
  const auto set = [&](const char* what, std::vector<int> numbers) {
    std::vector<llvm::Metadata*> operands;
    for (int n : numbers) operands.push_back(llvm::ConstantAsMetadata::get(b_.getInt32(n)));
    fn_->setMetadata(what, llvm::MDNode::get(module_.getContext(), operands));
  };
  set("reqd_work_group_size", {f_.threads, 1, 1});
  if (isa_.shuffles && f_.threads > 1) set("intel_reqd_sub_group_size", {f_.warp});
  unsigned next = 0;
  const auto span = [&] {
    Value* memory = fn_->getArg(next++);
    return b_.CreateGEP(b_.getInt8Ty(), memory, fn_->getArg(next++));
  };
  for (std::size_t i = 0; i < f_.buffers.size(); ++i) {
    buffers_.push_back(f_.buffers[i].space == ssa::Space::OnChip ? shared_memory(f_.buffers[i], i) : span());
  }
  for (int i = 0; i < f_.sizes; ++i) sizes_.push_back(fn_->getArg(next++));
  status_ = span();
  constexpr unsigned kFirstAxis = 0;
  program_ = call_builtin("_Z12get_group_idj", i64, {b_.getInt32(kFirstAxis)});
  thread_ = call_builtin("_Z12get_local_idj", i64, {b_.getInt32(kFirstAxis)});
}

Value* Emitter::call_builtin(const std::string& name, llvm::Type* result, const std::vector<Value*>& arguments) {
  std::vector<llvm::Type*> types;
  for (Value* a : arguments) types.push_back(a->getType());
  auto callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setCallingConv(llvm::CallingConv::SPIR_FUNC);
  function->addFnAttr(llvm::Attribute::Convergent);
  auto* call = b_.CreateCall(callee, arguments);
  call->setCallingConv(llvm::CallingConv::SPIR_FUNC);
  return call;
}

Value* Emitter::shuffle_subgroup(Value* x, Value* lane) {
  const unsigned width = x->getType()->getScalarSizeInBits();
  const char* type = width <= 8 ? "h" : width == 16 ? "t" : width == 32 ? "j" : "m";  // as C++ mangles unsigned ones
  llvm::Type* word = b_.getIntNTy(std::max(8u, width));
  Value* bits = b_.CreateZExt(b_.CreateBitCast(x, b_.getIntNTy(width)), word);
  bits = call_builtin(std::string("_Z17sub_group_shuffle") + type + "j", word, {bits, b_.CreateTrunc(lane, b_.getInt32Ty())});
  return b_.CreateBitCast(b_.CreateTrunc(bits, b_.getIntNTy(width)), x->getType());
}

// An atomic sum of floats, which only an extension has: until nobody else was in between.
Value* Emitter::add_by_exchange(Value* pointer, Value* x) {
  llvm::Type* bits = b_.getIntNTy(x->getType()->getScalarSizeInBits());
  const llvm::Align align(bits->getIntegerBitWidth() / 8);
  constexpr auto kOrder = llvm::AtomicOrdering::Monotonic;
  auto* first = b_.CreateAlignedLoad(bits, pointer, align);
  first->setAtomic(kOrder);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* attempt = new_block("attempt");
  BasicBlock* added = new_block("added");
  b_.CreateBr(attempt);
  b_.SetInsertPoint(attempt);
  auto* expected = b_.CreatePHI(bits, 2);
  expected->addIncoming(first, before);
  Value* sum = b_.CreateBitCast(b_.CreateFAdd(b_.CreateBitCast(expected, x->getType()), x), bits);
  Value* exchange = b_.CreateAtomicCmpXchg(pointer, expected, sum, align, kOrder, kOrder);
  Value* found = b_.CreateExtractValue(exchange, 0);
  expected->addIncoming(found, attempt);
  b_.CreateCondBr(b_.CreateICmpEQ(found, expected), added, attempt);
  b_.SetInsertPoint(added);
  return b_.CreateBitCast(found, x->getType());
}

}  // namespace weft::codegen
