// The frame of a kernel and its control flow.
#include <cstddef>
#include <utility>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/codegen.h"
#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/emit/lanes.h"

namespace weft::codegen {

using kernel::Op;
using llvm::BasicBlock;
using llvm::Value;
using ssa::ValueId;

namespace {

constexpr std::int64_t on_chip_align = 64;

std::int64_t on_chip_bytes(const ssa::Buffer& buffer) {
  const auto bytes = storage_bytes(buffer.dtype, buffer.elements);
  WEFT_CHECK(bytes, "an on-chip buffer's size overflows");
  return (static_cast<std::int64_t>(*bytes) + on_chip_align - 1) / on_chip_align * on_chip_align;
}

}  // namespace

std::int64_t scratch_bytes(const std::vector<ssa::Buffer>& buffers) {
  std::int64_t total = 0;
  for (const auto& buffer : buffers) {
    if (buffer.space == ssa::Space::OnChip) total += on_chip_bytes(buffer);
  }
  return total;
}

Emitter::Emitter(llvm::Module& module, llvm::IRBuilderBase& builder, const Isa& isa, const kernel::Function& function)
    : module_(module), b_(builder), isa_(isa), f_(function), values_(function.types.size()) {}

BasicBlock* Emitter::new_block(const char* name) { return BasicBlock::Create(module_.getContext(), name, fn_); }

void Emitter::define(ValueId id, Value* value, int depth) { values_[id] = {value, depth, nullptr}; }

void Emitter::open_frame(const std::string& symbol) {
  llvm::Type* ptr = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, i64, i64, ptr, ptr}, false);
  fn_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  fn_->addFnAttr(llvm::Attribute::NoUnwind);
  if (isa_.sve_bits > 0) {  // fixed vectors up to that width then are registers
    const auto times = static_cast<unsigned>(isa_.sve_bits / 128);
    fn_->addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(module_.getContext(), times, times));
  }
  fn_->addParamAttr(4, llvm::Attribute::getWithAlignment(module_.getContext(), llvm::Align(on_chip_align)));
  b_.SetInsertPoint(new_block("entry"));
  std::int64_t offset = 0;
  int memory = 0;
  for (const auto& buffer : f_.buffers) {
    if (buffer.space == ssa::Space::Memory) {
      buffers_.push_back(b_.CreateLoad(ptr, b_.CreateConstGEP1_64(ptr, fn_->getArg(0), memory++)));
    } else {
      buffers_.push_back(b_.CreateConstGEP1_64(b_.getInt8Ty(), fn_->getArg(4), offset));
      offset += on_chip_bytes(buffer);
    }
  }
  for (int i = 0; i < f_.sizes; ++i) {
    sizes_.push_back(b_.CreateLoad(i64, b_.CreateConstGEP1_64(i64, fn_->getArg(1), i)));
  }
  status_ = fn_->getArg(5);
  zero_slot_ = b_.CreateAlloca(i64);
  sink_slot_ = b_.CreateAlloca(i64);
  b_.CreateStore(b_.getInt64(0), zero_slot_);
}

Result<void> Emitter::run(const std::string& symbol) {
  if (isa_.groups) return run_group(symbol);
  if (f_.threads > 1) return unsupported("groups", "groups of threads on a CPU").at(f_.name);
  WEFT_TRY(assign_tiles());
  open_frame(symbol);
  configure_tiles();
  Value* begin = fn_->getArg(2);
  Value* end = fn_->getArg(3);
  BasicBlock* entry = b_.GetInsertBlock();
  BasicBlock* body = new_block("program");
  BasicBlock* exit = new_block("exit");
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), body, exit);
  b_.SetInsertPoint(body);
  auto* pid = b_.CreatePHI(b_.getInt64Ty(), 2, "pid");
  pid->addIncoming(begin, entry);
  program_ = pid;
  preheaders_.push_back(entry);
  WEFT_TRY(block(f_.body));
  Value* next = b_.CreateAdd(pid, b_.getInt64(1));
  pid->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, exit);
  b_.SetInsertPoint(exit);
  release_tiles();
  b_.CreateRetVoid();
  erase_unused();
  return {};
}

// Sums that became steps of pointers are not needed themselves. Instruction selection would look at them all the same.
void Emitter::erase_unused() {
  for (BasicBlock& block : llvm::reverse(*fn_)) {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (inst.use_empty() && !inst.isTerminator() && !inst.mayHaveSideEffects()) inst.eraseFromParent();
    }
  }
}

