#include "schedule/unit.h"

#include <algorithm>
#include <cmath>

namespace weft::schedule {

using loop::LoopKind;

bool has_unit(const Machine& m, const Leaf& product) {
  return product.word == 4 ? m.has_amx_int8 : product.word == 2 && m.has_amx_bf16;
}

LoopId unit_loop(const Analysis& a, const Leaf& product) {
  if (product.loops.size() < 2) return -1;
  const LoopId l = product.loops[product.loops.size() - 2];
  const loop::Loop& words = a.group.loops[l];
  if (words.kind != LoopKind::Reduce || !words.extent.is_const()) return -1;
  if (words.extent.value() == 0 || words.extent.value() % kTileWords != 0) return -1;
  const bool alone = std::all_of(a.leaves.begin(), a.leaves.end(), [&](const Leaf& x) { return x.product || !a.encloses(l, x); });
  return alone ? l : -1;
}

std::vector<RegisterTile> unit_tiles(double rows, double lanes) {
  constexpr RegisterTile kShapes[] = {{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}};
  std::vector<std::pair<double, RegisterTile>> rated;
  for (const RegisterTile& s : kShapes) {
    const RegisterTile t{s.rows * kTileRows, s.lanes * kTileRows};
    const double useful = rows / (std::ceil(rows / t.rows) * t.rows) * (lanes / (std::ceil(lanes / t.lanes) * t.lanes));
    const double products = s.rows * s.lanes, cycles = std::max(products * kUnitCycles, kUnitLatency);
    rated.emplace_back(useful * products / std::max(cycles, (s.rows + s.lanes) * kUnitLoad), t);
  }
  std::stable_sort(rated.begin(), rated.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<RegisterTile> tiles;
  for (const auto& [rate, tile] : rated) tiles.push_back(tile);
  return tiles;
}

bool on_unit(const Record& r, const Leaf& leaf) {
  const std::size_t n = leaf.loops.size();
  return leaf.product && n >= 2 && r.loops[leaf.loops[n - 1]].in_word && r.loops[leaf.loops[n - 2]].depth > 1;
}

}  // namespace weft::schedule
