// schedule(): axes, tile sizes, storage maps, grid.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/cost.h"
#include "schedule/axes.h"
#include "schedule/schedule.h"
#include "schedule/tiles.h"

namespace weft::schedule {

using loop::LoopKind;

namespace {

constexpr int kPartialSums = 8;
constexpr double kProgramWork = 20000;  // operations that are worth a program of their own
constexpr int kProgramsPerCore = 8;     // more than cores, so that uneven programs even out
constexpr int kRowsWithoutReuse = 4;    // rows of a tile where only loads are shared
constexpr double kUnrolledSteps = 32;       // of loops that are written out
constexpr double kUnrolledOperations = 100;  // vector operations of such loops together

int element_bits(const Analysis& a, const Leaf& leaf) {
  int widest = 8;
  for (const Access& access : leaf.accesses)
    widest = std::max(widest, bits(a.group.params[access.param].dtype));
  return std::max(widest, bits(a.group.expr(leaf.stmt->value).dtype) >= 32 ? 32 : 8);
}

// The product with the most points that runs over chosen lanes.
struct Product {
  const Leaf* leaf = nullptr;
  LoopId lanes = -1;
  std::optional<LoopId> rows;
  std::vector<LoopId> others;  // that could run over rows too, the best first
  bool outer = false;  // one operand is a column, the other a row
};

class Tiler {
 public:
  Tiler(const Analysis& a, const Machine& m) : a_(a), m_(m), g_(a.group) {}

  Schedule run() {
    lanes_ = choose_lanes(a_, m_);
    find_product();
    Schedule s;
    int panel = 0;
    Variant any{std::nullopt, record(0, panel)};
    if (product_.rows && product_.outer && !g_.loops[*product_.rows].extent.is_const()) few_rows(s, panel);
    s.variants.push_back(std::move(any));
    s.modelled_us = modelled();
    s.why = why(s.variants.back().record);
    return s;
  }

 private:
  // Few rows, when their number is only known at run time: tiles as small as they are, or rows along another loop.
  void few_rows(Schedule& s, int panel) {
    const LoopId first = *product_.rows;
    const Dim rows = g_.loops[first].extent;
    const auto variant = [&](const Dim& size, std::int64_t lo, std::int64_t hi, double count) {
      const SymbolRange range = a_.facts.range(size);
      if (range.lo > hi || range.hi < lo) return;
      int same = panel;
      s.variants.push_back({Guard{size, lo, hi}, record(count, same)});
    };
    if (product_.others.empty()) {
      variant(rows, 1, 1, 1);
      variant(rows, 2, 6, 6);
      return;
    }
    const LoopId second = product_.others.front();
    variant(rows * g_.loops[second].extent, 1, 1, 1);
    product_.rows = second;
    variant(rows, 1, 3, 0);
    product_.rows = first;
  }

  LoopId lane_of(const Leaf& leaf) const {
    for (LoopId l : leaf.loops) {
      if (lanes_[l]) return l;
    }
    return -1;
  }

  void find_product() {
    for (const Leaf& leaf : a_.leaves) {
      const LoopId lane = lane_of(leaf);
      if (!leaf.product || lane < 0 || (product_.leaf && leaf.points <= product_.leaf->points))
        continue;
      product_ = {&leaf, lane, std::nullopt, {}, false};
      std::vector<LoopId> rows = row_choices(a_, leaf, lane);
      // Rows must not meet the lanes of any other statement on the same loop.
      rows.erase(std::remove_if(rows.begin(), rows.end(), [&](LoopId l) { return lanes_[l]; }), rows.end());
      if (rows.empty()) continue;
      product_.rows = rows.front();
      product_.outer = is_outer(leaf, rows.front(), lane);
      rows.erase(rows.begin());
      for (LoopId l : rows) {
        if (is_outer(leaf, l, lane)) product_.others.push_back(l);
      }
    }
  }

