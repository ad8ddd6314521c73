// Kernel IR as source text. One program of the grid is one work item; buffers are pointer
// parameters, then the sizes as 64-bit integers, then a pointer to a status word that a failed
// check writes its code to.
#pragma once

#include <string>

#include "kernel/kernel.h"

namespace weft::codegen {

// OpenCL C 1.2; the kernel is named weft_NAME, as plain names may be builtins. What the language
// has no type for is refused.
Result<std::string> print_opencl(const kernel::Function& function);

}  // namespace weft::codegen
