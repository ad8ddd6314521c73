// Expansion for one machine.
#pragma once

#include "base/machine.h"
#include "kernel/kernel.h"

namespace weft::kernel {

// Leaves what the machine's emitter has shorter code for, as exact: exp of f32 where threads have an instruction for 2^x.
Result<void> expand_math_for(Function& function, const Machine& machine);

}  // namespace weft::kernel