  bool is_outer(const Leaf& leaf, LoopId r, LoopId lane) const {
    return g_.loops[lane].kind == LoopKind::Parallel &&
           (leaf.lhs[r] ? !leaf.lhs[lane] && leaf.rhs[lane] : !leaf.rhs[lane] && leaf.lhs[lane]);
  }

  // A record for `rows` rows of the product (0: the likely number). `panel` fixes the lanes when it
  // is not 0.
  Record record(double rows, int& panel) {
    Record r;
    r.loops.resize(g_.loops.size());
    r.maps.resize(g_.params.size());
    for (std::size_t l = 0; l < g_.loops.size(); ++l) {
      if (lanes_[l]) plan_lanes(r.loops[l], static_cast<LoopId>(l));
    }
    if (product_.leaf) plan_product(r, rows, panel);
    split_sums(r);
    equal_accumulators(r);
    unroll(r);
    grid(r);
    return r;
  }

  void plan_lanes(LoopPlan& plan, LoopId l) const {
    int widest = 8, cheap = true;
    for (const Leaf& leaf : a_.leaves) {
      if (!a_.encloses(l, leaf)) continue;
      widest = std::max(widest, element_bits(a_, leaf));
      if (leaf.operations > 8) cheap = false;
    }
    const bool reduce = g_.loops[l].kind == LoopKind::Reduce;
    plan.axis = 1;
    plan.tile = lane_tile(m_, widest, a_.extents[l], reduce ? 4 : cheap ? 4 : 2);
  }

  void plan_product(Record& r, double rows, int& panel) const {
    const Leaf& leaf = *product_.leaf;
    const int width = element_bits(a_, leaf);
    LoopPlan& lanes = r.loops[product_.lanes];
    if (g_.loops[product_.lanes].kind == LoopKind::Reduce) {
      lanes.tile = lane_tile(m_, width, a_.extents[product_.lanes], product_.rows ? 1 : 4);
    } else {
      const double n = !product_.rows ? 1 : rows > 0 ? rows : a_.extents[*product_.rows];
      const RegisterTile t =
          product_tile(m_, width, n, a_.extents[product_.lanes], panel, most_rows());
      lanes.tile = panel = t.lanes;
      if (product_.rows && product_.outer && t.rows > 1) {
        r.loops[*product_.rows].axis = 0;
        r.loops[*product_.rows].tile = t.rows;
      }
      pack(r, t.lanes);
    }
    if (!product_.rows || product_.outer) return;
    const int t = balanced(a_.extents[*product_.rows], kRowsWithoutReuse);
    if (t > 1) r.loops[*product_.rows] = {0, t, false, 1};
  }

  // Rows of one tile whose elements the first-level cache holds while the lines are read.
  int most_rows() const {
    int most = kMostRows;
    if (!product_.rows || !product_.outer) return most;
    for (const Access& access : product_.leaf->accesses) {
      if (access.strides[*product_.rows] == Stride::None) continue;
      const Dim stride = loop::address(g_, access.param, access.at).coefficient(*product_.rows);
      if (!stride.is_const() || stride.is(0)) continue;
      const std::int64_t bytes = std::abs(stride.value()) * bits(g_.params[access.param].dtype) / 8;
      most = std::min(most, cached_rows(m_, bytes));
    }
    return most;
  }

