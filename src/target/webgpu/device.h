// A WebGPU adapter as a device. Launches are gathered into one pass, which is handed over when something waits for it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "target/webgpu/session.h"

namespace weft::target::webgpu {

class Device final : public runtime::Device {
 public:
  static Result<std::shared_ptr<Device>> open(int number);
  ~Device() override;

  const std::string& name() const override { return session_->facts.name; }
  const Facts& facts() const { return session_->facts; }
  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t bytes) override;
  Result<void> upload(runtime::DeviceSpan to, const void* from, std::int64_t bytes) override;
  Result<void> download(void* to, runtime::DeviceSpan from, std::int64_t bytes) override;
  Result<void> launch(const runtime::DeviceLaunch& launch) override;
  Result<void> finish() override;

  struct Kernel {
    std::string source, entry;
    int group = 1;         // threads of a work group
    bool alone = false;    // each runs a program of its own
    std::size_t buffers = 0;
  };
  Result<std::shared_ptr<const runtime::DeviceCode>> build(const std::vector<Kernel>& kernels);

 private:
  struct Layout {
    BindGroupLayout* group = nullptr;
    PipelineLayout* pipeline = nullptr;
  };
  explicit Device(std::shared_ptr<Session> session) : session_(std::move(session)), library_(session_->library) {}
  Result<Layout> layout(std::size_t buffers);
  Result<std::uint64_t> add_parameters(const std::vector<std::uint32_t>& words);
  Result<void> begin_pass();
  Result<void> submit();
  Result<void> submit(CommandEncoder* encoder);
  Result<void> read(void* to, Buffer* from, std::uint64_t at, std::uint64_t bytes);

  std::shared_ptr<Session> session_;
  const Library& library_;
  std::mutex mutex_;                       // of all that follows
  std::vector<Layout> layouts_;            // by number of buffers
  CommandEncoder* encoder_ = nullptr;      // of launches that were not handed over yet
  ComputePass* pass_ = nullptr;
  Buffer* parameters_ = nullptr;
  std::vector<std::uint8_t> parameter_bytes_;  // of those launches
  Buffer* staging_ = nullptr;              // what is read comes through it
  std::uint64_t staging_bytes_ = 0;
};

}  // namespace weft::target::webgpu
