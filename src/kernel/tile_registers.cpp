// Registers of a matrix unit: a sum that a loop carries stays in one. Linear scan over the function's text.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

// Values that share a register, and when they are alive, by positions of instructions in the function's text.
class Assignment {
 public:
  explicit Assignment(const Function& f)
      : f_(f), parent_(f.types.size()), first_(f.types.size(), -1), last_(f.types.size(), -1), loops_of_(f.types.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // By value id, -1 for what is no tile. Nothing when there are more tiles alive than registers.
  std::optional<std::vector<int>> run() {
    block(f_.body);
    std::vector<Range> ranges;
    for (std::size_t v = 0; v < parent_.size(); ++v) {
      if (f_.types[v].rank != 2) continue;
      const ValueId root = find(static_cast<ValueId>(v));
      auto range = std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r.root == root; });
      if (range == ranges.end()) range = ranges.insert(ranges.end(), {root, first_[v], last_[v]});
      range->first = std::min(range->first, first_[v]);
      range->last = std::max(range->last, last_[v]);
    }
    return color(std::move(ranges));
  }

 private:
  struct Range {
    ValueId root;
    int first, last;
  };

  std::optional<std::vector<int>> color(std::vector<Range> ranges) {
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    std::array<int, kTileRegisters> busy;  // until when
    busy.fill(-1);
    std::vector<int> by_root(parent_.size(), -1), result(parent_.size(), -1);
    for (const Range& r : ranges) {
      const auto free = std::find_if(busy.begin(), busy.end(), [&](int until) { return until < r.first; });
      if (free == busy.end()) return std::nullopt;
      *free = r.last;
      by_root[r.root] = static_cast<int>(free - busy.begin());
    }
    for (std::size_t v = 0; v < result.size(); ++v) {
      if (f_.types[v].rank == 2) result[v] = by_root[find(static_cast<ValueId>(v))];
    }
    return result;
  }

  ValueId find(ValueId v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }

  void join(ValueId a, ValueId b) {
    if (f_.types[a].rank == 2) parent_[find(a)] = find(b);
  }

  void define(ValueId v) { first_[v] = last_[v] = position_, loops_of_[v] = loops_; }

  // In a loop that does not make the value, it is needed until the loop ends.
  void use(ValueId v, const std::vector<int>& ends) {
    const std::size_t outside = loops_of_[v];
    last_[v] = std::max(last_[v], outside < ends.size() ? ends[outside] : position_);
  }

  static int length(const ssa::Block& block) {
    int n = 1;
    for (const ssa::Inst& inst : block.insts) {
      n += 1;
      for (const ssa::Block& region : inst.regions) n += length(region);
    }
    return n;
  }

  void block(const ssa::Block& b) {
    for (const ssa::Inst& inst : b.insts) {
      ++position_;
      for (const ValueId v : inst.operands) use(v, ends_);
      if (static_cast<Op>(inst.op) == Op::MultiplyTiles) join(inst.operands[2], inst.results[0]);
      if (static_cast<Op>(inst.op) == Op::For) {
        for (std::size_t k = 0; k < inst.results.size(); ++k) {
          join(inst.operands[3 + k], inst.results[k]);
          join(inst.regions[0].args[1 + k], inst.results[k]);
          join(inst.regions[0].yields[k], inst.results[k]);
        }
        ends_.push_back(position_ + length(inst.regions[0]));
        ++loops_;
        for (const ValueId v : inst.regions[0].args) define(v);
        block(inst.regions[0]);
        for (const ValueId v : inst.regions[0].yields) use(v, ends_);
        ++position_;
        ends_.pop_back();
        --loops_;
      } else {
        for (const ssa::Block& region : inst.regions) {
          block(region);
          ++position_;
        }
      }
      for (const ValueId v : inst.results) define(v);
    }
  }

  const Function& f_;
  std::vector<ValueId> parent_;
  std::vector<int> first_, last_;
  std::vector<std::size_t> loops_of_;  // around the definition
  std::vector<int> ends_;              // of the open loops
  std::size_t loops_ = 0;
  int position_ = 0;
};

}  // namespace

std::optional<std::vector<int>> tile_registers(const Function& function) {
  const bool tiles = std::any_of(function.types.begin(), function.types.end(), [](const Type& t) { return t.rank == 2; });
  return tiles ? Assignment(function).run() : std::vector<int>();
}

}  // namespace weft::kernel
