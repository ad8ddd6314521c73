#include "schedule/code.h"

#include <algorithm>
#include <cmath>

#include "schedule/unit.h"

namespace weft::schedule {
namespace {

constexpr double kPerStatement = 6, kPerLoop = 8, kPerKernel = 40;  // addresses, counters, the frame
constexpr double kCompileUs = 8;   // of an instruction
constexpr double kRuns = 3000;     // what compiling should have paid for itself in
constexpr double kQuickUs = 3.5;   // of an instruction, when made quickly
constexpr double kQuickSlower = 4; // times as long as code that is made well: 1.5 for pointwise kernels to 4 for products

class Counter {
 public:
  Counter(const Analysis& a, const Machine& m, const Record& r) : a_(a), m_(m), r_(r), g_(a.group) {}

  double run() const {
    double total = kPerKernel + kPerLoop * static_cast<double>(g_.loops.size());
    for (const Leaf& leaf : a_.leaves) total += copies(leaf) * (kPerStatement + once(leaf));
    return total;
  }

 private:
  int lanes(const Leaf& leaf) const {
    int widest = std::max(32, bits(g_.expr(leaf.stmt->value).dtype));
    for (const Access& access : leaf.accesses) widest = std::max(widest, access.bytes * 8);
    return std::max(1, m_.vector_bits / widest);
  }

  // Grid loops of one step are cut together; each other loop has code of its own for what is left over.
  double copies(const Leaf& leaf) const {
    double n = 1;
    bool together = false;
    for (LoopId l : leaf.loops) {
      if (!has_tail(g_, r_, l) || r_.loops[l].masked) continue;
      if (r_.loops[l].grid && r_.loops[l].block == 1) {
        together = true;
      } else {
        n *= 2;
      }
    }
    return together ? 2 * n : n;
  }

  double once(const Leaf& leaf) const {
    const bool stores = leaf.stmt->kind == Stmt::Kind::Store;
    double rows = 1, vectors = 1, written_out = 1;
    std::vector<double> rows_of(g_.loops.size(), 1), vectors_of(g_.loops.size(), 1);
    for (LoopId l : leaf.loops) {
      const LoopPlan& plan = r_.loops[l];
      if (plan.unrolled) written_out *= a_.extents[l];
      if (plan.axis == 0 && !(plan.apart && stores)) rows *= rows_of[l] = plan.tile;
      if (plan.axis == 1) vectors *= vectors_of[l] = std::ceil(1.0 * plan.tile / lanes(leaf));
    }
    if (on_unit(r_, leaf)) {
      double lanes = 1;
      for (LoopId l : leaf.loops) lanes = r_.loops[l].axis == 1 ? r_.loops[l].tile : lanes;
      const double r = rows / kTileRows, c = lanes / kTileRows;
      return r * c + 2 * (r + c);
    }
    double count = static_cast<double>(leaf.operations) * rows * vectors;
    for (const Access& access : leaf.accesses) {
      double loads = 1;
      for (LoopId l : leaf.loops) {
        if (access.strides[l] != Stride::None) loads *= rows_of[l] * vectors_of[l];
      }
      count += loads;
    }
    return count * written_out;
  }

  const Analysis& a_;
  const Machine& m_;
  const Record& r_;
  const loop::Group& g_;
};

}  // namespace

bool has_tail(const loop::Group& group, const Record& record, LoopId loop) {
  const int tile = record.loops[loop].axis >= 0 ? record.loops[loop].tile : 1;
  return tile > 1 && !mod(group.loops[loop].extent, Dim(tile)).is(0);
}

double instructions(const Analysis& analysis, const Machine& machine, const Record& record) {
  return Counter(analysis, machine, record).run();
}

double code_share(double instructions) { return instructions * kCompileUs / kRuns; }

FirstCode first_code(double run, double instructions, int threads) {
  return {(kQuickSlower - 1) * run, (kCompileUs - kQuickUs) * instructions / std::max(1, threads)};
}

}  // namespace weft::schedule
