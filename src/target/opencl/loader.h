// The OpenCL functions that are used, from libOpenCL.so.1, which is opened at run time: Weft starts without it.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "base/error.h"

namespace weft::target {

struct OpenCl {
#define FUNCTION(name) decltype(&::cl##name) name = nullptr;
#include "target/opencl/functions.def"
#undef FUNCTION
};

// Unsupported when the loader is not installed.
Result<const OpenCl*> opencl();

// What a status says: user errors for want of memory or a device that is gone, otherwise internal ones.
Error opencl_error(const char* call, cl_int status);

}  // namespace weft::target
