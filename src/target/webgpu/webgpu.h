// WebGPU adapters, through wgpu-native opened at run time.
#pragma once

#include "target/target.h"

namespace weft::target {

Result<std::vector<std::string>> webgpu_devices();
Result<std::shared_ptr<const Target>> open_webgpu(std::string_view which);

}  // namespace weft::target
