#include "codegen/llvm/quick.h"

#include "codegen/llvm/stand_in.h"

#include <algorithm>
#include <map>
#include <vector>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace weft::codegen {

namespace {

using llvm::Instruction;
using llvm::Value;

// Numbers in vectors, of which the quick selection knows none.
bool is_vector_constant(Value* value) {
  return llvm::isa<llvm::Constant>(value) && !llvm::isa<llvm::UndefValue>(value) && value->getType()->isVectorTy() &&
         value->getType()->getScalarSizeInBits() >= 8;
}

class Easer {
 public:
  Easer(llvm::Module& module, StandIns* stand_ins) : module_(module), stand_ins_(stand_ins) {}

  void run(llvm::Function& function) {
    for (llvm::BasicBlock& block : function) {
      for (auto it = block.begin(); it != block.end();) rewrite(*it++);
    }
    std::vector<llvm::BasicBlock*> blocks;
    for (llvm::BasicBlock& block : function) blocks.push_back(&block);
    for (llvm::BasicBlock* block : blocks) split(block);
    if (stand_ins_ == nullptr) return;
    for (llvm::BasicBlock& block : function) place_fmas(block);
  }

 private:
  void rewrite(Instruction& inst) {
    if (auto* call = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&inst); call && !call->getType()->isVectorTy()) {
      llvm::IRBuilder<> b(call);
      replace(inst, b.CreateSelect(b.CreateICmp(call->getPredicate(), call->getLHS(), call->getRHS()), call->getLHS(), call->getRHS()));
    } else if (auto* freeze = llvm::dyn_cast<llvm::FreezeInst>(&inst)) {
      replace(inst, freeze->getOperand(0));  // only keeps optimisations from repeating it
    } else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&inst)) {
      for (unsigned k = 0; k < phi->getNumIncomingValues(); ++k) load(inst, k, phi->getIncomingBlock(k)->getTerminator());
    } else if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
      llvm::LoadInst* load = stand_ins_ ? replaceable_spread(*shuffle) : nullptr;
      if (load != nullptr) place_spread(*shuffle, *load, *stand_ins_);
    } else if (llvm::isa<llvm::BinaryOperator, llvm::StoreInst>(inst)) {
      for (unsigned k = 0; k < inst.getNumOperands(); ++k) load(inst, k, &inst);
    }
  }

  static void replace(Instruction& inst, Value* value) {
    inst.replaceAllUsesWith(value);
    inst.eraseFromParent();
  }

  // A constant operand from memory.
  void load(Instruction& inst, unsigned operand, Instruction* before) {
    if (!is_vector_constant(inst.getOperand(operand))) return;
    auto* constant = llvm::cast<llvm::Constant>(inst.getOperand(operand));
    const llvm::Align align = module_.getDataLayout().getPrefTypeAlign(constant->getType());
    llvm::GlobalVariable*& global = globals_[constant];
    if (global == nullptr) {
      global = new llvm::GlobalVariable(module_, constant->getType(), true, llvm::GlobalValue::PrivateLinkage, constant, "c");
      global->setAlignment(align);
      global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    }
    llvm::IRBuilder<> b(before);
    inst.setOperand(operand, b.CreateAlignedLoad(constant->getType(), global, align));
  }

  // In what the quick selection takes of a block: behind the last instruction that it has no code for.
  void place_fmas(llvm::BasicBlock& block) {
    std::vector<llvm::IntrinsicInst*> found;
    for (auto it = block.rbegin(); it != block.rend() && !is_beyond(*it); ++it) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&*it);
      if (call != nullptr && is_replaceable_fma(*call)) found.push_back(call);
    }
    for (llvm::IntrinsicInst* call : found) {
      for (unsigned k = 0; k < call->arg_size(); ++k) load(*call, k, call);
      place_fma(*call, *stand_ins_);
    }
  }

  // Whether quick selection has no code for it. Of a call nothing but the call itself is left to the other.
  static bool is_beyond(const Instruction& inst) {
    if (llvm::isa<llvm::CallInst>(inst)) return false;
    const auto is_vector = [](const llvm::Use& use) { return use->getType()->isVectorTy(); };
    if (!inst.getType()->isVectorTy() && std::none_of(inst.op_begin(), inst.op_end(), is_vector)) return false;
    if (llvm::isa<llvm::LoadInst, llvm::StoreInst, llvm::BitCastInst>(inst)) return false;
    if (!llvm::isa<llvm::BinaryOperator>(inst) || inst.getType()->getScalarSizeInBits() < 32) return true;
    switch (inst.getOpcode()) {
      case Instruction::FAdd:
      case Instruction::FSub:
      case Instruction::FMul:
      case Instruction::FDiv:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Xor: return false;
      default: return true;
    }
  }

  // Values that live in several blocks go through memory, so few instructions are not worth one.
  static void split(llvm::BasicBlock* block) {
    constexpr int kLeast = 4;
    int known = 0;
    for (auto it = block->getFirstNonPHIIt(); it != block->end();) {
      Instruction& inst = *it++;
      if (!is_beyond(inst)) {
        ++known;
        continue;
      }
      if (known >= kLeast) {
        block = block->splitBasicBlock(&inst, "known");
        it = std::next(inst.getIterator());
      }
      known = 0;
    }
  }

  llvm::Module& module_;
  StandIns* stand_ins_;
  std::map<llvm::Constant*, llvm::GlobalVariable*> globals_;  // looked up, never walked
};

}  // namespace

void ease_selection(llvm::Module& module, StandIns* stand_ins) {
  Easer easer(module, stand_ins);
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) easer.run(function);
  }
}

}  // namespace weft::codegen
