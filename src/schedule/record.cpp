#include <fmt/format.h>

#include "schedule/schedule.h"

namespace weft::schedule {

bool operator==(const Record& a, const Record& b) {
  const auto same = [](const LoopPlan& x, const LoopPlan& y) {
    return x.axis == y.axis && x.tile == y.tile && x.grid == y.grid && x.block == y.block && x.unrolled == y.unrolled &&
           x.apart == y.apart && x.masked == y.masked && x.in_word == y.in_word && x.depth == y.depth;
  };
  return std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(), same) &&
         a.grid_order == b.grid_order && a.maps == b.maps;
}

std::string print(const Record& record) {
  std::string s;
  for (std::size_t i = 0; i < record.loops.size(); ++i) {
    const LoopPlan& p = record.loops[i];
    if (p.axis < 0 && !p.grid && !p.unrolled && !p.in_word && p.depth == 1) continue;
    s += fmt::format("{}i{}", s.empty() ? "" : ", ", i);
    if (p.axis >= 0) s += fmt::format(" {} {}", p.axis == 0 ? "rows" : "lanes", p.tile);
    if (p.grid) s += fmt::format(" grid by {}", p.block);
    if (p.unrolled) s += " unrolled";
    if (p.apart) s += " finished apart";
    if (p.masked) s += " masked";
    if (p.in_word) s += " in a word";
    if (p.depth > 1) s += fmt::format(" {} deep", p.depth);
  }
  if (record.grid_order.size() > 1) {
    s += "; order";
    for (loop::LoopId id : record.grid_order) s += fmt::format(" i{}", id);
  }
  for (std::size_t i = 0; i < record.maps.size(); ++i) {
    const auto& m = record.maps[i];
    if (m.panel > 0)
      s += fmt::format("; p{} in panels of {} along axis {}", i, m.panel, m.panel_axis);
    if (m.inner >= 0) s += fmt::format(" with axis {} inside", m.inner);
    if (!m.order.empty()) s += fmt::format("; p{} ordered {}", i, fmt::join(m.order, " "));
  }
  return s.empty() ? "serial" : s;
}

Dim grid_blocks(const loop::Group& group, const Record& record, loop::LoopId id) {
  const LoopPlan& p = record.loops[id];
  return ceil_div(group.loops[id].extent, Dim((p.axis >= 0 ? p.tile : 1) * p.block));
}

Dim grid_size(const loop::Group& group, const Record& record) {
  Dim n = 1;
  for (loop::LoopId id : record.grid_order) n = n * grid_blocks(group, record, id);
  return n;
}

}  // namespace weft::schedule
