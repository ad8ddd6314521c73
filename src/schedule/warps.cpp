#include "schedule/warps.h"

#include <algorithm>

#include "cost/pipeline.h"

namespace weft::schedule {
namespace {

constexpr double kBarriers = 60;  // cycles in which a group waits for its threads to share what a dot reads
constexpr double kGroups = 2;     // of a core: while one waits, the other works

struct Block {
  double rows = 1, lanes = 1;
  int depth = 1;
};

Block block_of(const Record& r, const Leaf& leaf) {
  Block b;
  for (LoopId l : leaf.loops) {
    if (r.loops[l].axis == 0) b.rows *= r.loops[l].tile;
    if (r.loops[l].axis == 1) b.lanes *= r.loops[l].tile;
    b.depth = std::max(b.depth, r.loops[l].depth);
  }
  return b;
}

bool whole(double n, int part) { return static_cast<int>(n) % part == 0; }

}  // namespace

int warp_unit_bits(const Machine& m, const Analysis& a, const Leaf& leaf) {
  if (!m.has_matrix || !leaf.product || leaf.accesses.empty()) return 0;
  const auto all = [&](int bytes) {
    return std::all_of(leaf.accesses.begin(), leaf.accesses.end(),
                       [&](const Access& x) { return x.bytes == bytes && is_float(a.group.params[x.param].dtype); });
  };
  if (all(2)) return 16;
  return m.cuts_f32 && all(4) ? 32 : 0;
}

GroupStep group_step(const Machine& m, const Analysis& a, const Record& r, const Leaf& leaf, double fma_cycles) {
  constexpr int kRows = 16, kColumns = 8, kWords = 8, kGroupRows = 64;  // of a warp, of four warps together
  const Block b = block_of(r, leaf);
  const int bits = warp_unit_bits(m, a, leaf);
  GroupStep s;
  s.cycles = fma_cycles;
  if (bits > 0 && whole(b.rows, kRows) && whole(b.lanes, kColumns) && whole(b.depth, kWords * 32 / bits)) {
    const bool groups = m.group_matrix_rate > 0 && bits == 16 && whole(b.rows, kGroupRows);
    s.cycles = b.rows * b.lanes * bits / 16 / (groups ? m.group_matrix_rate : m.matrix_rate);
  }
  int widest = 1;
  for (const Access& access : leaf.accesses) widest = std::max(widest, access.bytes);
  const double work = s.cycles * b.depth, bytes = (b.rows + b.lanes) * b.depth * widest;
  s.stages = cost::copy_stages(m, bytes, work, static_cast<double>(m.shared_bytes));
  s.waiting = (kBarriers + std::max(0.0, m.memory_latency / kGroups - (s.stages - 1) * work)) / b.depth;
  return s;
}

int stages(const Machine& m, const Analysis& a, const Record& r) {
  for (const Leaf& leaf : a.leaves) {
    const Block b = block_of(r, leaf);
    if (leaf.product && b.depth > 1 && m.has_groups()) return group_step(m, a, r, leaf, b.rows * b.lanes / m.group_lanes).stages;
  }
  return 1;
}

}  // namespace weft::schedule
