// The simulator: the kernels of a target that runs groups of threads, interpreted with every check (kernel.h). It is
// slow, needs no device, and says what is wrong with a kernel at the user's node.
#pragma once

#include "target/target.h"

namespace weft::target {

std::shared_ptr<const Target> simulated(Machine machine);  // one that has groups
Result<std::shared_ptr<const Target>> open_sim(std::string_view which);  // "opencl", "sm_80" ...

}  // namespace weft::target
