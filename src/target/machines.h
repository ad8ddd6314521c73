// Machines that are known by name, whether or not one is here.
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/machine.h"

namespace weft::target {

// "opencl" (any device of OpenCL 1.2), "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"; of one architecture
// (Machine::arch), or all. The error names the target that asks.
Result<Machine> described_machine(std::string_view target, std::string_view which, std::string_view arch = "");

}  // namespace weft::target
