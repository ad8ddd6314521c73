// A device that takes everything and does nothing: all outputs are zeros. What compiling, planning and launching cost
// without a device, and the least that a target is made of.
#pragma once

#include "target/target.h"

namespace weft::target {

Result<std::shared_ptr<const Target>> open_null(std::string_view which);  // a machine: "opencl", "sm_90a" ...

}  // namespace weft::target
