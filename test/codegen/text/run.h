// Runs a kernel's text on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/llvm/codegen.h"
#include "kernel/kernel.h"
#include "target/target.h"

namespace weft::codegen::test {

struct HostBuffer {
  void* data;
  std::size_t bytes;
};

// Kernels as compiling makes them: SPIR-V has no spelling for mathematics, which is expanded before.
class Expanding final : public target::Target {
 public:
  explicit Expanding(std::shared_ptr<const target::Target> to) : to_(std::move(to)) {}
  const Machine& machine() const override { return to_->machine(); }
  std::shared_ptr<runtime::Device> device() const override { return to_->device(); }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return to_->print(WEFT_TRY(expanded(kernels))); }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    const std::vector<kernel::Function> copies = WEFT_TRY(expanded(kernels));
    WEFT_TRY(validate(WEFT_TRY(spirv(copies, to_->machine()))));
    return to_->build(copies);
  }

 private:
  // By Khronos' own tool, where it is.
  static Result<void> validate(const std::string& module) {
    if (std::system("spirv-val --version > /dev/null 2>&1") != 0) return {};
    const std::string path = testing::TempDir() + "weft_kernel.spv";
    std::ofstream(path, std::ios::binary) << module;
    if (std::system(("spirv-val --target-env spv1.3 " + path).c_str()) == 0) return {};
    return internal_error("spirv-val refuses " + path);
  }

  static Result<std::vector<kernel::Function>> expanded(std::span<const kernel::Function> kernels) {
    std::vector<kernel::Function> copies(kernels.begin(), kernels.end());
    for (kernel::Function& f : copies) WEFT_TRY(kernel::expand_math(f));
    return copies;
  }
  std::shared_ptr<const target::Target> to_;
};

using Opened = Result<std::shared_ptr<const target::Target>>;

// The first OpenCL device that takes it; PoCL does not.
inline Opened open_spirv() {
  for (int number = 0;; ++number) {
    const auto device = WEFT_TRY(target::open("opencl:" + std::to_string(number)));
    if (auto target = device->with_code("spirv"); target.ok()) return std::shared_ptr<const target::Target>(std::make_shared<Expanding>(*target));
  }
}

// Opened once.
inline const Opened& opened(const std::string& name) {
  static std::map<std::string, Opened> all;
  if (const auto found = all.find(name); found != all.end()) return found->second;
  return all.emplace(name, name == "spirv" ? open_spirv() : target::open(name)).first->second;
}

// Buffers are copied in and out. Returns the status word.
inline Result<int> run_on(const target::Target& target, const kernel::Function& function, const std::vector<HostBuffer>& buffers,
                          const std::vector<std::int64_t>& sizes, std::int64_t grid) {
  runtime::Device& device = *target.device();
  const auto code = WEFT_TRY(target.build(std::span(&function, 1)));
  int status = 0;
  std::vector<HostBuffer> all = buffers;
  all.push_back({&status, sizeof status});
  std::vector<std::unique_ptr<runtime::DeviceMemory>> memory;
  std::vector<runtime::DeviceSpan> spans;
  constexpr std::int64_t kStart = 64;  // none starts where its memory does
  for (const HostBuffer& b : all) {
    memory.push_back(WEFT_TRY(device.allocate(kStart + static_cast<std::int64_t>(b.bytes))));
    spans.push_back({memory.back().get(), kStart, static_cast<std::int64_t>(b.bytes)});
    WEFT_TRY(device.upload(spans.back(), b.data, static_cast<std::int64_t>(b.bytes)));
  }
  runtime::DeviceLaunch launch;
  launch.code = code.get();
  launch.buffers = std::span(spans).first(buffers.size());
  launch.sizes = sizes;
  launch.grid = grid;
  launch.status = spans.back();
  WEFT_TRY(device.launch(launch));
  for (std::size_t i = 0; i < all.size(); ++i) {
    WEFT_TRY(device.download(all[i].data, spans[i], static_cast<std::int64_t>(all[i].bytes)));
  }
  return status;
}

// Tests for each language; WebGPU's are skipped where it has no library or no adapter, SPIR-V's where no device takes it.
class OnDevices : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto& found = opened(GetParam());
    if (!found.ok() && std::string(GetParam()) != "opencl") GTEST_SKIP() << found.error().what();
    ASSERT_TRUE(found.ok()) << found.error().what();
    target_ = found->get();
  }
  const target::Target* target_ = nullptr;
};
inline auto languages() { return testing::Values("opencl", "webgpu", "spirv"); }
inline std::string language(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace weft::codegen::test
