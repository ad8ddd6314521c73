// Targets in this process whose code is the kernels as they are: nothing is generated.
#pragma once

#include <memory>
#include <vector>

#include "target/target.h"

namespace weft::target {

struct UnbuiltCode final : runtime::DeviceCode {
  std::vector<kernel::Function> kernels;
};

class UnbuiltTarget final : public Target {
 public:
  UnbuiltTarget(Machine machine, std::shared_ptr<runtime::Device> device)
      : machine_(std::move(machine)), device_(std::move(device)) {}
  const Machine& machine() const override { return machine_; }
  std::shared_ptr<runtime::Device> device() const override { return device_; }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override {
    std::string text;
    for (const kernel::Function& f : kernels) text += ssa::print(f);
    return text;
  }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    auto code = std::make_shared<UnbuiltCode>();
    code->kernels.assign(kernels.begin(), kernels.end());
    return std::shared_ptr<const runtime::DeviceCode>(std::move(code));
  }

 private:
  Machine machine_;
  std::shared_ptr<runtime::Device> device_;
};

}  // namespace weft::target
