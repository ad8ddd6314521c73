#include "target/cuda/cuda.h"

#include "codegen/llvm/codegen.h"
#include "target/machines.h"

namespace weft::target {
namespace {

constexpr const char* kArch = "nvptx64";

Error no_driver() {
  return unsupported("no-driver", "programs do not run on NVIDIA GPUs")
      .suggest("kernels for them are printed by 'weft compile --target cuda:sm_90a --emit source'");
}

// A machine that need not be here.
class CudaTarget final : public Target {
 public:
  explicit CudaTarget(Machine machine) : machine_(std::move(machine)) {}

  const Machine& machine() const override { return machine_; }
  std::shared_ptr<runtime::Device> device() const override { return nullptr; }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return codegen::ptx(kernels, machine_); }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function>) const override { return no_driver(); }

 private:
  Machine machine_;
};

}  // namespace

Result<std::vector<std::string>> cuda_devices() { return no_driver(); }

Result<std::shared_ptr<const Target>> open_cuda(std::string_view which) {
  return std::shared_ptr<const Target>(std::make_shared<CudaTarget>(WEFT_TRY(described_machine("cuda", which, kArch))));
}

}  // namespace weft::target
