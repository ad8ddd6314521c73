// Offset assignment for blocks with known live ranges ("dynamic storage allocation"). Optimal plans are NP-hard to find;
// placing blocks one by one at an offset that is free over their life comes close when the order is good. Several orders
// are tried (after Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, and Sekiyama et
// al., "Profile-guided memory optimization for DNNs", 2018); where the best of them stays above the bound, the order is
// improved by what went wrong: blocks that ended above the bound are placed earlier in the next round (squeaky wheel
// optimisation, Joslin and Clements, 1999) and now and then at the other end of their gap, for a bounded number of rounds.
#include "runtime/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace weft::runtime {
namespace {

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

enum class Fit : std::uint8_t { Best, First };  // the smallest gap that is large enough, or the lowest

// What place() does: a block after the other, each at the lower end of its gap, or, where `high`, at the upper one. The
// gap above all others ends at the bound, or where the block fits.
struct Recipe {
  std::vector<int> order;
  std::vector<bool> high;  // by block
  Fit fit = Fit::Best;
};

class Packer {
 public:
  explicit Packer(const std::vector<LiveBlock>& blocks);
  MemoryPlan pack();

 private:
  void place(const Recipe& recipe);
  std::int64_t offset_for(int k, const Recipe& recipe);
  void attempt(const Recipe& recipe);
  void mutate(Recipe& recipe, std::minstd_rand& random) const;
  void improve();
  bool good_enough() const { return best_.total <= bound_ + bound_ / 400; }

  static constexpr std::int64_t kWork = 4'000'000;  // pairs of blocks that improve() may look at: milliseconds

  std::vector<std::int64_t> size_;         // by block
  std::vector<std::vector<int>> together_;  // by block: those that are live at a common step
  std::int64_t pairs_ = 0;
  std::int64_t bound_ = 0;
  std::vector<LiveBlock> blocks_;
  // of the last place():
  std::vector<std::int64_t> offset_;  // -1: not placed yet
  std::vector<std::int64_t> previous_;  // scratch of improve
  std::int64_t total_ = 0;
  std::int64_t excess_ = 0;  // bytes of all blocks above the bound: the total alone does not tell one fault from many
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;  // scratch of offset_for
  MemoryPlan best_;
  Recipe best_recipe_;
};

Packer::Packer(const std::vector<LiveBlock>& blocks) : together_(blocks.size()), blocks_(blocks) {
  for (const LiveBlock& b : blocks) size_.push_back(aligned(b.bytes));
  std::vector<int> by_first;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    if (size_[k] > 0) by_first.push_back(static_cast<int>(k));
  }
  std::stable_sort(by_first.begin(), by_first.end(), [&](int a, int b) { return blocks[a].first < blocks[b].first; });
  std::vector<int> live;
  for (int k : by_first) {
    live.erase(std::remove_if(live.begin(), live.end(), [&](int a) { return blocks[a].last < blocks[k].first; }), live.end());
    for (int a : live) {
      together_[a].push_back(k);
      together_[k].push_back(a);
    }
    pairs_ += 2 * static_cast<std::int64_t>(live.size());
    live.push_back(k);
  }
  bound_ = live_bound(blocks);
  best_.total = INT64_MAX;
  best_recipe_ = {std::move(by_first), std::vector<bool>(blocks.size(), false), Fit::Best};
}

std::int64_t Packer::offset_for(int k, const Recipe& recipe) {
  taken_.clear();
  for (int other : together_[k]) {
    if (offset_[other] >= 0) taken_.push_back({offset_[other], offset_[other] + size_[other]});
  }
  std::sort(taken_.begin(), taken_.end());
  std::int64_t at = 0, best = -1, best_gap = INT64_MAX;
  for (const auto& [begin, end] : taken_) {
    const std::int64_t gap = begin - at;
    if (gap >= size_[k] && gap < best_gap) {
      best = recipe.high[k] ? begin - size_[k] : at;
      best_gap = gap;
      if (recipe.fit == Fit::First) break;
    }
    at = std::max(at, end);
  }
  if (best >= 0) return best;
  return recipe.high[k] ? std::max(at, bound_ - size_[k]) : at;
}

