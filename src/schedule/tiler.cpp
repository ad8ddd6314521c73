#include "schedule/tiler.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "loop/words.h"
#include "schedule/code.h"
#include "schedule/tiles.h"
#include "schedule/unit.h"
#include "schedule/warps.h"

namespace weft::schedule {

using loop::LoopKind;

namespace {

constexpr int kPartialSums = 8;
constexpr int kLongOperations = 10;
constexpr int kLeastDepth = 8, kDepth = 32;  // steps of a product whose operands a group of threads shares at once
constexpr double kThreadSums = 16, kThreadStaged = 48;  // of a thread: accumulators, elements of the operands on their way
constexpr int kRowsWithoutReuse = 4;    // rows of a tile where only loads are shared
constexpr double kUnrolledSteps = 32;       // of loops that are written out
constexpr double kFinishedOperations = 120;  // vector operations on a product's tile of sums that are written out
constexpr double kUnrolledOperations = 100;  // vector operations of such loops together

int element_bits(const Analysis& a, const Leaf& leaf) {
  int widest = 8;
  for (const Access& access : leaf.accesses)
    widest = std::max(widest, bits(a.group.params[access.param].dtype));
  return std::max(widest, bits(a.group.expr(leaf.stmt->value).dtype) >= 32 ? 32 : 8);
}

}  // namespace

Tiler::Tiler(const Analysis& a, const Machine& m) : a_(a), m_(m), g_(a.group), lanes_(choose_lanes(a, m)) {
  find_products();
}

LoopId Tiler::lane_of(const Leaf& leaf) const {
  for (LoopId l : leaf.loops) {
    if (lanes_[l]) return l;
  }
  return -1;
}

// The product with the most points, and, where several meet on chip, the others.
void Tiler::find_products() {
  const bool several = std::any_of(a_.homes.begin(), a_.homes.end(), [](const auto& home) { return !home.empty(); });
  for (const Leaf& leaf : a_.leaves) {
    if (!leaf.product || lane_of(leaf) < 0) continue;
    if (several) products_.push_back(product_of(leaf));
    if (!product_.leaf || leaf.points > product_.leaf->points) product_ = product_of(leaf);
  }
}

Product Tiler::product_of(const Leaf& leaf) const {
  const LoopId lane = lane_of(leaf);
  Product product{&leaf, lane, std::nullopt, {}, false};
  std::vector<LoopId> rows = row_choices(a_, leaf, lane);
  // Rows must not meet the lanes of any other statement on the same loop.
  rows.erase(std::remove_if(rows.begin(), rows.end(), [&](LoopId l) { return lanes_[l]; }), rows.end());
  if (rows.empty()) return product;
  product.rows = rows.front();
  product.outer = is_outer(leaf, rows.front(), lane);
  rows.erase(rows.begin());
  for (LoopId l : rows) {
    if (is_outer(leaf, l, lane)) product.others.push_back(l);
  }
  return product;
}

bool Tiler::is_outer(const Leaf& leaf, LoopId r, LoopId lane) const {
  return g_.loops[lane].kind == LoopKind::Parallel &&
         (leaf.lhs[r] ? !leaf.lhs[lane] && leaf.rhs[lane] : !leaf.rhs[lane] && leaf.lhs[lane]);
}

bool Tiler::has_panels() const {
  return product_.leaf && g_.loops[product_.lanes].kind == LoopKind::Parallel;
}

int Tiler::product_bits() const {
  if (m_.has_groups() && warp_unit_bits(m_, a_, *product_.leaf) > 0) return warp_unit_bits(m_, a_, *product_.leaf);
  return element_bits(a_, *product_.leaf);
}

Record Tiler::record(const Choice& c) const {
  Record r;
  r.loops.resize(g_.loops.size());
  r.maps.resize(g_.params.size());
  for (std::size_t l = 0; l < g_.loops.size(); ++l) {
    if (lanes_[l]) plan_lanes(r.loops[l], static_cast<LoopId>(l), c);
  }
  if (product_.leaf) plan_product(r, c);
  for (const Product& product : products_) plan_other_product(r, product);
  turn(r);
  words(r);
  deepen(r);
  use_unit(r);
  split_sums(r);
  equal_accumulators(r);
  if (c.unroll) unroll(r);
  finish_apart(r, c);
  grid(r, c);
  if (c.masked || m_.has_groups()) mask(r);
  for (const auto& home : a_.homes) {
    for (LoopId l : home) {
      r.loops[l].masked = r.loops[l].grid && r.loops[l].axis >= 0;
      r.loops[l].apart = false;  // each row has memory of its own, in tiles
    }
  }
  return r;
}

// Rows of a product beside the largest one; where both run over the same lanes, those stay.
void Tiler::plan_other_product(Record& r, const Product& product) const {
  if (product.leaf == product_.leaf || !product.rows) return;
  for (LoopId l : product.leaf->loops) {
    if (r.loops[l].axis == 0) return;
  }
  const double rows = most(*product.rows);
  if (!product.outer) {
    const int t = balanced(rows, kRowsWithoutReuse);
    if (t > 1) r.loops[*product.rows] = {0, t, false, 1};
    return;
  }
  LoopPlan& lanes = r.loops[product.lanes];
  const int fixed = product.lanes == product_.lanes ? lanes.tile : 0;
  const RegisterTile t =
      product_tiles(m_, element_bits(a_, *product.leaf), rows, a_.extents[product.lanes], fixed, kMostRows, 1).front();
  lanes.tile = t.lanes;
  if (t.rows > 1) r.loops[*product.rows] = {0, t.rows, false, 1};
}

// The greatest extent of a loop, where that is known; else the likely one.
double Tiler::most(LoopId l) const {
  constexpr std::int64_t kSmall = 4096;
  const SymbolRange range = a_.facts.range(g_.loops[l].extent);
  return range.hi <= kSmall ? static_cast<double>(std::max<std::int64_t>(range.hi, 1)) : a_.extents[l];
}

// What lies in memory along another loop than the one that runs over lanes is accessed in squares of both.
void Tiler::turn(Record& r) const {
  for (const Leaf& leaf : a_.leaves) {
    const LoopId lane = lane_of(leaf);
    if (leaf.product || lane < 0) continue;
    const int square = m_.has_groups() ? m_.warp_threads : std::max(1, m_.lanes(element_bits(a_, leaf)));
    for (const Access& access : leaf.accesses) {
      if (access.strides[lane] != Stride::Other || r.loops[lane].tile % square != 0) continue;
      for (LoopId l : leaf.loops) {
        const bool free = std::none_of(leaf.loops.begin(), leaf.loops.end(), [&](LoopId x) { return r.loops[x].axis == 0; });
        if (!free || most(l) < square || !turns(a_, leaf, access, l)) continue;
        r.loops[l] = {0, square, false, 1};
        if (m_.has_groups()) r.loops[lane].tile = square;
      }
    }
  }
}

void Tiler::plan_lanes(LoopPlan& plan, LoopId l, const Choice& c) const {
  int widest = 8;
  for (const Leaf& leaf : a_.leaves) {
    if (a_.encloses(l, leaf)) widest = std::max(widest, element_bits(a_, leaf));
  }
  constexpr int kReduceVectors = 4;  // partial sums: their number decides the order of the sum
  plan.axis = 1;
  plan.tile = lane_tile(m_, widest, a_.extents[l], g_.loops[l].kind == LoopKind::Reduce ? kReduceVectors : c.vectors);
}

void Tiler::plan_product(Record& r, const Choice& c) const {
  LoopPlan& lanes = r.loops[product_.lanes];
  if (!has_panels()) {
    lanes.tile = lane_tile(m_, product_bits(), a_.extents[product_.lanes], product_.rows ? 1 : 4);
  } else {
    lanes.tile = c.lane_tile;
    if (c.rows && c.row_tile > 1) {
      r.loops[*c.rows].axis = 0;
      r.loops[*c.rows].tile = c.row_tile;
    }
    pack(r, c.lane_tile);
  }
  if (!product_.rows || product_.outer) return;
  const int t = balanced(a_.extents[*product_.rows], kRowsWithoutReuse);
  if (t > 1) r.loops[*product_.rows] = {0, t, false, 1};
}

// What the product's terms read that is the same for all lanes, each place once.
std::vector<const Access*> Tiler::read_by_rows() const {
  std::vector<const Access*> found;
  for (const Leaf* term : a_.terms(*product_.leaf)) {
    for (const Access& access : term->accesses) {
      const auto same = [&](const Access* other) { return other->param == access.param && other->at == access.at; };
      if (access.strides[product_.lanes] == Stride::None && std::none_of(found.begin(), found.end(), same)) found.push_back(&access);
    }
  }
  return found;
}

int Tiler::most_rows(LoopId rows) const {
  if (m_.has_groups()) return kGroupVector;
  int most = kMostRows;
  const std::vector<const Access*> operands = read_by_rows();
  for (const Access* access : operands) {
    if (access->strides[rows] == Stride::None) continue;
    const Dim stride = loop::address(g_, access->param, access->at).coefficient(rows);
    if (!stride.is_const() || stride.is(0)) continue;
    const std::int64_t bytes = std::abs(stride.value()) * access->bytes;
    most = std::min(most, std::max(1, cached_rows(m_, bytes) / static_cast<int>(operands.size())));
  }
  return most;
}

// Products in words: one operand is a word of each row, the other has a word in each lane.
void Tiler::words(Record& r) const {
  if (m_.has_groups()) return;
  for (const Leaf& leaf : a_.leaves) {
    if (leaf.word == 0) continue;
    const LoopId word = leaf.loops.back();
    r.loops[word].in_word = std::all_of(a_.leaves.begin(), a_.leaves.end(), [&](const Leaf& x) {
      return !a_.encloses(word, x) || (x.loops.back() == word && takes_words(r, x));
    });
  }
}

bool Tiler::takes_words(const Record& r, const Leaf& leaf) const {
  const LoopId lane = lane_of(leaf);
  if (leaf.word == 0 || lane < 0 || g_.loops[lane].kind != LoopKind::Parallel || leaf.lhs[lane] == leaf.rhs[lane]) return false;
  const std::vector<bool>& in_lanes = leaf.lhs[lane] ? leaf.lhs : leaf.rhs;
  const bool rows_apart = std::all_of(leaf.loops.begin(), leaf.loops.end(), [&](LoopId l) {
    return r.loops[l].axis != 0 || (g_.loops[l].kind == LoopKind::Parallel && !in_lanes[l]);
  });
  return rows_apart && words_lie_ready(r, leaf, lane);
}

// Groups of threads read the operands of several steps at once, and share them: the innermost long loop of those that
// the product alone is summed over.
void Tiler::deepen(Record& r) const {
  if (!m_.has_groups() || !product_.leaf || !product_.outer || !products_.empty()) return;
  const Leaf& leaf = *product_.leaf;
  const std::vector<const Leaf*> terms = a_.terms(leaf);
  if (std::any_of(terms.begin(), terms.end(), [&](const Leaf* term) { return !takes_depth(r, *term); })) return;
  double rows = 1, lanes = r.loops[product_.lanes].tile;
  for (LoopId l : leaf.loops) {
    if (r.loops[l].axis == 0) rows = r.loops[l].tile;
  }
  const double threads = std::clamp<double>(rows * lanes / kThreadSums, m_.warp_threads, m_.group_threads);
  for (std::size_t i = leaf.loops.size(); i-- > 0;) {
    const LoopId l = leaf.loops[i];
    if (g_.loops[l].kind != LoopKind::Reduce || r.loops[l].axis >= 0) break;
    const bool alone = std::all_of(a_.leaves.begin(), a_.leaves.end(), [&](const Leaf& x) {
      return !a_.encloses(l, x) || std::find(terms.begin(), terms.end(), &x) != terms.end();
    });
    if (!alone) break;
    if (a_.extents[l] < kLeastDepth) continue;
    int depth = static_cast<int>(std::min<double>(kDepth, std::bit_floor(static_cast<unsigned>(a_.extents[l]))));
    const Dim& extent = g_.loops[l].extent;
    while (depth > kLeastDepth && extent.is_const() && extent.value() % depth != 0) depth /= 2;
    while (depth > kLeastDepth && depth * (rows + lanes) * static_cast<double>(terms.size()) > kThreadStaged * threads) depth /= 2;
    r.loops[l].depth = depth;
    return;
  }
}

bool Tiler::fits_unit() const {
  return outer() && products_.empty() && !m_.has_groups() && has_unit(m_, *product_.leaf) && unit_loop(a_, *product_.leaf) >= 0;
}

// Tiles of sums that the matrix unit takes, of words: a step of its loop is a tile of each operand.
void Tiler::use_unit(Record& r) const {
  if (!fits_unit() || !r.loops[product_.leaf->loops.back()].in_word) return;
  int rows = 1;
  for (LoopId l : product_.leaf->loops) {
    if (r.loops[l].axis == 0) rows = r.loops[l].tile;
  }
  const int lanes = r.loops[product_.lanes].tile, products = rows / kTileRows * (lanes / kTileRows);
  const bool whole = rows % kTileRows == 0 && lanes % kTileRows == 0;
  if (whole && products + (rows + lanes) / kTileRows <= kTileRegisters) r.loops[unit_loop(a_, *product_.leaf)].depth = kTileWords;
}

// Whether a product's operands are a tile with the rows and one with the lanes.
bool Tiler::takes_depth(const Record& r, const Leaf& leaf) const {
  const LoopId lane = lane_of(leaf);
  if (leaf.lhs[lane] == leaf.rhs[lane]) return false;
  const std::vector<bool>&in_lanes = leaf.lhs[lane] ? leaf.lhs : leaf.rhs, &in_rows = leaf.lhs[lane] ? leaf.rhs : leaf.lhs;
  return std::all_of(leaf.loops.begin(), leaf.loops.end(), [&](LoopId l) {
    if (r.loops[l].axis == 0) return g_.loops[l].kind == LoopKind::Parallel && !in_lanes[l];
    return r.loops[l].axis != 1 || !in_rows[l];
  });
}

bool Tiler::fits_on_chip(const Record& r) const {
  if (!m_.has_groups()) return true;
  double bytes = 0;
  for (std::size_t p = 0; p < g_.params.size(); ++p) {
    if (g_.params[p].role != loop::Role::OnChip) continue;
    double elements = a_.likely(loop::storage_elements(g_.params[p].shape, r.maps[p]));
    for (LoopId l : a_.homes[p]) elements *= r.loops[l].axis >= 0 ? r.loops[l].tile : 1;
    bytes += elements * std::max(1, bits(g_.params[p].dtype) / 8);
  }
  for (const Leaf& leaf : a_.leaves) {
    double sides = 0, depth = 1;
    for (LoopId l : leaf.loops) {
      if (r.loops[l].axis >= 0) sides += std::bit_ceil(static_cast<unsigned>(r.loops[l].tile));
      depth = std::max<double>(depth, r.loops[l].depth);
    }
    if (depth > 1) bytes += sides * depth * element_bits(a_, leaf) / 8;
  }
  return bytes <= static_cast<double>(m_.shared_bytes);
}

// Whether the operand that runs over the lanes has the steps of a word of each lane side by side.
bool Tiler::words_lie_ready(const Record& r, const Leaf& leaf, LoopId lane) const {
  for (const Access& access : leaf.accesses) {
    if (access.strides[lane] == Stride::None) continue;
    if (r.maps[access.param].panel > 0) return r.maps[access.param].inner >= 0;
    const loop::Affine address = loop::address(g_, access.param, access.at);
    return address.valid && address.coefficient(leaf.loops.back()).is(1) && address.coefficient(lane).is(leaf.word);
  }
  return false;
}

// Panels as wide as the tile for a constant operand that runs over the lanes; inside, the reduce
// loops in their order.
void Tiler::pack(Record& r, int panel) const {
  for (const Leaf* term : a_.terms(*product_.leaf)) {
    for (const Access& access : term->accesses) pack(r, panel, access);
  }
}

void Tiler::pack(Record& r, int panel, const Access& access) const {
  loop::StorageMap& map = r.maps[access.param];
  if (map.panel > 0 || access.strides[product_.lanes] == Stride::None || !packable(a_, access, product_.lanes)) return;
  std::vector<std::pair<std::size_t, int>> order;  // depth of the coordinate's loop, axis
  for (std::size_t i = 0; i < access.at.size(); ++i) {
    const loop::Expr& e = g_.expr(access.at[i]);
    if (e.op == loop::Op::Index && e.id == product_.lanes) {
      map.panel_axis = static_cast<int>(i);
      continue;
    }
    const auto& loops = product_.leaf->loops;
    if (product_.leaf->word > 0 && e.op == loop::Op::Index && e.id == loops.back()) map.inner = static_cast<int>(i);
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

// Whether what is summed takes so many operations, and registers, that the latency of few sums does not show.
bool Tiler::holds_long_code(LoopId l) const {
  return std::any_of(a_.leaves.begin(), a_.leaves.end(), [&](const Leaf& leaf) {
    return !leaf.product && leaf.operations >= kLongOperations && a_.encloses(l, leaf);
  });
}

// A long sum under lanes of its own runs in several partial sums: they hide the addition's latency, and each rounds
// less often.
void Tiler::split_sums(Record& r) const {
  for (const Leaf& leaf : a_.leaves) {
    const LoopId lane = lane_of(leaf);
    if (leaf.stmt->kind != Stmt::Kind::Update || leaf.product || lane < 0 || leaf.loops.empty()) continue;
    const LoopId inner = leaf.loops.back();
    const bool free = std::none_of(leaf.loops.begin(), leaf.loops.end(), [&](LoopId l) { return r.loops[l].axis == 0; });
    if (inner == lane || g_.loops[inner].kind != LoopKind::Reduce || !free || !tileable(a_, inner)) continue;
    if (a_.extents[inner] < 4 * kPartialSums) continue;
    r.loops[inner].axis = 0;
    r.loops[inner].tile = kPartialSums;
    if (product_.leaf && lane == product_.lanes) {  // whose lanes are settled
      const int wide = std::max(1, r.loops[lane].tile / std::max(1, m_.lanes(element_bits(a_, leaf))));
      const int most = holds_long_code(inner) ? kPartialSums / 2 : kPartialSums;
      r.loops[inner].tile = std::clamp(m_.vector_registers / 2 / wide, 1, most);
      continue;
    }
    const int vectors = std::max(1, m_.vector_registers / 2 / kPartialSums);
    r.loops[lane].tile = std::min(r.loops[lane].tile, lane_tile(m_, element_bits(a_, leaf), a_.extents[lane], vectors));
  }
}

// All loops over lanes that one local is reduced over take the same tile.
void Tiler::equal_accumulators(Record& r) const {
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
void Tiler::unroll(Record& r) const {
  for (const Leaf& leaf : a_.leaves) {
    if (leaf.stmt->kind != Stmt::Kind::Update) continue;
    const int lanes = std::max(1, m_.vector_bits / element_bits(a_, leaf));
    const bool in_word = !leaf.loops.empty() && r.loops[leaf.loops.back()].in_word;
    const double terms = leaf.product ? static_cast<double>(a_.terms(leaf).size()) : 1;
    double vectors = in_word ? terms : terms * static_cast<double>(leaf.operations), steps = 1;
    for (LoopId l : leaf.loops) {
      if (r.loops[l].axis >= 0) vectors *= r.loops[l].axis == 1 ? std::ceil(1.0 * r.loops[l].tile / lanes) : r.loops[l].tile;
    }
    for (std::size_t i = leaf.loops.size(); i-- > 0;) {
      const LoopId l = leaf.loops[i];
      if (r.loops[l].in_word) continue;
      if (r.loops[l].depth > 1) break;
      if (g_.loops[l].kind != LoopKind::Reduce || r.loops[l].axis >= 0 || !g_.loops[l].extent.is_const()) break;
      steps *= a_.extents[l];
      if (steps > kUnrolledSteps || steps * vectors > kUnrolledOperations * (leaf.product ? 2 : 1)) break;
      r.loops[l].unrolled = true;
    }
  }
}

// An activation on a tile of sums is long code when it is written out for each vector, once for whole tiles and once for
// those that are cut off. Sums that pass through on-chip memory cost less than that takes to compile.
void Tiler::finish_apart(Record& r, const Choice& c) const {
  if (!product_.leaf || m_.has_groups()) return;
  for (LoopId l : product_.leaf->loops) {
    if (r.loops[l].axis != 0 || g_.loops[l].kind != LoopKind::Parallel) continue;
    double operations = 0;
    for (const Leaf& leaf : a_.leaves) {
      if (leaf.stmt->kind != Stmt::Kind::Store || !a_.encloses(l, leaf)) continue;
      const int lanes = std::max(1, m_.vector_bits / element_bits(a_, leaf));
      const LoopId lane = lane_of(leaf);
      const double vectors = lane < 0 ? 1 : std::ceil(1.0 * r.loops[lane].tile / lanes);
      operations += static_cast<double>(leaf.operations) * vectors * r.loops[l].tile;
    }
    r.loops[l].apart = c.apart || operations > (on_unit(r, *product_.leaf) ? 0 : kFinishedOperations);
  }
}

void Tiler::mask(Record& r) const {
  for (std::size_t l = 0; l < g_.loops.size(); ++l) {
    const bool parallel = g_.loops[l].kind == LoopKind::Parallel;
    r.loops[l].masked = parallel && has_tail(g_, r, static_cast<LoopId>(l));
  }
}

double Tiler::steps(const Record& r, LoopId l) const {
  return std::ceil(a_.extents[l] / r.loops[l].tile);
}

// Whether the steps of a loop read the same panel of the operand that runs over the lanes.
bool Tiler::reuses_panel(LoopId l) const {
  if (!product_.rows || !product_.outer) return false;
  const Leaf& leaf = *product_.leaf;
  return !(leaf.lhs[product_.lanes] ? leaf.lhs[l] : leaf.rhs[l]);
}

// All rows pass by one panel before the next one comes: it stays in the second-level cache.
std::vector<LoopId> Tiler::grid_order() const {
  std::vector<LoopId> order = a_.chain;
  std::stable_partition(order.begin(), order.end(), [&](LoopId l) { return !reuses_panel(l); });
  return order;
}

// How many row steps fill half of the second-level cache.
double Tiler::cached_row_steps(const Record& r, const Choice& c) const {
  if (!outer() || !c.rows) return 1;
  const Leaf& leaf = *product_.leaf;
  const std::vector<bool>& on = leaf.lhs[product_.lanes] ? leaf.rhs : leaf.lhs;
  double element = 0;
  for (const Access* access : read_by_rows()) element += access->bytes;
  double bytes = r.loops[*c.rows].tile * std::max(element, leaf.word > 0 ? 4.0 / leaf.word : 4.0);
  for (LoopId l : leaf.loops) {
    if (on[l] && g_.loops[l].kind == LoopKind::Reduce) bytes *= a_.extents[l];
  }
  return std::max(1.0, static_cast<double>(m_.l2_bytes) / 2 / bytes);
}

// Sizes that are not known may be small: programs are made for the least, more of them come with more work.
double Tiler::known_work(const Record& r) const {
  double total = 1, least = 1;
  for (LoopId l : a_.chain) {
    total *= steps(r, l);
    least *= std::max(1.0, std::ceil(a_.least(g_.loops[l].extent) / r.loops[l].tile));
  }
  return std::max(1.0, a_.total_work / total) * least;
}

void Tiler::grid(Record& r, const Choice& c) const {
  const std::vector<LoopId> order = grid_order();
  const double cached = cached_row_steps(r, c);
  double total = 1;
  for (LoopId l : order) total *= steps(r, l);
  const double step_work = std::max(1.0, a_.total_work / total);
  double rest = std::max(1.0, c.program_work / step_work);  // steps that one program runs
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

std::string Tiler::kind(const Record& r) const {
  if (product_.leaf && on_unit(r, *product_.leaf)) return "product on the matrix unit";
  if (product_.leaf) return product_.outer ? "product in register tiles" : "product";
  return std::count(lanes_.begin(), lanes_.end(), true) > 0 ? "vectors along contiguous data" : "scalar";
}

}  // namespace weft::schedule