  // Panels as wide as the tile for a constant operand that runs over the lanes; inside, the reduce
  // loops in their order.
  void pack(Record& r, int panel) const {
    for (const Access& access : product_.leaf->accesses) {
      if (access.strides[product_.lanes] == Stride::None || !packable(a_, access, product_.lanes))
        continue;
      loop::StorageMap& map = r.maps[access.param];
      std::vector<std::pair<std::size_t, int>> order;  // depth of the coordinate's loop, axis
      for (std::size_t i = 0; i < access.at.size(); ++i) {
        const loop::Expr& e = g_.expr(access.at[i]);
        if (e.op == loop::Op::Index && e.id == product_.lanes) {
          map.panel_axis = static_cast<int>(i);
          continue;
        }
        const auto& loops = product_.leaf->loops;
        const std::size_t depth =
            e.op == loop::Op::Index
                ? std::find(loops.begin(), loops.end(), e.id) - loops.begin() + 1
                : 0;
        order.emplace_back(depth, static_cast<int>(i));
      }
      std::stable_sort(order.begin(), order.end(),
                       [](const auto& x, const auto& y) { return x.first < y.first; });
      for (const auto& [depth, axis] : order) map.order.push_back(axis);
      map.order.push_back(map.panel_axis);
      map.panel = panel;
    }
  }

  // A long sum under lanes of its own runs in several partial sums: they hide the addition's latency, and each rounds
  // less often.
  void split_sums(Record& r) const {
    for (const Leaf& leaf : a_.leaves) {
      const LoopId lane = lane_of(leaf);
      if (leaf.stmt->kind != Stmt::Kind::Update || leaf.product || lane < 0 || leaf.loops.empty()) continue;
      const LoopId inner = leaf.loops.back();
      const bool free = std::none_of(leaf.loops.begin(), leaf.loops.end(), [&](LoopId l) { return r.loops[l].axis == 0; });
      if (inner == lane || g_.loops[inner].kind != LoopKind::Reduce || !free || !tileable(a_, inner)) continue;
      if (a_.extents[inner] < 4 * kPartialSums) continue;
      r.loops[inner].axis = 0;
      r.loops[inner].tile = kPartialSums;
      const int vectors = std::max(1, m_.vector_registers / 2 / kPartialSums);
      r.loops[lane].tile = std::min(r.loops[lane].tile, lane_tile(m_, element_bits(a_, leaf), a_.extents[lane], vectors));
    }
  }

  // All loops over lanes that one local is reduced over take the same tile.
  void equal_accumulators(Record& r) const {
    for (const Leaf& a : a_.leaves) {
      for (const Leaf& b : a_.leaves) {
        const LoopId x = lane_of(a), y = lane_of(b);
        const bool both = a.stmt->kind == Stmt::Kind::Update &&
                          b.stmt->kind == Stmt::Kind::Update && a.stmt->id == b.stmt->id &&
                          x >= 0 && y >= 0 && x != y;
        if (both) r.loops[x].tile = r.loops[y].tile = std::max(r.loops[x].tile, r.loops[y].tile);
      }
    }
  }

  // Short reductions are written out, from the inside: their addresses become constants, and what neighbouring outputs
  // of a window share is loaded once.
  void unroll(Record& r) const {
    for (const Leaf& leaf : a_.leaves) {
      if (leaf.stmt->kind != Stmt::Kind::Update) continue;
      const int lanes = std::max(1, m_.vector_bits / element_bits(a_, leaf));
      double vectors = static_cast<double>(leaf.operations), steps = 1;
      for (LoopId l : leaf.loops) {
        if (r.loops[l].axis >= 0) vectors *= r.loops[l].axis == 1 ? std::ceil(1.0 * r.loops[l].tile / lanes) : r.loops[l].tile;
      }
      for (std::size_t i = leaf.loops.size(); i-- > 0;) {
        const LoopId l = leaf.loops[i];
        if (g_.loops[l].kind != LoopKind::Reduce || r.loops[l].axis >= 0 || !g_.loops[l].extent.is_const()) break;
        steps *= a_.extents[l];
        if (steps > kUnrolledSteps || steps * vectors > kUnrolledOperations * (leaf.product ? 2 : 1)) break;
        r.loops[l].unrolled = true;
      }
    }
  }

  double steps(const Record& r, LoopId l) const {
    return std::ceil(a_.extents[l] / r.loops[l].tile);
  }

