#include <algorithm>

#include "ssa/function.h"

namespace weft::ssa {
namespace {

void count_uses(const Block& block, std::vector<int>& uses) {
  for (const Inst& inst : block.insts) {
    for (ValueId v : inst.operands) ++uses[v];
    for (const Block& region : inst.regions) count_uses(region, uses);
  }
  for (ValueId v : block.yields) ++uses[v];
}

bool pure(const Function& f, const Inst& inst) {
  if (inst.regions.empty()) return f.info(inst).pure;
  return std::all_of(inst.regions.begin(), inst.regions.end(), [&](const Block& region) {
    return std::all_of(region.insts.begin(), region.insts.end(),
                       [&](const Inst& i) { return pure(f, i); });
  });
}

void release(const Block& block, std::vector<int>& uses) {
  for (const Inst& inst : block.insts) {
    for (ValueId v : inst.operands) --uses[v];
    for (const Block& region : inst.regions) release(region, uses);
  }
  for (ValueId v : block.yields) --uses[v];
}

// Backwards, so that a dead instruction frees its operands before they are looked at.
void sweep(const Function& f, Block& block, std::vector<int>& uses) {
  std::vector<Inst> kept;
  for (auto it = block.insts.rbegin(); it != block.insts.rend(); ++it) {
    const bool unused = std::all_of(it->results.begin(), it->results.end(),
                                    [&](ValueId v) { return uses[v] == 0; });
    if (unused && pure(f, *it)) {
      for (ValueId v : it->operands) --uses[v];
      for (const Block& region : it->regions) release(region, uses);
      continue;
    }
    for (Block& region : it->regions) sweep(f, region, uses);
    kept.push_back(std::move(*it));
  }
  std::reverse(kept.begin(), kept.end());
  block.insts = std::move(kept);
}

}  // namespace

void eliminate_dead(Function& function) {
  std::vector<int> uses(function.types.size(), 0);
  count_uses(function.body, uses);
  sweep(function, function.body, uses);
}

}  // namespace weft::ssa
