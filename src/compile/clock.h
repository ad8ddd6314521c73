// Adds the time of its scope to a counter, in milliseconds.
#pragma once

#include <chrono>

namespace weft::compiler {

class Clock {
 public:
  explicit Clock(double& ms) : ms_(ms) {}
  ~Clock() {
    ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

 private:
  double& ms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace weft::compiler
