#include "target/webgpu/webgpu.h"

#include <algorithm>

#include "codegen/text/text.h"
#include "target/likely.h"
#include "target/webgpu/device.h"

namespace weft::target {
namespace {

// A thread's values are scalars: what the hardware has of vectors goes over threads, on a CPU's adapter too.
Machine machine_of(const webgpu::Facts& facts) {
  Machine m;
  m.name = facts.name;
  m.arch = "webgpu";
  m.vector_bits = 32;
  m.group_threads = std::min(static_cast<int>(facts.limits.group_threads), kMostThreads);
  m.warp_threads = std::min(kLikelyWarp, m.group_threads);
  m.shared_bytes = facts.limits.group_storage_bytes;
  m.group_lanes = kLikelyLanes;
  m.rates.fmas = 1.0 * kLikelyLanes / kLikelyWarp;  // one lane of what goes in step
  return m;
}

class WebGpuTarget final : public Target {
 public:
  explicit WebGpuTarget(std::shared_ptr<webgpu::Device> device) : device_(std::move(device)), machine_(machine_of(device_->facts())) {}

  const Machine& machine() const override { return machine_; }
  std::shared_ptr<runtime::Device> device() const override { return device_; }

  Result<std::string> print(std::span<const kernel::Function> kernels) const override {
    std::string text;
    for (const kernel::Function& f : kernels) text += "// a module of its own: " + codegen::wgsl_name(f) + "\n" + WEFT_TRY(codegen::print_wgsl(f)) + "\n";
    return text;
  }

  Result<void> takes(const kernel::Function& f) const override {
    WEFT_TRY(fits(f));
    WEFT_TRY(codegen::print_wgsl(f));
    return {};
  }

  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    std::vector<webgpu::Device::Kernel> listed;
    for (const kernel::Function& f : kernels) {
      WEFT_TRY(fits(f));
      const auto in_memory = [](const ssa::Buffer& b) { return b.space == ssa::Space::Memory; };
      listed.push_back({WEFT_TRY(codegen::print_wgsl(f)), codegen::wgsl_name(f), codegen::wgsl_group(f), f.threads == 1,
                        static_cast<std::size_t>(std::count_if(f.buffers.begin(), f.buffers.end(), in_memory))});
    }
    return device_->build(listed);
  }

 private:
  // An element that a group shares takes a word at least, narrow ones too.
  Result<void> fits(const kernel::Function& f) const {
    constexpr std::int64_t kWordBits = 32, kByteBits = 8;
    for (const ssa::Type& t : f.types) {
      if (t.dtype == DType::F64 && !device_->facts().has_f64) return unsupported("dtype", "f64 on this WebGPU device").at(device_->name());
    }
    std::int64_t bytes = 0;
    for (const ssa::Buffer& b : f.buffers) {
      if (b.space == ssa::Space::OnChip && f.threads > 1) bytes += b.elements * std::max<std::int64_t>(kWordBits, bits(b.dtype)) / kByteBits;
    }
    if (bytes <= device_->facts().limits.group_storage_bytes) return {};
    return unsupported("buffers", "what a work group shares, with narrow elements as words").at(device_->name())
        .expected("at most " + std::to_string(device_->facts().limits.group_storage_bytes) + " bytes")
        .found(std::to_string(bytes) + " bytes");
  }

  std::shared_ptr<webgpu::Device> device_;
  Machine machine_;
};

}  // namespace

Result<std::vector<std::string>> webgpu_devices() {
  std::vector<std::string> names;
  for (const webgpu::Found& found : *WEFT_TRY(webgpu::adapters())) names.push_back(found.facts.name);
  return names;
}

Result<std::shared_ptr<const Target>> open_webgpu(std::string_view which) {
  const int number = WEFT_TRY(device_number("webgpu", which));
  return std::shared_ptr<const Target>(std::make_shared<WebGpuTarget>(WEFT_TRY(webgpu::Device::open(number))));
}

}  // namespace weft::target
