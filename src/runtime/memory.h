// The memory planner: live ranges in, offsets out. A pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::runtime {

constexpr std::int64_t kAlignment = 64;
inline std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Live from step `first` to step `last`, both included. Two blocks that are live at a common step never overlap.
struct LiveBlock {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  // multiples of kAlignment
  std::int64_t total = 0;             // arena bytes
  std::int64_t bound = 0;             // the largest sum of aligned sizes live at one step: no plan can be smaller
};

MemoryPlan plan_memory(const std::vector<LiveBlock>& blocks);

}  // namespace weft::runtime
