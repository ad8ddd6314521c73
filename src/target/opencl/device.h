// One OpenCL device with a context and an in-order queue.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "target/opencl/loader.h"

namespace weft::target {

// What a device says of itself.
struct OpenClFacts {
  std::string name;
  int compute_units = 1;
  int float_lanes = 4;            // preferred vector width
  bool is_cpu = false;
  bool has_f64 = false;
  bool has_f16 = false;           // half as a type, not only in memory
  bool has_spirv = false;
  bool has_byte_dots = false;     // of four bytes by four, in OpenCL C 3.0
  int warp = 0;                   // work items of a subgroup that kernels may ask for, which shuffle; 0: none
  bool has_fma = false;           // for f32, at full speed
  int group_items = 1;            // most work items in a group
  std::int64_t local_bytes = 0;   // that a group shares
  std::int64_t cache_bytes = 0;   // of global memory
  std::int64_t memory_bytes = 0;
  std::int64_t largest_buffer = 0;
};

class OpenClDevice final : public runtime::Device {
 public:
  static Result<std::shared_ptr<OpenClDevice>> open(int number);
  ~OpenClDevice() override;

  const std::string& name() const override { return facts_.name; }
  const OpenClFacts& facts() const { return facts_; }
  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t bytes) override;
  Result<void> upload(runtime::DeviceSpan to, const void* from, std::int64_t bytes) override;
  Result<void> download(void* to, runtime::DeviceSpan from, std::int64_t bytes) override;
  Result<void> launch(const runtime::DeviceLaunch& launch) override;
  Result<void> finish() override;

  struct Kernel {
    std::string name;  // in the code
    int threads = 1;   // work items of a group
  };
  enum class Code : std::uint8_t { Text, Spirv };
  Result<std::shared_ptr<const runtime::DeviceCode>> build(Code kind, const std::string& code, const std::vector<Kernel>& kernels) const;

 private:
  OpenClDevice(const OpenCl& cl, cl_device_id device, OpenClFacts facts) : cl_(cl), device_(device), facts_(std::move(facts)) {}
  std::string build_log(cl_program program) const;

  const OpenCl& cl_;
  cl_device_id device_;
  OpenClFacts facts_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::mutex mutex_;  // a kernel's arguments belong to one launch at a time
};

Result<std::vector<cl_device_id>> opencl_device_ids();
OpenClFacts opencl_facts(const OpenCl& cl, cl_device_id device);

}  // namespace weft::target
