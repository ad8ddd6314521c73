// Kernel IR as source text. One program of the grid is one work group, of as many work items as the function has
// threads. Parameters: for each buffer its memory and the byte where it starts there, the sizes, the same pair for the
// status word that a failed check writes its code to; all integers are 64-bit.
#pragma once

#include <span>
#include <string>

#include "kernel/kernel.h"

namespace weft::codegen {

// OpenCL C 1.2. What the language has no type for is refused.
Result<std::string> print_opencl(std::span<const kernel::Function> functions);
std::string opencl_name(const kernel::Function& function);  // weft_NAME: plain names may be builtins

}  // namespace weft::codegen
