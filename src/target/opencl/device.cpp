#include "target/opencl/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weft::target {
namespace {

using runtime::DeviceSpan;

struct Memory final : runtime::DeviceMemory {
  Memory(const OpenCl& functions, cl_mem handle) : cl(functions), mem(handle) {}
  ~Memory() override { cl.ReleaseMemObject(mem); }
  const OpenCl& cl;
  cl_mem mem;
};

struct BuiltCode final : runtime::DeviceCode {
  explicit BuiltCode(const OpenCl& functions) : cl(functions) {}
  ~BuiltCode() override {
    for (cl_kernel k : kernels) cl.ReleaseKernel(k);
    if (program != nullptr) cl.ReleaseProgram(program);
  }
  std::int64_t alignment() const override { return is_text ? 1 : DeviceCode::alignment(); }
  const OpenCl& cl;
  bool is_text = true;
  cl_program program = nullptr;
  std::vector<cl_kernel> kernels;
  std::vector<std::size_t> threads;  // by kernel
};

cl_mem handle(DeviceSpan span) { return static_cast<Memory*>(span.memory)->mem; }

std::string text_of(const OpenCl& cl, cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (cl.GetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  cl.GetDeviceInfo(device, what, size, text.data(), nullptr);
  text.resize(text.find_last_not_of(std::string(" \0", 2)) + 1);
  return text;
}

template <class T>
T number_of(const OpenCl& cl, cl_device_id device, cl_device_info what) {
  T value{};
  cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

// Of the sizes that a kernel may ask for the largest up to what Intel's compiler has all its functions for.
int subgroup_size(const OpenCl& cl, cl_device_id device) {
  constexpr std::size_t kMost = 16;
  constexpr cl_device_info kSizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
  std::array<std::size_t, 16> sizes{};
  std::size_t bytes = 0;
  if (cl.GetDeviceInfo(device, kSizes, sizeof sizes, sizes.data(), &bytes) != CL_SUCCESS) return 0;
  std::size_t best = 0;
  for (std::size_t k = 0; k < bytes / sizeof(std::size_t); ++k) {
    const bool power = sizes[k] > 1 && (sizes[k] & (sizes[k] - 1)) == 0;
    if (power && sizes[k] <= kMost) best = std::max(best, sizes[k]);
  }
  return static_cast<int>(best);
}

}  // namespace

OpenClFacts opencl_facts(const OpenCl& cl, cl_device_id device) {
  OpenClFacts facts;
  facts.name = text_of(cl, device, CL_DEVICE_NAME);
  facts.compute_units = std::max(1, static_cast<int>(number_of<cl_uint>(cl, device, CL_DEVICE_MAX_COMPUTE_UNITS)));
  facts.float_lanes = std::clamp(static_cast<int>(number_of<cl_uint>(cl, device, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT)), 4, 16);
  facts.is_cpu = (number_of<cl_device_type>(cl, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  const std::string extensions = " " + text_of(cl, device, CL_DEVICE_EXTENSIONS) + " ";
  const auto has = [&](const std::string& name) { return extensions.find(" " + name + " ") != std::string::npos; };
  facts.has_f64 = has("cl_khr_fp64");
  facts.has_f16 = has("cl_khr_fp16");
  facts.has_byte_dots = has("cl_khr_integer_dot_product") && text_of(cl, device, CL_DEVICE_VERSION).starts_with("OpenCL 3");
  if (has("cl_khr_subgroup_shuffle") && has("cl_intel_required_subgroup_size")) facts.warp = subgroup_size(cl, device);
  facts.has_spirv = cl.CreateProgramWithIL != nullptr && text_of(cl, device, CL_DEVICE_IL_VERSION).find("SPIR-V") != std::string::npos;
  facts.has_fma = (number_of<cl_device_fp_config>(cl, device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_FMA) != 0;
  facts.group_items = std::max(1, static_cast<int>(number_of<std::size_t>(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  facts.local_bytes = static_cast<std::int64_t>(number_of<cl_ulong>(cl, device, CL_DEVICE_LOCAL_MEM_SIZE));
  facts.cache_bytes = static_cast<std::int64_t>(number_of<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE));
  facts.memory_bytes = static_cast<std::int64_t>(number_of<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_SIZE));
  facts.largest_buffer = static_cast<std::int64_t>(number_of<cl_ulong>(cl, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  return facts;
}

Result<std::vector<cl_device_id>> opencl_device_ids() {
  const OpenCl& cl = *WEFT_TRY(opencl());
  cl_uint count = 0;
  std::vector<cl_device_id> devices;
  if (cl.GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) cl.GetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_uint found = 0;  // a platform without devices is normal
    if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &found) != CL_SUCCESS || found == 0) continue;
    const std::size_t before = devices.size();
    devices.resize(before + found);
    cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, found, devices.data() + before, nullptr);
  }
  return devices;
}

Result<std::shared_ptr<OpenClDevice>> OpenClDevice::open(int number) {
  const std::vector<cl_device_id> ids = WEFT_TRY(opencl_device_ids());
  if (ids.empty()) return user_error("no-device", "there is no OpenCL device").suggest("install a device's driver, for this machine's CPU pocl-opencl-icd");
  if (number >= static_cast<int>(ids.size())) {
    return user_error("no-device", "there is no such OpenCL device")
        .expected(fmt::format("one of {}", ids.size()))
        .found(fmt::format("opencl:{}", number))
        .suggest("'weft doctor' lists them");
  }
  const OpenCl& cl = *WEFT_TRY(opencl());
  std::shared_ptr<OpenClDevice> device(new OpenClDevice(cl, ids[number], opencl_facts(cl, ids[number])));
  cl_int status = CL_SUCCESS;
  device->context_ = cl.CreateContext(nullptr, 1, &device->device_, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return opencl_error("clCreateContext", status);
  device->queue_ = cl.CreateCommandQueue(device->context_, device->device_, 0, &status);
  if (status != CL_SUCCESS) return opencl_error("clCreateCommandQueue", status);
  return device;
}

OpenClDevice::~OpenClDevice() {
  if (queue_ != nullptr) cl_.ReleaseCommandQueue(queue_);
  if (context_ != nullptr) cl_.ReleaseContext(context_);
}

Result<std::unique_ptr<runtime::DeviceMemory>> OpenClDevice::allocate(std::int64_t bytes) {
  if (bytes > facts_.largest_buffer) {
    return user_error("out-of-device-memory", "a buffer is larger than the OpenCL device allows")
        .expected(fmt::format("at most {} bytes", facts_.largest_buffer))
        .found(fmt::format("{} bytes", bytes));
  }
  cl_int status = CL_SUCCESS;
  cl_mem mem = cl_.CreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), nullptr, &status);
  if (status != CL_SUCCESS) return opencl_error("clCreateBuffer", status);
  return std::unique_ptr<runtime::DeviceMemory>(new Memory(cl_, mem));
}

Result<void> OpenClDevice::upload(DeviceSpan to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return {};
  const cl_int status = cl_.EnqueueWriteBuffer(queue_, handle(to), CL_TRUE, static_cast<std::size_t>(to.offset),
                                               static_cast<std::size_t>(bytes), from, 0, nullptr, nullptr);
  return status == CL_SUCCESS ? Result<void>() : opencl_error("clEnqueueWriteBuffer", status);
}

Result<void> OpenClDevice::download(void* to, DeviceSpan from, std::int64_t bytes) {
  if (bytes == 0) return {};
  const cl_int status = cl_.EnqueueReadBuffer(queue_, handle(from), CL_TRUE, static_cast<std::size_t>(from.offset),
                                              static_cast<std::size_t>(bytes), to, 0, nullptr, nullptr);
  return status == CL_SUCCESS ? Result<void>() : opencl_error("clEnqueueReadBuffer", status);
}

// Arguments as codegen/text states them: per buffer its memory and the byte it starts at, the sizes, the status word.
Result<void> OpenClDevice::launch(const runtime::DeviceLaunch& launch) {
  const auto& code = static_cast<const BuiltCode&>(*launch.code);
  cl_kernel kernel = code.kernels[launch.kernel];
  std::lock_guard<std::mutex> lock(mutex_);
  cl_uint number = 0;
  cl_int status = CL_SUCCESS;
  const auto pass = [&](const auto& value) {
    if (status == CL_SUCCESS) status = cl_.SetKernelArg(kernel, number++, sizeof value, &value);
  };
  const auto pass_span = [&](DeviceSpan span) {
    pass(handle(span));
    pass(static_cast<cl_long>(span.offset));
  };
  for (DeviceSpan span : launch.buffers) pass_span(span);
  for (std::int64_t n : launch.sizes) pass(static_cast<cl_long>(n));
  pass_span(launch.status);
  if (status != CL_SUCCESS) return opencl_error("clSetKernelArg", status);
  const std::size_t threads = code.threads[launch.kernel], items = static_cast<std::size_t>(launch.grid) * threads;
  status = cl_.EnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &items, &threads, 0, nullptr, nullptr);
  return status == CL_SUCCESS ? Result<void>() : opencl_error("clEnqueueNDRangeKernel", status);
}

Result<void> OpenClDevice::finish() {
  const cl_int status = cl_.Finish(queue_);
  return status == CL_SUCCESS ? Result<void>() : opencl_error("clFinish", status);
}

std::string OpenClDevice::build_log(cl_program program) const {
  std::size_t size = 0;
  cl_.GetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  cl_.GetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log;
}

Result<std::shared_ptr<const runtime::DeviceCode>> OpenClDevice::build(Code kind, const std::string& code, const std::vector<Kernel>& kernels) const {
  auto built = std::make_shared<BuiltCode>(cl_);
  built->is_text = kind == Code::Text;
  cl_int status = CL_SUCCESS;
  if (kind == Code::Spirv) {
    built->program = cl_.CreateProgramWithIL(context_, code.data(), code.size(), &status);
    if (status != CL_SUCCESS) return opencl_error("clCreateProgramWithIL", status);
  } else {
    const char* text = code.c_str();
    built->program = cl_.CreateProgramWithSource(context_, 1, &text, nullptr, &status);
    if (status != CL_SUCCESS) return opencl_error("clCreateProgramWithSource", status);
  }
  const char* language = kind == Code::Spirv ? "" : facts_.has_byte_dots ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
  status = cl_.BuildProgram(built->program, 1, &device_, language, nullptr, nullptr);
  if (status != CL_SUCCESS) {
    return internal_error(fmt::format("the OpenCL compiler of '{}' refuses generated code:\n{}", facts_.name, build_log(built->program)));
  }
  for (const auto& [name, threads] : kernels) {
    built->kernels.push_back(cl_.CreateKernel(built->program, name.c_str(), &status));
    built->threads.push_back(static_cast<std::size_t>(threads));
    if (status == CL_SUCCESS) continue;
    built->kernels.pop_back();
    return opencl_error("clCreateKernel", status);
  }
  return std::shared_ptr<const runtime::DeviceCode>(std::move(built));
}

}  // namespace weft::target
