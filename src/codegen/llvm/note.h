// The note by which an object says what CPU it needs. Private to codegen/llvm.
#pragma once

#include <span>

#include "base/machine.h"

namespace llvm {
class Module;
}

namespace weft::codegen {

void add_note(llvm::Module& module, const Machine& machine);
Result<Machine> read_note(std::span<const char> object);

}  // namespace weft::codegen
