// OpenCL 1.2 devices, through the ICD loader opened at run time.
#pragma once

#include "target/target.h"

namespace weft::target {

Result<std::vector<std::string>> opencl_devices();
Result<std::shared_ptr<const Target>> open_opencl(std::string_view which);

}  // namespace weft::target
