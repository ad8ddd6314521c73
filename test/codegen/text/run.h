// Runs a kernel's text on a device.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/kernel.h"
#include "target/target.h"

namespace weft::codegen::test {

struct HostBuffer {
  void* data;
  std::size_t bytes;
};

// Opened once.
inline const Result<std::shared_ptr<const target::Target>>& opened(const std::string& name) {
  static std::map<std::string, Result<std::shared_ptr<const target::Target>>> all;
  return all.try_emplace(name, target::open(name)).first->second;
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

// Tests for each language; WebGPU's are skipped where it has no library or no adapter.
class OnDevices : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto& found = opened(GetParam());
    if (!found.ok() && std::string(GetParam()) == "webgpu") GTEST_SKIP() << found.error().what();
    ASSERT_TRUE(found.ok()) << found.error().what();
    target_ = found->get();
  }
  const target::Target* target_ = nullptr;
};
inline auto languages() { return testing::Values("opencl", "webgpu"); }
inline std::string language(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace weft::codegen::test
