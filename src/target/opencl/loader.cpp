#include "target/opencl/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace weft::target {
namespace {

Result<OpenCl> open_loader() {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unsupported("no-opencl", "libOpenCL.so.1 cannot be opened")
        .suggest("install an OpenCL loader and a device's driver, on Debian ocl-icd-libopencl1 and pocl-opencl-icd");
  }
  OpenCl f;
#define FUNCTION(name)                                                             \
  f.name = reinterpret_cast<decltype(&::cl##name)>(dlsym(library, "cl" #name)); \
  if (f.name == nullptr) return unsupported("no-opencl", "libOpenCL.so.1 lacks cl" #name);
#include "target/opencl/functions.def"
#undef FUNCTION
  f.CreateProgramWithIL = reinterpret_cast<decltype(&::clCreateProgramWithIL)>(dlsym(library, "clCreateProgramWithIL"));
  return f;
}

}  // namespace

Result<const OpenCl*> opencl() {
  static const Result<OpenCl> loaded = open_loader();
  if (!loaded.ok()) return loaded.error();
  return &*loaded;
}

Error opencl_error(const char* call, cl_int status) {
  const std::string what = fmt::format("{} failed with status {}", call, status);
  switch (status) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return user_error("out-of-device-memory", what).suggest("the OpenCL device has too little memory for this model");
    case CL_DEVICE_NOT_AVAILABLE:
      return user_error("device-lost", what).suggest("the OpenCL device is not available any more");
    default:
      return internal_error(what);
  }
}

}  // namespace weft::target