  // Whether the steps of a loop read the same panel of the operand that runs over the lanes.
  bool reuses_panel(LoopId l) const {
    if (!product_.rows || !product_.outer) return false;
    const Leaf& leaf = *product_.leaf;
    return !(leaf.lhs[product_.lanes] ? leaf.lhs[l] : leaf.rhs[l]);
  }

  // All rows pass by one panel before the next one comes: it stays in the second-level cache.
  std::vector<LoopId> grid_order() const {
    std::vector<LoopId> order = a_.chain;
    std::stable_partition(order.begin(), order.end(), [&](LoopId l) { return !reuses_panel(l); });
    return order;
  }

  // How many row steps fill half of the second-level cache.
  double cached_row_steps(const Record& r) const {
    if (!product_.rows || !product_.outer) return 1;
    const Leaf& leaf = *product_.leaf;
    const std::vector<bool>& on = leaf.lhs[product_.lanes] ? leaf.rhs : leaf.lhs;
    double bytes = r.loops[*product_.rows].tile * 4.0;
    for (LoopId l : leaf.loops) {
      if (on[l] && g_.loops[l].kind == LoopKind::Reduce) bytes *= a_.extents[l];
    }
    return std::max(1.0, static_cast<double>(m_.l2_bytes) / 2 / bytes);
  }

  void grid(Record& r) const {
    const std::vector<LoopId> order = grid_order();
    const double cached = cached_row_steps(r);
    // Sizes that are not known may be small: programs are made for the least, more of them come
    // with more work.
    double total = 1, least = 1;
    for (LoopId l : order) {
      total *= steps(r, l);
      least *= std::max(1.0, std::ceil(a_.least(g_.loops[l].extent) / r.loops[l].tile));
    }
    const double step_work = std::max(1.0, a_.total_work / total);
    const double program_work =
        std::max(kProgramWork, step_work * least / (kProgramsPerCore * m_.cores));
    double rest = std::max(1.0, program_work / step_work);  // steps that one program runs
    double row_steps = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      LoopPlan& plan = r.loops[order[i]];
      double most = std::floor(rest);
      if (reuses_panel(order[i])) most = std::min(most, std::floor(cached / row_steps));
      most = std::max(most, 1.0);
      if (g_.loops[order[i]].extent.is_const()) {  // equal blocks
        const double n = steps(r, order[i]);
        most = std::ceil(n / std::ceil(n / std::min(most, n)));
      }
      plan.grid = true;
      plan.block = static_cast<std::int64_t>(most);
      plan.block = std::max<std::int64_t>(plan.block, 1);
      rest = std::max(1.0, rest / static_cast<double>(plan.block));
      if (reuses_panel(order[i])) row_steps *= static_cast<double>(plan.block);
    }
    r.grid_order = order;
  }

  double modelled() const {
    const auto cost = cost::group_cost(g_);
    const double bytes = a_.likely(cost.bytes_compulsory);
    const double rate =
        m_.ghz * 1e3 * (product_.leaf ? 4.0 : 1.0) * m_.f32_lanes();  // operations per microsecond
    return std::max(a_.total_work / (rate * m_.cores), bytes / (m_.dram_gbytes * 1e3));
  }

  std::string why(const Record& r) const {
    std::string s = product_.leaf && product_.outer ? "product in register tiles"
                    : product_.leaf                 ? "product"
                    : std::count(lanes_.begin(), lanes_.end(), true) > 0
                        ? "vectors along contiguous data"
                        : "scalar";
    return fmt::format("{}: {}", s, print(r));
  }

  const Analysis& a_;
  const Machine& m_;
  const loop::Group& g_;
  std::vector<bool> lanes_;
  Product product_;
};

}  // namespace

Schedule schedule(const loop::Group& group, const Machine& machine, const DimFacts& facts) {
  const Analysis analysis(group, facts);
  return Tiler(analysis, machine).run();
}

}  // namespace weft::schedule
