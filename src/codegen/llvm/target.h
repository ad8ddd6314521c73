// LLVM's process-wide set-up and target machines. Private to codegen/llvm.
#pragma once

#include <memory>
#include <vector>

#include "codegen/llvm/codegen.h"

namespace llvm {
class TargetMachine;
}

namespace weft::codegen {

void initialize_llvm();  // idempotent; before anything else of LLVM

struct GiveBack {
  std::vector<std::unique_ptr<llvm::TargetMachine>>* idle = nullptr;  // of its kind; null: nobody uses it again
  void operator()(llvm::TargetMachine* machine) const;
};
using TargetMachine = std::unique_ptr<llvm::TargetMachine, GiveBack>;

// One that nobody else has. Those of CPUs are used again: what LLVM derives from features takes a millisecond.
Result<TargetMachine> make_target_machine(const TargetDesc& target, bool quick = false);

}  // namespace weft::codegen
