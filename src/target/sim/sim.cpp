#include "target/sim/sim.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "target/machines.h"
#include "target/unbuilt.h"

namespace weft::target {
namespace {

using runtime::DeviceSpan;

struct SimMemory final : runtime::DeviceMemory {
  explicit SimMemory(std::int64_t n) : bytes(static_cast<std::size_t>(n)) {}
  std::vector<unsigned char> bytes;
};

unsigned char* address(DeviceSpan span) { return static_cast<SimMemory*>(span.memory)->bytes.data() + span.offset; }

class SimDevice final : public runtime::Device {
 public:
  explicit SimDevice(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t bytes) override {
    constexpr std::int64_t kMost = std::int64_t{1} << 34;
    if (bytes <= kMost) return std::unique_ptr<runtime::DeviceMemory>(new SimMemory(bytes));
    return user_error("out-of-device-memory", "a buffer is larger than the simulator allows")
        .expected(fmt::format("at most {} bytes", kMost))
        .found(fmt::format("{} bytes", bytes));
  }
  Result<void> upload(DeviceSpan to, const void* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(address(to), from, static_cast<std::size_t>(bytes));
    return {};
  }
  Result<void> download(void* to, DeviceSpan from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, address(from), static_cast<std::size_t>(bytes));
    return {};
  }
  Result<void> finish() override { return {}; }

  Result<void> launch(const runtime::DeviceLaunch& launch) override {
    const kernel::Function& f = static_cast<const UnbuiltCode&>(*launch.code).kernels[launch.kernel];
    std::vector<kernel::BufferView> views;
    for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
      const auto element = static_cast<std::int64_t>(storage_bytes(f.buffers[i].dtype, 1).value_or(1));
      views.push_back({address(launch.buffers[i]), launch.buffers[i].bytes / element});
    }
    std::int32_t check = 0;
    WEFT_TRY(kernel::simulate(f, views, launch.sizes, launch.grid, check));
    if (check != 0) std::memcpy(address(launch.status), &check, sizeof check);
    return {};
  }

 private:
  std::string name_;
};

}  // namespace

std::shared_ptr<const Target> simulated(Machine machine) {
  auto device = std::make_shared<SimDevice>("simulated " + machine.name);
  return std::make_shared<UnbuiltTarget>(std::move(machine), std::move(device));
}

Result<std::shared_ptr<const Target>> open_sim(std::string_view which) {
  return simulated(WEFT_TRY(described_machine("sim", which)));
}

}  // namespace weft::target
