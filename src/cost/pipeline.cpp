#include "cost/pipeline.h"

#include <algorithm>
#include <cmath>

namespace weft::cost {

int copy_stages(const Machine& machine, double block_bytes, double cycles, double most_bytes) {
  constexpr double kGroups = 2;  // of a core, which work while others wait
  constexpr int kMost = 4;
  if (machine.copy_bytes == 0 || block_bytes <= 0) return 1;
  const double covered = std::ceil(machine.memory_latency / (kGroups * std::max(cycles, 1.0)));
  const int wanted = 1 + static_cast<int>(std::clamp(covered, 1.0, static_cast<double>(kMost - 1)));
  const int room = static_cast<int>(std::min(most_bytes / block_bytes, static_cast<double>(kMost)));
  return std::max(1, std::min(wanted, room));
}

}  // namespace weft::cost
