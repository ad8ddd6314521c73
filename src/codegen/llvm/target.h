// LLVM's process-wide set-up and target machines. Private to codegen/llvm.
#pragma once

#include <memory>

#include "codegen/llvm/codegen.h"

namespace llvm {
class TargetMachine;
}

namespace weft::codegen {

void initialize_llvm();  // idempotent; before anything else of LLVM
Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const TargetDesc& target, bool quick = false);

}  // namespace weft::codegen