Result<void> Emitter::block(const ssa::Block& block) {
  for (const auto& i : block.insts) WEFT_TRY(inst(i));
  return {};
}

// Whether a value is the same for all programs: it is then computed before the loop over them.
bool Emitter::hoistable(const ssa::Inst& inst) const {
  const Op op = static_cast<Op>(inst.op);
  if (!f_.info(inst).pure || op == Op::ProgramId || op == Op::ThreadId) return false;
  for (ValueId operand : inst.operands) {
    if (values_[operand].depth > 0) return false;
  }
  return true;
}

Result<void> Emitter::inst(const ssa::Inst& inst) {
  switch (static_cast<Op>(inst.op)) {
    case Op::For: return for_loop(inst);
    case Op::If: return if_else(inst);
    case Op::Check: return check(inst), Result<void>();
    case Op::Barrier: return barrier(), Result<void>();
    case Op::Store: return store(inst), Result<void>();
    case Op::Scatter: return scatter(inst), Result<void>();
    case Op::CopyAsync: return copy_async(inst), Result<void>();
    case Op::FenceProducts: return fence_products(), Result<void>();
    case Op::FenceShared: return fence_shared(), Result<void>();
    case Op::CommitProducts: return commit_products(), Result<void>();
    case Op::CommitCopies: return commit_copies(), Result<void>();
    case Op::WaitCopies: return wait_copies(inst), Result<void>();
    case Op::StoreTile: return store_tile(inst), Result<void>();
    default: break;
  }
  const bool hoist = hoistable(inst);
  Value* value = nullptr;
  if (hoist) {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(preheaders_.front()->getTerminator());
    value = simple(inst);
  } else {
    value = simple(inst);
  }
  if (!value) {
    return internal_error(std::string("the llvm code generator has no code for ") + f_.info(inst).name + " on " +
                          str(f_.type(inst.operands.empty() ? inst.results[0] : inst.operands[0])))
        .at(f_.name);
  }
  values_[inst.results[0]] = {value, hoist ? 0 : static_cast<int>(preheaders_.size()), &inst};
  return {};
}

Value* Emitter::simple(const ssa::Inst& inst) {
  const Op op = static_cast<Op>(inst.op);
  const ssa::Type& result = f_.type(inst.results[0]);
  std::vector<Value*> x;
  for (ValueId operand : inst.operands) x.push_back(values_[operand].value);
  if (const auto scalar_op = kernel::as_scalar(op)) {
    // Of a select, the type of what it selects.
    const ssa::Type& from = f_.type(inst.operands[*scalar_op == ScalarOp::Select ? 1 : 0]);
    return scalar(*scalar_op, from, result, std::move(x));
  }
  switch (op) {
    case Op::Const: return constant(inst);
    case Op::Size: return sizes_[inst.imm];
    case Op::ProgramId: return program_;
    case Op::ThreadId: return thread_;
    case Op::Exp2Unit:
    case Op::Saturate: return isa_.groups && !isa_.spirv ? math_unit(op, x[0]) : nullptr;
    case Op::Shuffle: return shuffle(result, x[0], x[1]);
    case Op::Splat: return splat(x[0], result.lanes());
    case Op::Iota: return iota(result);
    case Op::Extract: return f_.threads > 1 ? lane_of(b_, x[0], static_cast<std::uint64_t>(inst.imm)) : b_.CreateExtractElement(x[0], inst.imm);
    case Op::Insert: return b_.CreateInsertElement(x[0], x[1], inst.imm);
    case Op::Interleave: return interleave(x[0], x[1], result.lanes(), static_cast<int>(inst.imm));
    case Op::Load: return load(inst);
    case Op::Gather: return gather(inst);
    case Op::AtomicAdd:
    case Op::AtomicMax:
    case Op::AtomicMin: return atomic(inst);
    case Op::MultiplyMatrix: return isa_.groups ? multiply_matrix(inst) : nullptr;
    case Op::MultiplyGroup: return isa_.groups ? multiply_group(inst) : nullptr;
    case Op::WaitProducts: return isa_.groups ? wait_products(inst) : nullptr;
    case Op::LoadMatrix:
    case Op::LoadMatrixTurned: return isa_.groups ? load_matrix(inst) : nullptr;
    case Op::Words: return words(x[0], result);
    case Op::Dot4: return dot4(x[0], x[1], x[2]);
    case Op::ZeroTile: return zero_tile(inst);
    case Op::LoadTile: return load_tile(inst);
    case Op::MultiplyTiles: return multiply_tiles(inst);
    case Op::Dot2: return dot2(x[0], x[1], x[2]);
    case Op::Ldexp: return ldexp(x[0], x[1], result);
    case Op::ReduceSum:
    case Op::ReduceProd:
    case Op::ReduceMax:
    case Op::ReduceMin:
    case Op::ReduceAnd:
    case Op::ReduceOr: return reduce(op, f_.type(inst.operands[0]), x[0]);
    default: return nullptr;
  }
}

