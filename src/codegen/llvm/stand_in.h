// Instructions that LLVM's quick selection has no code for, said in ones that it has, and made what they stand for once
// they are instructions of the machine: a fused multiply-add as a marked product and sum, a number spread over a vector
// as a marked load of the vector. Between the two nothing may read them.
#pragma once

#include <memory>

namespace llvm {
class Instruction;
class IntrinsicInst;
class LoadInst;
class MachineFunctionPass;
class ShuffleVectorInst;
class TargetPassConfig;
}  // namespace llvm

namespace weft::codegen {

struct StandIns {
  int placed = 0, replaced = 0;
  bool all_replaced() const { return placed == replaced; }
};

// Whether the call is a fused multiply-add that stand-ins are known for.
bool is_replaceable_fma(const llvm::IntrinsicInst& call);
// The same of a vector whose lanes are all one number that was just loaded; its load, or null.
llvm::LoadInst* replaceable_spread(const llvm::ShuffleVectorInst& shuffle);

// Erase them.
void place_fma(llvm::IntrinsicInst& call, StandIns& stand_ins);
void place_spread(llvm::ShuffleVectorInst& shuffle, llvm::LoadInst& load, StandIns& stand_ins);

// Adds the pass that replaces them.
void replace_stand_ins(llvm::TargetPassConfig& passes, StandIns& stand_ins);

}  // namespace weft::codegen
