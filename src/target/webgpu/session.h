// A WebGPU device with its queue, held by what was made on it; ended with the last of them. Calls of the library report
// what is wrong through callbacks, which checked() turns into errors.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "target/webgpu/library.h"

namespace weft::target::webgpu {

struct Session {
  static Result<std::shared_ptr<Session>> begin(const Found& found);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // What was reported since the last time. A device that is lost stays so.
  Result<void> checked(const char* call);
  Error lost_error() const;
  // Until `done`; not longer than WEFT_DEVICE_SECONDS.
  Result<void> wait(const std::atomic<std::uint32_t>& done);
  Result<Buffer*> buffer(std::uint64_t usage, std::uint64_t bytes);

  const Library& library;
  const Facts facts;
  GpuDevice* device = nullptr;
  Queue* queue = nullptr;
  std::atomic<bool> lost = false;

 private:
  Session(const Library& l, const Facts& f) : library(l), facts(f) {}
  static void on_error(GpuDevice* const*, std::uint32_t type, Text message, void* self, void*);
  static void on_lost(GpuDevice* const*, std::uint32_t reason, Text message, void* self, void*);
  std::mutex mutex_;  // of what was reported
  std::uint32_t reported_ = kNoError;
  std::string message_;
};

}  // namespace weft::target::webgpu
