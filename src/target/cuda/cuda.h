// NVIDIA GPUs: kernels as PTX, through LLVM.
#pragma once

#include "target/target.h"

namespace weft::target {

Result<std::vector<std::string>> cuda_devices();
Result<std::shared_ptr<const Target>> open_cuda(std::string_view which);  // "sm_80", "sm_90a" ...: no device

}  // namespace weft::target
