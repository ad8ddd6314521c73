// Compiles and runs OpenCL C on the first device of the first platform, through the ICD loader
// opened at run time.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace weft::codegen::test {

struct HostBuffer {
  void* data;
  std::size_t bytes;
};

class OpenClRunner {
 public:
  // Says which packages are missing when there is no platform.
  static Result<OpenClRunner*> get() {
    static OpenClRunner runner;
    if (!runner.error_.empty()) {
      return unsupported("no-opencl", runner.error_)
          .suggest("install ocl-icd-libopencl1 and pocl-opencl-icd");
    }
    return &runner;
  }

  // Runs `grid` work items; buffers are copied in and out. Returns the status word.
  Result<int> run(const std::string& source, const std::string& kernel_name,
                  const std::vector<HostBuffer>& buffers, const std::vector<std::int64_t>& sizes,
                  std::int64_t grid) {
    cl_int e = 0;
    const char* text = source.c_str();
    cl_program program = call<decltype(&clCreateProgramWithSource)>("clCreateProgramWithSource")(
        context_, 1, &text, nullptr, &e);
    e = call<decltype(&clBuildProgram)>("clBuildProgram")(program, 1, &device_, "-cl-std=CL1.2",
                                                          nullptr, nullptr);
    if (e != CL_SUCCESS)
      return internal_error("the kernel does not compile: " + build_log(program) + "\n" + source);
    cl_kernel kernel =
        call<decltype(&clCreateKernel)>("clCreateKernel")(program, kernel_name.c_str(), &e);
    if (e != CL_SUCCESS) return internal_error("no kernel " + kernel_name);
    const auto set = call<decltype(&clSetKernelArg)>("clSetKernelArg");
    const auto create = call<decltype(&clCreateBuffer)>("clCreateBuffer");
    std::vector<cl_mem> memory;
    int status = 0;
    std::vector<HostBuffer> all = buffers;
    all.push_back({&status, sizeof status});
    for (const HostBuffer& b : all) {
      memory.push_back(
          create(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, b.bytes, b.data, &e));
      if (e != CL_SUCCESS) return internal_error("clCreateBuffer: " + std::to_string(e));
    }
    cl_uint arg = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) set(kernel, arg++, sizeof(cl_mem), &memory[i]);
    for (const std::int64_t& n : sizes) set(kernel, arg++, sizeof n, &n);
    set(kernel, arg++, sizeof(cl_mem), &memory.back());
    const std::size_t global = static_cast<std::size_t>(grid);
    e = call<decltype(&clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel")(
        queue_, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr);
    if (e != CL_SUCCESS) return internal_error("clEnqueueNDRangeKernel: " + std::to_string(e));
    for (std::size_t i = 0; i < all.size(); ++i) {
      e = call<decltype(&clEnqueueReadBuffer)>("clEnqueueReadBuffer")(
          queue_, memory[i], CL_TRUE, 0, all[i].bytes, all[i].data, 0, nullptr, nullptr);
      if (e != CL_SUCCESS) return internal_error("clEnqueueReadBuffer: " + std::to_string(e));
      call<decltype(&clReleaseMemObject)>("clReleaseMemObject")(memory[i]);
    }
    call<decltype(&clReleaseKernel)>("clReleaseKernel")(kernel);
    call<decltype(&clReleaseProgram)>("clReleaseProgram")(program);
    return status;
  }

 private:
  OpenClRunner() {
    library_ = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      error_ = "libOpenCL.so.1 cannot be opened";
      return;
    }
    cl_platform_id platform = nullptr;
    cl_uint count = 0;
    cl_int e = call<decltype(&clGetPlatformIDs)>("clGetPlatformIDs")(1, &platform, &count);
    if (e != CL_SUCCESS || count == 0) {
      error_ = "no OpenCL platform is installed";
      return;
    }
    e = call<decltype(&clGetDeviceIDs)>("clGetDeviceIDs")(platform, CL_DEVICE_TYPE_ALL, 1, &device_,
                                                          &count);
    if (e != CL_SUCCESS || count == 0) {
      error_ = "the OpenCL platform has no device";
      return;
    }
    context_ = call<decltype(&clCreateContext)>("clCreateContext")(nullptr, 1, &device_, nullptr,
                                                                   nullptr, &e);
    queue_ =
        call<decltype(&clCreateCommandQueue)>("clCreateCommandQueue")(context_, device_, 0, &e);
    if (e != CL_SUCCESS) error_ = "an OpenCL command queue cannot be made";
  }

  template <class F>
  F call(const char* name) const {
    void* symbol = dlsym(library_, name);
    WEFT_CHECK(symbol != nullptr, name);
    return reinterpret_cast<F>(symbol);
  }

  std::string build_log(cl_program program) const {
    std::string log(16384, '\0');
    std::size_t size = 0;
    call<decltype(&clGetProgramBuildInfo)>("clGetProgramBuildInfo")(
        program, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), &size);
    log.resize(size);
    return log;
  }

  std::string error_;
  void* library_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

}  // namespace weft::codegen::test
