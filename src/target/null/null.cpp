#include "target/null/null.h"

#include <cstring>

#include "target/machines.h"
#include "target/unbuilt.h"

namespace weft::target {
namespace {

using runtime::DeviceSpan;

class NullDevice final : public runtime::Device {
 public:
  explicit NullDevice(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t) override { return std::make_unique<runtime::DeviceMemory>(); }
  Result<void> upload(DeviceSpan, const void*, std::int64_t) override { return {}; }
  Result<void> download(void* to, DeviceSpan, std::int64_t bytes) override {
    if (bytes > 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
    return {};
  }
  Result<void> launch(const runtime::DeviceLaunch&) override { return {}; }
  Result<void> finish() override { return {}; }

 private:
  std::string name_;
};

}  // namespace

Result<std::shared_ptr<const Target>> open_null(std::string_view which) {
  Machine machine = WEFT_TRY(described_machine("null", which));
  auto device = std::make_shared<NullDevice>("no " + machine.name);
  return std::shared_ptr<const Target>(std::make_shared<UnbuiltTarget>(std::move(machine), std::move(device)));
}

}  // namespace weft::target
