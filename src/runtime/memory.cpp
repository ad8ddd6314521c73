// Offset assignment for blocks with known live ranges ("dynamic storage allocation"). Optimal plans are NP-hard to find;
// placing blocks one by one at the lowest offset that is free over their life comes close when the order is good, so
// several orders are tried and the best result is kept (after Pisarchyk and Lee, "Efficient Memory Management for Deep
// Neural Net Inference", 2020, and Sekiyama et al., "Profile-guided memory optimization for DNNs", 2018).
#include "runtime/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace weft::runtime {

namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t live_bound(const std::vector<LiveBlock>& blocks) {
  int steps = 0;
  for (const LiveBlock& b : blocks) steps = std::max(steps, b.last + 1);
  std::vector<std::int64_t> delta(steps + 1, 0);
  for (const LiveBlock& b : blocks) {
    delta[b.first] += aligned(b.bytes);
    delta[b.last + 1] -= aligned(b.bytes);
  }
  std::int64_t now = 0, most = 0;
  for (std::int64_t d : delta) most = std::max(most, now += d);
  return most;
}

// Places blocks in the given order, each in the smallest gap that fits among the blocks it lives with, or (first_fit)
// in the lowest one.
MemoryPlan place(const std::vector<LiveBlock>& blocks, const std::vector<int>& order, bool first_fit) {
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  std::vector<int> placed;  // by offset
  for (int k : order) {
    const LiveBlock& b = blocks[k];
    std::int64_t need = aligned(b.bytes), at = 0, best = -1, best_gap = INT64_MAX;
    if (need == 0) continue;
    for (int p : placed) {
      const LiveBlock& other = blocks[p];
      if (other.last < b.first || b.last < other.first) continue;
      std::int64_t gap = plan.offsets[p] - at;
      if (gap >= need && gap < best_gap) {
        best = at;
        best_gap = first_fit ? 0 : gap;
      }
      at = std::max(at, plan.offsets[p] + aligned(other.bytes));
    }
    plan.offsets[k] = best >= 0 ? best : at;
    plan.total = std::max(plan.total, plan.offsets[k] + need);
    auto pos = std::upper_bound(placed.begin(), placed.end(), k,
                                [&](int x, int y) { return plan.offsets[x] < plan.offsets[y]; });
    placed.insert(pos, k);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<LiveBlock>& blocks) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  auto length = [&](int k) { return std::int64_t{blocks[k].last - blocks[k].first + 1}; };
  using Less = std::function<bool(int, int)>;
  const Less orders[] = {
      [&](int a, int b) { return blocks[a].bytes > blocks[b].bytes; },
      [&](int a, int b) { return blocks[a].bytes * length(a) > blocks[b].bytes * length(b); },
      [&](int a, int b) { return length(a) > length(b); },
      [&](int a, int b) { return blocks[a].first < blocks[b].first; },
      [&](int a, int b) { return blocks[a].last > blocks[b].last; },
  };
  std::int64_t bound = live_bound(blocks);
  MemoryPlan best;
  best.total = INT64_MAX;
  best.offsets.assign(blocks.size(), 0);
  for (const Less& less : orders) {
    std::vector<int> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), less);
    for (bool first_fit : {false, true}) {
      MemoryPlan plan = place(blocks, sorted, first_fit);
      if (plan.total < best.total) best = std::move(plan);
      if (best.total == bound) break;
    }
    if (best.total == bound) break;
  }
  if (blocks.empty()) best.total = 0;
  best.bound = bound;
  return best;
}

}  // namespace weft::runtime
