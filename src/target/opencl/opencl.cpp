#include "target/opencl/opencl.h"

#include <algorithm>

#include "codegen/llvm/codegen.h"
#include "codegen/text/text.h"
#include "target/likely.h"
#include "target/opencl/device.h"

namespace weft::target {
namespace {

constexpr double kLaunchUs = 30;  // of a small kernel that is waited for, on PoCL
constexpr int kItemLanes = 4;     // of a work item on a CPU, where that several of them make one vector is luck

// On a CPU, work items are steps of a loop that a core runs over vectors: a thread alone is as fast, and never waits.
Machine machine_of(const OpenClFacts& facts) {
  Machine m;
  m.name = facts.name;
  m.arch = "opencl";
  m.vector_bits = 32 * facts.float_lanes;
  m.vector_registers = facts.float_lanes >= 16 ? 32 : 16;
  m.cores = facts.compute_units;
  m.l2_bytes = std::max<std::int64_t>(m.l2_bytes, facts.cache_bytes / facts.compute_units);
  m.has_fma = facts.has_fma;
  m.group_threads = std::min(facts.group_items, kMostThreads);
  m.warp_threads = facts.warp > 0 ? facts.warp : std::min(kLikelyWarp, m.group_threads);
  m.has_shuffle = facts.warp > 0;
  m.shared_bytes = facts.local_bytes;
  m.group_lanes = facts.is_cpu ? kItemLanes : kLikelyLanes;
  m.rates.dispatch_us = kLaunchUs;
  if (facts.is_cpu) return m;
  m.rates.fmas = 1.0 * kLikelyLanes / kLikelyWarp;  // one lane of what goes in step
  m.vector_bits = 32;
  return m;
}

using Code = OpenClDevice::Code;

class OpenClTarget final : public Target {
 public:
  OpenClTarget(std::shared_ptr<OpenClDevice> device, Code code) : device_(std::move(device)), code_(code), machine_(machine_of(device_->facts())) {}

  const Machine& machine() const override { return machine_; }
  std::shared_ptr<runtime::Device> device() const override { return device_; }

  Result<std::string> print(std::span<const kernel::Function> kernels) const override {
    return code_ == Code::Spirv ? codegen::spirv_text(kernels, machine_) : codegen::print_opencl(kernels, features());
  }

  Result<void> takes(const kernel::Function& f) const override {
    WEFT_TRY(fits(f));
    WEFT_TRY(print(std::span(&f, 1)));
    return {};
  }

  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    std::vector<OpenClDevice::Kernel> listed;
    for (const kernel::Function& f : kernels) {
      WEFT_TRY(fits(f));
      listed.push_back({code_ == Code::Spirv ? f.name : codegen::opencl_name(f), f.threads});
    }
    return device_->build(code_, WEFT_TRY(code_ == Code::Spirv ? codegen::spirv(kernels, machine_) : codegen::print_opencl(kernels, features())), listed);
  }

  Result<std::shared_ptr<const Target>> with_code(std::string_view kind) const override {
    if (kind == "text") return std::shared_ptr<const Target>(std::make_shared<OpenClTarget>(device_, Code::Text));
    if (kind != "spirv") return user_error("unknown-code", "OpenCL devices take no such code").found(std::string(kind)).suggest("say text or spirv");
    if (device_->facts().has_spirv) return std::shared_ptr<const Target>(std::make_shared<OpenClTarget>(device_, Code::Spirv));
    return unsupported("no-spirv", "this OpenCL device takes no SPIR-V").at(device_->name()).suggest("leave '--code spirv' out: it takes OpenCL C");
  }

 private:
  codegen::OpenClFeatures features() const { return {device_->facts().warp > 0, device_->facts().has_byte_dots}; }

  Result<void> fits(const kernel::Function& f) const {
    for (const ssa::Type& t : f.types) {
      if (t.dtype == DType::F64 && !device_->facts().has_f64) return unsupported("dtype", "f64 on this OpenCL device").at(device_->name());
      if (t.dtype == DType::F16 && code_ == Code::Spirv && !device_->facts().has_f16) {
        return unsupported("dtype", "f16 in SPIR-V on this OpenCL device").at(device_->name());
      }
    }
    return {};
  }

  std::shared_ptr<OpenClDevice> device_;
  Code code_;
  Machine machine_;
};

}  // namespace

Result<std::vector<std::string>> opencl_devices() {
  std::vector<std::string> names;
  for (cl_device_id id : WEFT_TRY(opencl_device_ids())) names.push_back(opencl_facts(*WEFT_TRY(opencl()), id).name);
  return names;
}

Result<std::shared_ptr<const Target>> open_opencl(std::string_view which) {
  const int number = WEFT_TRY(device_number("opencl", which));
  return std::shared_ptr<const Target>(std::make_shared<OpenClTarget>(WEFT_TRY(OpenClDevice::open(number)), Code::Text));
}

}  // namespace weft::target