void Packer::place(const Recipe& recipe) {
  offset_.assign(size_.size(), -1);
  total_ = excess_ = 0;
  for (int k : recipe.order) {
    offset_[k] = offset_for(k, recipe);
    total_ = std::max(total_, offset_[k] + size_[k]);
    excess_ += std::max<std::int64_t>(0, offset_[k] + size_[k] - bound_);
  }
}

void Packer::attempt(const Recipe& recipe) {
  place(recipe);
  if (total_ >= best_.total) return;
  best_.total = total_;
  best_.offsets = offset_;
  best_recipe_ = recipe;
}

// A random neighbour of the recipe whose plan `offset_` holds: of one block that ended above the bound, or of all.
void Packer::mutate(Recipe& recipe, std::minstd_rand& random) const {
  const auto picked = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto forward = [&](std::size_t at) {
    if (at == 0) return;
    const auto from = recipe.order.begin() + static_cast<std::ptrdiff_t>(at);
    std::rotate(from - static_cast<std::ptrdiff_t>(1 + picked(at)), from, from + 1);
  };
  const auto turn = [&](int k) { recipe.high[k] = !recipe.high[k]; };
  std::vector<std::size_t> above;  // places in the order
  for (std::size_t at = 0; at < recipe.order.size(); ++at) {
    if (offset_[recipe.order[at]] + size_[recipe.order[at]] > bound_) above.push_back(at);
  }
  if (picked(4) == 0) {
    for (std::size_t at : above) {
      if (picked(2) == 0) forward(at);
    }
    for (std::size_t turns = picked(3); turns > 0; --turns) turn(recipe.order[picked(recipe.order.size())]);
  } else if (!above.empty()) {
    const std::size_t at = above[picked(above.size())];
    const int k = recipe.order[at];
    if (picked(2) == 0) forward(at);
    if (picked(4) == 0) turn(k);
    if (const auto& near = together_[k]; !near.empty() && picked(2) == 0) turn(near[picked(near.size())]);
  }
  if (picked(2) == 0) forward(picked(recipe.order.size()));
  if (picked(16) == 0) recipe.fit = recipe.fit == Fit::Best ? Fit::First : Fit::Best;
}

// A walk over recipes: to neighbours that are no worse, seldom to a slightly worse one.
void Packer::improve() {
  if (best_recipe_.order.empty() || good_enough()) return;
  std::minstd_rand random(1);
  Recipe recipe = best_recipe_;
  place(recipe);
  const std::int64_t round = pairs_ + 8 * static_cast<std::int64_t>(recipe.order.size());
  for (std::int64_t work = 0; work < kWork && !good_enough(); work += round) {
    Recipe next = recipe;
    mutate(next, random);
    const std::int64_t before = excess_, allowed = random() % 32 == 0 ? before / 16 : 0;
    previous_ = offset_;
    attempt(next);
    if (excess_ <= before + allowed) {
      recipe = std::move(next);
    } else {
      offset_.swap(previous_);
      excess_ = before;
    }
  }
}

MemoryPlan Packer::pack() {
  auto length = [&](int k) { return std::int64_t{blocks_[k].last - blocks_[k].first + 1}; };
  using Less = std::function<bool(int, int)>;
  const Less orders[] = {
      [&](int a, int b) { return size_[a] > size_[b]; },
      [&](int a, int b) { return size_[a] * length(a) > size_[b] * length(b); },
      [&](int a, int b) { return length(a) > length(b); },
      [&](int a, int b) { return blocks_[a].first < blocks_[b].first; },
      [&](int a, int b) { return blocks_[a].last > blocks_[b].last; },
  };
  const Recipe start = best_recipe_;
  for (const Less& less : orders) {
    Recipe recipe = start;
    std::stable_sort(recipe.order.begin(), recipe.order.end(), less);
    for (Fit fit : {Fit::Best, Fit::First}) {
      recipe.fit = fit;
      if (best_.total > bound_) attempt(recipe);
    }
  }
  improve();
  for (std::int64_t& offset : best_.offsets) offset = std::max<std::int64_t>(offset, 0);
  best_.bound = bound_;
  return best_;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<LiveBlock>& blocks) { return Packer(blocks).pack(); }

}  // namespace weft::runtime
