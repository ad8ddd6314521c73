// Mends what LLVM 22 gets wrong in SPIR-V when a process makes more than one module. It keeps the ids of basic blocks in a
// table that lives as long as the process, by the address of their function, so that blocks of a function at an address
// used before get ids of then, which may be other things' now.
#pragma once

#include <string>

namespace weft::codegen {

// Gives the blocks of a binary module ids of their own. False when two blocks of a function have one id: then nobody knows
// which of them is meant.
bool mend_blocks(std::string& module);

// Of a listing: no id stands for two things.
bool ids_are_unique(const std::string& listing);

}  // namespace weft::codegen