void Emitter::check(const ssa::Inst& inst) {
  Value* ok = values_[inst.operands[0]].value;
  if (ok->getType()->isVectorTy()) ok = reduce_bools(true, ok);
  BasicBlock* failed = new_block("failed");
  BasicBlock* passed = new_block("passed");
  b_.CreateCondBr(ok, passed, failed, llvm::MDBuilder(module_.getContext()).createLikelyBranchWeights());
  b_.SetInsertPoint(failed);
  // A device's status word has 32 bits.
  auto* store = b_.CreateAlignedStore(b_.getIntN(isa_.groups ? 32 : 64, inst.imm), status_, llvm::Align(isa_.groups ? 4 : 8));
  store->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateBr(passed);
  b_.SetInsertPoint(passed);
}

// Tested at the bottom, with a guard before it unless it is known to run.
Result<void> Emitter::for_loop(const ssa::Inst& inst) {
  const ssa::Block& region = inst.regions[0];
  const std::size_t carried = inst.results.size();
  Value* lo = values_[inst.operands[0]].value;
  Value* hi = values_[inst.operands[1]].value;
  Value* step = values_[inst.operands[2]].value;
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* body = new_block("loop");
  BasicBlock* after = new_block("done");
  Value* runs = b_.CreateICmpSLT(lo, hi);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(runs);
  const bool guarded = !(known && known->isOne());
  if (guarded) b_.CreateCondBr(runs, body, after);
  else b_.CreateBr(body);

  b_.SetInsertPoint(body);
  preheaders_.push_back(before);
  const int depth = static_cast<int>(preheaders_.size());
  auto bases = std::exchange(bases_, {});
  auto sums = std::exchange(sums_, {});
  std::vector<llvm::PHINode*> phis;
  for (std::size_t i = 0; i <= carried; ++i) {
    Value* init = i == 0 ? lo : values_[inst.operands[2 + i]].value;
    phis.push_back(b_.CreatePHI(init->getType(), 2));
    phis.back()->addIncoming(init, before);
    define(region.args[i], phis.back(), depth);
  }
  WEFT_TRY(block(region));
  Value* next = b_.CreateAdd(phis[0], step);
  Value* more = b_.CreateICmpSLT(next, hi);
  BasicBlock* latch = b_.GetInsertBlock();
  b_.CreateCondBr(more, body, after);
  phis[0]->addIncoming(next, latch);
  for (std::size_t i = 0; i < carried; ++i) phis[i + 1]->addIncoming(values_[region.yields[i]].value, latch);
  preheaders_.pop_back();
  bases_ = std::move(bases);
  sums_ = std::move(sums);

  b_.SetInsertPoint(after);
  for (std::size_t i = 0; i < carried; ++i) {
    auto* result = b_.CreatePHI(phis[i + 1]->getType(), 2);
    result->addIncoming(values_[region.yields[i]].value, latch);
    if (guarded) result->addIncoming(values_[inst.operands[3 + i]].value, before);
    define(inst.results[i], result, depth - 1);
  }
  return {};
}

Result<void> Emitter::if_else(const ssa::Inst& inst) {
  BasicBlock* starts[] = {new_block("then"), new_block("else")};
  BasicBlock* after = new_block("endif");
  b_.CreateCondBr(values_[inst.operands[0]].value, starts[0], starts[1]);
  BasicBlock* ends[2];
  for (int i = 0; i < 2; ++i) {
    b_.SetInsertPoint(starts[i]);
    auto bases = bases_;  // what one arm forms, the other cannot use
    WEFT_TRY(block(inst.regions[i]));
    bases_ = std::move(bases);
    ends[i] = b_.GetInsertBlock();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
  for (std::size_t r = 0; r < inst.results.size(); ++r) {
    auto* result = b_.CreatePHI(type(f_.type(inst.results[r])), 2);
    for (int i = 0; i < 2; ++i) result->addIncoming(values_[inst.regions[i].yields[r]].value, ends[i]);
    define(inst.results[r], result, static_cast<int>(preheaders_.size()));
  }
  return {};
}

}  // namespace weft::codegen
