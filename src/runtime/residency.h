// Where the values of a plan with a device are up to date, and the copies that follow from it.
#pragma once

#include <cstddef>
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

struct Transfer {
  std::size_t step = 0;    // before which; steps.size(): at the end of the run
  SlotId slot = 0;
  bool to_device = false;
};
// The copies of one run, in order, bodies of control flow not looked into. Constants, which are copied before the first
// run that reads them and stay, are not among them.
std::vector<Transfer> transfers(const Plan& plan);

}  // namespace weft::runtime
