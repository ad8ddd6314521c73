// NVIDIA GPUs: kernels as PTX, through LLVM; run by the driver where there is one.
#pragma once

#include "target/target.h"

namespace weft::target {

Result<std::vector<std::string>> cuda_devices();
Result<std::shared_ptr<const Target>> open_cuda(std::string_view which);  // "sm_90a": code for one that need not be here; a number, or nothing: a device

}  // namespace weft::target
