// Where the values of a plan with a device are up to date, and the copies that follow from it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/plan.h"

namespace weft::runtime {

// Of one slot. Each call says whether the bytes must be copied first.
class Residency {
 public:
  explicit Residency(bool on_host = false) : host_(on_host) {}
  // A kernel on the device is about to use them; it may write a part only.
  bool use_on_device(bool written) {
    const bool upload = host_ && !device_;
    device_ = true;
    if (written) host_ = false;
    return upload;
  }
  bool use_on_host() {
    const bool download = only_on_device();
    host_ = host_ || download;
    return download;
  }
  void is_on_device() {
    host_ = false;
    device_ = true;
  }
  void wrote_on_host() {
    host_ = true;
    device_ = false;
  }
  bool only_on_device() const { return device_ && !host_; }
  bool on_device() const { return device_; }

 private:
  bool host_, device_ = false;
};

// At the begin of a run inputs and constants are on the host, and nothing is on the device.
std::vector<Residency> initial_residency(const Plan& plan);

// Of a scan whose body does nothing but launches on the device: what goes into it and comes out of it stays there over all
// iterations. By carried value: the y that is a copy of it, or -1. Nothing: the body does more.
std::optional<std::vector<int>> staying(const ScanStep& scan);

struct Transfer {
  std::size_t step = 0;    // before which; steps.size(): at the end of the run
  SlotId slot = 0;
  bool to_device = false;
};
// The copies of one run, in order, bodies of control flow not looked into. Constants, which are copied before the first
// run that reads them and stay, are not among them.
// `stays`: of the body of a scan that stays on the device.
std::vector<Transfer> transfers(const Plan& plan, bool stays = false);

}  // namespace weft::runtime
