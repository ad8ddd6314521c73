// A processor that kernels run on other than this process's cores: memory of its own, copies, launches. Work is done in
// the order in which it was asked for. Implementations are in target/; all calls may come from many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "runtime/kernel_abi.h"

namespace weft::runtime {

// Bytes on a device; given back when destroyed.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
};

struct DeviceSpan {
  DeviceMemory* memory = nullptr;
  std::int64_t offset = 0;  // bytes; of a buffer of a launch a multiple of DeviceCode::alignment(), and of its elements' size
  std::int64_t bytes = 0;   // of a buffer of a launch: how many are its own
};

// Kernels built for one device, by number.
class DeviceCode {
 public:
  virtual ~DeviceCode() = default;
  virtual std::int64_t alignment() const { return kGroupBufferAlign; }
};

struct DeviceLaunch {
  const DeviceCode* code = nullptr;
  std::int32_t kernel = 0;
  std::span<const DeviceSpan> buffers;
  std::span<const std::int64_t> sizes;
  std::int64_t grid = 0;   // programs, at least 1
  DeviceSpan status;       // an i32: a check that fails writes its code there
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(std::int64_t bytes) = 0;
  // The host's bytes may be reused as soon as these return.
  virtual Result<void> upload(DeviceSpan to, const void* from, std::int64_t bytes) = 0;
  virtual Result<void> download(void* to, DeviceSpan from, std::int64_t bytes) = 0;
  virtual Result<void> launch(const DeviceLaunch& launch) = 0;
  virtual Result<void> finish() = 0;  // waits for all that was asked for
};

}  // namespace weft::runtime
