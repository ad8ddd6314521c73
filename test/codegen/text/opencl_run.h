// Runs a kernel's OpenCL C on the first device.
#pragma once

#include <vector>

#include "base/error.h"
#include "kernel/kernel.h"
#include "target/target.h"

namespace weft::codegen::test {

struct HostBuffer {
  void* data;
  std::size_t bytes;
};

// Buffers are copied in and out. Returns the status word.
inline Result<int> run_opencl(const kernel::Function& function, const std::vector<HostBuffer>& buffers,
                              const std::vector<std::int64_t>& sizes, std::int64_t grid) {
  static const auto target = target::open("opencl");
  if (!target.ok()) return target.error();
  runtime::Device& device = *(*target)->device();
  const auto code = WEFT_TRY((*target)->build(std::span(&function, 1)));
  int status = 0;
  std::vector<HostBuffer> all = buffers;
  all.push_back({&status, sizeof status});
  std::vector<std::unique_ptr<runtime::DeviceMemory>> memory;
  std::vector<runtime::DeviceSpan> spans;
  constexpr std::int64_t kStart = 64;  // none starts where its memory does
  for (const HostBuffer& b : all) {
    memory.push_back(WEFT_TRY(device.allocate(kStart + static_cast<std::int64_t>(b.bytes))));
    spans.push_back({memory.back().get(), kStart});
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

}  // namespace weft::codegen::test
