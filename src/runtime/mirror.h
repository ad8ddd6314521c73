// The slots of one run when its kernels run on a device: which side holds the value, and copies when the other side asks.
// Temporaries lie at the same offsets of a device arena as of the host's.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "runtime/plan.h"
#include "runtime/residency.h"

namespace weft::runtime {

// A plan's constants on its device, copied there when first read and shared by all runs.
class DeviceConstants {
 public:
  Result<DeviceSpan> get(const Plan& plan, std::int32_t index);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;  // by constant
};

// Values of a body that lie on the device from one iteration to the next; spans without memory: on the host.
struct Kept {
  std::vector<DeviceSpan> inputs, outputs;
  bool resumed = false;  // not the first iteration: what went wrong before is still to be seen
};

class Mirror {
 public:
  Mirror(const Plan& plan, DeviceConstants& constants) : plan_(plan), constants_(constants) {}

  // A new run: inputs and constants are up to date on the host, nothing but what is kept on the device.
  Result<void> begin(std::int64_t arena_bytes, const Kept* kept);

  // Where a kernel finds the slot's `bytes`. `arena_offset` is of the host's arena, -1 for slots outside it; `host` the
  // bytes on this side, copied over when only they are up to date and the kernel reads or writes a part of them.
  struct Place {
    std::int64_t bytes = 0, arena_offset = -1;
    const void* host = nullptr;
  };
  Result<DeviceSpan> on_device(SlotId slot, const Place& place, bool written);
  bool only_on_device(SlotId slot) const;
  // Memory of the slot's besides, for a value that alternates between two places.
  Result<DeviceSpan> spare(SlotId slot, std::int64_t bytes);
  // Makes the host's bytes up to date; after host_wrote() they are the only ones that are.
  Result<void> to_host(SlotId slot, void* host, std::int64_t bytes);
  void host_wrote(SlotId slot);

  // The status word of a step. failed() waits for the device and gives the first step whose check failed, or -1.
  DeviceSpan status(std::size_t step) const { return {status_.get(), static_cast<std::int64_t>(step * sizeof(std::int32_t))}; }
  struct Failure {
    std::int32_t step = -1, code = 0;
  };
  Result<Failure> failed();

 private:
  struct Owned {
    std::unique_ptr<DeviceMemory> memory;
    std::int64_t bytes = -1;
  };
  struct State {
    Residency residency;
    Owned own, spare;  // outside the arena
    DeviceSpan at;
    bool kept = false;
  };
  Result<DeviceSpan> at_least(Owned& owned, std::int64_t bytes);
  void keep(SlotId slot, DeviceSpan at, bool is_there);

  const Plan& plan_;
  DeviceConstants& constants_;
  std::unique_ptr<DeviceMemory> arena_, status_;
  std::int64_t arena_bytes_ = -1;
  std::vector<State> states_;  // by slot
  std::vector<std::int32_t> codes_;
};

}  // namespace weft::runtime
