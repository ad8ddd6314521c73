#include "schedule/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/knobs.h"
#include "schedule/tiles.h"

namespace weft::schedule {
namespace {

constexpr std::int64_t kFewestKeys = 32;  // of a block: what is done once per block must not show
constexpr int kLaneVectors = 2;           // of a tile of query rows
constexpr std::int64_t kLeastPart = 16, kMostPart = 48;  // keys that are left out at once: a tile or two of a product's rows

// Keys of the equal parts of a block, about as many as a tile has of queries; 0: there are none.
std::int64_t part_of(std::int64_t block) {
  std::int64_t best = 0;
  for (std::int64_t part = kLeastPart; part <= std::min(kMostPart, block / 2); ++part) {
    if (block % part == 0 && std::abs(part - kFewestKeys) < std::abs(best - kFewestKeys)) best = part;
  }
  return best;
}

}  // namespace

loop::AttentionPlan attention_plan(const loop::AttentionShape& s, const Machine& m) {
  if (m.has_groups()) {
    constexpr std::int64_t kGroupLanes = 64;  // of a tile of query rows: they share the scores
    std::int64_t block = std::max<std::int64_t>(kFewestKeys, m.shared_bytes / 2 / (kGroupLanes * 4) / kFewestKeys * kFewestKeys);
    if (s.keys_known) block = std::clamp<std::int64_t>(static_cast<std::int64_t>(s.keys), 1, block);
    return {block, fmt::format("{} keys at a time, {} bytes of scores shared by a group", block, block * kGroupLanes * 4)};
  }
  // A block's scores, for one tile of query rows, take half of the first-level cache; the other half is for the query
  // and what passes by of keys and values.
  const auto row_bytes = static_cast<std::int64_t>(kLaneVectors) * m.vector_bits / 8;
  const std::int64_t most = std::max(kFewestKeys, m.l1_bytes / 2 / row_bytes);
  loop::AttentionPlan plan;
  plan.skips = plan.powers_of_two = true;
  if (s.keys_known && s.keys <= 2.0 * static_cast<double>(most)) {  // then all of the first-level cache
    plan.block = std::max<std::int64_t>(1, static_cast<std::int64_t>(s.keys));
    plan.why = fmt::format("all {} keys at a time", plan.block);
    return plan;
  }
  // Equal blocks, where the number of keys is known and has such a divisor: then none is left over.
  const auto keys = static_cast<std::int64_t>(s.keys);
  for (std::int64_t n = (keys + most - 1) / most; s.keys_known && n <= 2 * keys / most; ++n) {
    if (keys % n != 0) continue;
    plan.block = keys / n;
    plan.part = part_of(plan.block);
    plan.why = fmt::format("{} blocks of {} keys, {} bytes of scores on chip", n, plan.block, plan.block * row_bytes);
    return plan;
  }
  // Whole register tiles of keys.
  const RegisterTile tile =
      product_tiles(m, 32, static_cast<double>(most), kLaneVectors * m.lanes(32), 0, kMostRows, 1).front();
  plan.block = std::max<std::int64_t>(1, most / tile.rows) * tile.rows;
  plan.part = part_of(plan.block);
  plan.why = fmt::format("{} keys at a time, {} bytes of scores on chip", plan.block, plan.block * row_bytes);
  return plan;
}

loop::AttentionChooser attention_chooser(const Machine& machine) {
  const auto off = knob_names(Knob::FusionOff);
  if (std::find(off.begin(), off.end(), "attention") != off.end()) return {};
  return [machine](const loop::AttentionShape& shape) { return attention_plan(shape, machine); };
}

}  // namespace weft::schedule
