#include "target/cuda/cuda.h"

#include <fmt/format.h>

#include "codegen/llvm/codegen.h"
#include "target/cuda/device.h"
#include "target/machines.h"

namespace weft::target {
namespace {

constexpr const char* kArch = "nvptx64";

// The described machine that a device is, or the newest that it can run the code of; the device's own figures where it
// gives them.
Result<Machine> machine_of(const cuda::Facts& facts) {
  const int capability = 10 * facts.major + facts.minor;
  Result<Machine> machine = described_machine("cuda", fmt::format("sm_{}a", capability), kArch);
  for (int c = capability; !machine.ok() && c >= 10; --c) machine = described_machine("cuda", fmt::format("sm_{}", c), kArch);
  if (!machine.ok()) {
    return unsupported("target", "kernels for GPUs older than compute capability 8.0").at(facts.name).found(fmt::format("{}.{}", facts.major, facts.minor));
  }
  const double cores = machine->cores;
  machine->cores = facts.multiprocessors;
  if (facts.l2_bytes > 0) machine->l2_bytes = facts.l2_bytes;
  if (facts.memory_gbytes > 0) {
    machine->rates.memory_gbytes *= facts.memory_gbytes / machine->rates.all_gbytes * cores / machine->cores;
    machine->rates.all_gbytes = facts.memory_gbytes;
  }
  return machine;
}

class CudaTarget final : public Target {
 public:
  // Without a device: a machine that need not be here.
  CudaTarget(Machine machine, std::shared_ptr<cuda::Device> device) : machine_(std::move(machine)), device_(std::move(device)) {}

  const Machine& machine() const override { return machine_; }
  std::shared_ptr<runtime::Device> device() const override { return device_; }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return codegen::ptx(kernels, machine_); }

  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    if (!device_) {
      return unsupported("no-device", "code for a machine that is not here is printed, not run")
          .suggest("say --target cuda:0 for the first GPU of this machine");
    }
    std::vector<cuda::Device::Entry> entries;
    for (const kernel::Function& f : kernels) entries.push_back({f.name, f.threads});
    return device_->build(WEFT_TRY(print(kernels)), entries);
  }

 private:
  Machine machine_;
  std::shared_ptr<cuda::Device> device_;
};

}  // namespace

Result<std::vector<std::string>> cuda_devices() {
  std::vector<std::string> names;
  for (const cuda::Facts& facts : WEFT_TRY(cuda::devices())) names.push_back(facts.name);
  return names;
}

Result<std::shared_ptr<const Target>> open_cuda(std::string_view which) {
  if (which.starts_with("sm_")) {
    return std::shared_ptr<const Target>(std::make_shared<CudaTarget>(WEFT_TRY(described_machine("cuda", which, kArch)), nullptr));
  }
  const std::shared_ptr<cuda::Device> device = WEFT_TRY(cuda::Device::open(WEFT_TRY(device_number("cuda", which))));
  return std::shared_ptr<const Target>(std::make_shared<CudaTarget>(WEFT_TRY(machine_of(device->facts())), device));
}

}  // namespace weft::target
