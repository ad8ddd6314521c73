// One NVIDIA GPU: its primary context, one stream, memory that is kept for the next allocation of its size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/machine.h"
#include "runtime/device.h"
#include "target/cuda/driver.h"

namespace weft::target::cuda {

// What a device says of itself.
struct Facts {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 1;
  std::int64_t l2_bytes = 0;
  double ghz = 0;
  double memory_gbytes = 0;  // a second, as clocked; 0: not said
};

Result<std::vector<Facts>> devices();

class Device final : public runtime::Device {
 public:
  static Result<std::shared_ptr<Device>> open(int number);

  const std::string& name() const override { return facts_.name; }
  const Facts& facts() const { return facts_; }
  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t bytes) override;
  Result<void> upload(runtime::DeviceSpan to, const void* from, std::int64_t bytes) override;
  Result<void> download(void* to, runtime::DeviceSpan from, std::int64_t bytes) override;
  Result<void> launch(const runtime::DeviceLaunch& launch) override;
  Result<void> finish() override;

  struct Entry {
    std::string name;  // in the text
    int threads = 1;   // of a block
  };
  // The driver compiles PTX for the device, and keeps what it made in its own cache.
  Result<std::shared_ptr<const runtime::DeviceCode>> build(const std::string& ptx, const std::vector<Entry>& entries);

  struct Session;  // what memory and code outlive the device by

 private:
  Device(Facts facts, std::shared_ptr<Session> session) : facts_(std::move(facts)), session_(std::move(session)) {}
  Facts facts_;
  std::shared_ptr<Session> session_;
};

}  // namespace weft::target::cuda
