// The OpenCL functions that are used, from libOpenCL.so.1, which is opened at run time: Weft starts without it.
#pragma once

#define CL_TARGET_OPENCL_VERSION 210
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "base/error.h"

namespace weft::target {

struct OpenCl {
#define FUNCTION(name) decltype(&::cl##name) name = nullptr;
#include "target/opencl/functions.def"
#undef FUNCTION
  decltype(&::clCreateProgramWithIL) CreateProgramWithIL = nullptr;  // of OpenCL 2.1; null: a loader before that
};

// Unsupported when the loader is not installed.
Result<const OpenCl*> opencl();

// What a status says: user errors for want of memory or a device that is gone, otherwise internal ones.
Error opencl_error(const char* call, cl_int status);

}  // namespace weft::target
