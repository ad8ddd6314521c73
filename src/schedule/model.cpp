#include "schedule/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/code.h"
#include "schedule/tiles.h"
#include "schedule/unit.h"
#include "schedule/warps.h"

namespace weft::schedule {

using loop::LoopKind;

namespace {

constexpr double kIssued = 4;         // instructions a cycle
constexpr double kLoopInstructions = 3;  // of one iteration: count, compare, branch
constexpr double kWordOperations = 8, kPairOperations = 5;  // for a dot of four bytes, of two bf16, without a unit for it
constexpr double kRowAddresses = 8;      // registers for the addresses of rows that are masked
constexpr double kMaskInstructions = 5;  // to make the mask of a vector
constexpr double kScalarLoad = 0.5;   // cycles at least
constexpr double kLoopStart = 6;      // cycles to enter and leave an inner loop
constexpr double kCacheShare = 0.75;  // of a cache that the data of a kernel can count on
constexpr double kOverlap = 0.25;     // of what is not the longest part: what does not run at the same time
constexpr double kProgram = 0.05, kLaunch = 0.15;  // microseconds
constexpr int kChunksPerCore = 8;     // pieces that the pool deals out

// Loops around statements, as a program runs them: blocks of the grid, their steps, then the group's own tree.
struct Part {
  LoopId loop = -1;  // -1: statements only
  double trips = 1;
  double inner = 1;  // elements of the loop that one iteration covers
  std::vector<Part> parts;
  std::vector<const Leaf*> leaves;  // all inside
};

class Model {
 public:
  Model(const Analysis& a, const Machine& m, const Record& r) : a_(a), m_(m), r_(r), g_(a.group) {
    for (const Leaf& leaf : a.leaves) all_.push_back(&leaf);
  }

  Cost run() {
    Cost cost = core_time();
    const double programs = std::max(1.0, count_programs());
    const double cores = std::clamp(std::min<double>(programs, m_.cores), 1.0, 1e6);
    traffic_times(cost, cores);
    cost.compute /= cores, cost.l1 /= cores, cost.waste /= cores;
    const double busy = cost.total();
    const double chunk = std::max(1.0, std::floor(programs / (cores * kChunksPerCore)));
    const double pieces = std::ceil(programs / chunk);
    const double rounds = std::ceil(pieces / cores) * cores / pieces;
    cost.waste += busy * (rounds - 1) + (cores > 1 ? 0.25 * busy * cores / pieces : 0);
    cost.dispatch = kLaunch + kProgram * programs / cores + (cores > 1 ? m_.rates.dispatch_us : 0);
    return cost;
  }

 private:
  double tile(LoopId l) const { return r_.loops[l].in_word ? a_.extents[l] : r_.loops[l].axis >= 0 ? r_.loops[l].tile : 1; }
  double steps(LoopId l) const { return std::ceil(a_.extents[l] / tile(l)); }
  double block(LoopId l) const { return static_cast<double>(r_.loops[l].block); }

  double count_programs() const {
    double n = 1;
    for (LoopId l : r_.grid_order) n *= std::ceil(steps(l) / block(l));
    return n;
  }

  LoopId lane_of(const Leaf& leaf) const {
    for (LoopId l : leaf.loops) {
      if (r_.loops[l].axis == 1) return l;
    }
    return -1;
  }

  // ---- arithmetic and loads of one core ----

  int width(const Leaf& leaf) const {
    int widest = bits(g_.expr(leaf.stmt->value).dtype) >= 32 ? bits(g_.expr(leaf.stmt->value).dtype) : 32;
    for (const Access& access : leaf.accesses) widest = std::max(widest, access.bytes * 8);
    return std::max(1, m_.vector_bits / widest);
  }

  Cost core_time() const {
    Cost cost;
    for (const Leaf& leaf : a_.leaves) {
      const int lanes = width(leaf);
      const LoopId lane = lane_of(leaf);
      double rows = 1, trips = 1, whole = 1;
      for (LoopId l : leaf.loops) {
        if (r_.loops[l].axis == 0) rows *= tile(l);
        trips *= steps(l);
        whole *= a_.extents[l] / tile(l);
      }
      const double vectors = lane < 0 ? 1 : std::ceil(tile(lane) / lanes);
      if (on_unit(r_, leaf)) {
        add_unit(cost, leaf, rows, lane, trips, whole);
        continue;
      }
      const double area = m_.has_groups() ? group_vectors(lane, rows, lanes) : rows * vectors;
      double arithmetic = operations(leaf) * area / m_.rates.fmas, waiting = 0;
      const double loads = load_cycles(leaf, lane, vectors, trips) + spill_cycles(leaf, rows, vectors);
      const double issued = in_word(leaf) ? std::min(operations(leaf), kWordOperations) : operations(leaf);
      double instructions = issued * area;
      const bool shared = m_.has_groups() && deep(leaf) > 1;
      if (shared) {
        const GroupStep step = group_step(m_, a_, r_, leaf, arithmetic);
        instructions *= step.cycles / arithmetic;
        arithmetic = step.cycles, waiting = step.waiting;
      }
      double cycles = std::max(arithmetic, (instructions + loads + overhead(leaf)) / kIssued);
      const LoopId inner = innermost(leaf);
      const bool chained = leaf.stmt->kind == Stmt::Kind::Update && inner >= 0 && g_.loops[inner].kind == LoopKind::Reduce &&
                           !r_.loops[inner].unrolled;
      if (shared) cycles += waiting;
      else if (chained) cycles = std::max(cycles, kFmaLatency) + kLoopStart / steps(inner);
      const double us = 1e-3 / m_.rates.ghz;
      cost.compute += cycles * whole * us;
      cost.l1 += loads * whole * us;
      cost.waste += std::max(cycles, loads) * (trips - whole) * us;
    }
    return cost;
  }

  // By the matrix unit, which takes the words of a tile at once; loads come while it multiplies.
  void add_unit(Cost& cost, const Leaf& leaf, double rows, LoopId lane, double trips, double whole) const {
    const double r = rows / kTileRows, c = tile(lane) / kTileRows, us = 1e-3 / m_.rates.ghz;
    const double cycles = std::max({r * c * kUnitCycles, kUnitLatency, (r + c) * kUnitLoad}) / kTileWords + kLoopStart / steps(innermost(leaf));
    cost.compute += cycles * whole * us;
    cost.l1 += (r + c) * kUnitLoad / kTileWords * whole * us;
    cost.waste += cycles * (trips - whole) * us;
  }

  // Cycles per step for vectors that are alive and find no register: accumulators and one operand of a product, or what
  // an expression holds until it is stored. They go to memory and back.
  double spill_cycles(const Leaf& leaf, double rows, double vectors) const {
    constexpr double kAlive = 6, kConstants = 10;  // of a polynomial: values on their way, coefficients
    const bool long_one = leaf.operations > 8;
    const double alive = leaf.stmt->kind == Stmt::Kind::Update ? rows * vectors + std::min(rows, vectors) + 1
                         : long_one                            ? rows * vectors * kAlive + kConstants
                                                               : 2 * rows * vectors;
    const double over = alive - m_.vector_registers;
    return over <= 0 ? 0 : 2 * over * m_.vector_bits / 8.0 * m_.rates.ghz / m_.rates.l1_gbytes;
  }

  double operations(const Leaf& leaf) const {
    if (in_word(leaf) && leaf.word == 2) return m_.dot2s() > 0 ? m_.rates.fmas / m_.dot2s() : kPairOperations;
    if (in_word(leaf)) return m_.has_vnni ? 1 : kWordOperations;
    return static_cast<double>(leaf.operations) - (leaf.product && m_.has_fma ? 1 : 0);
  }

  // Threads have rows as well as lanes; those of other groups work while a group has too few.
  double group_vectors(LoopId lane, double rows, int lanes) const {
    const double elements = rows * (lane < 0 ? 1 : tile(lane));
    return std::max(elements, static_cast<double>(m_.warp_threads)) / lanes;
  }
  int deep(const Leaf& leaf) const {
    int depth = 1;
    for (LoopId l : leaf.loops) depth = std::max(depth, r_.loops[l].depth);
    return depth;
  }
  bool in_word(const Leaf& leaf) const { return !leaf.loops.empty() && r_.loops[leaf.loops.back()].in_word; }

  // The loop whose steps follow each other; -1: none does.
  LoopId innermost(const Leaf& leaf) const {
    const std::size_t n = leaf.loops.size(), left_out = in_word(leaf) ? 1 : 0;
    return n > left_out ? leaf.loops[n - 1 - left_out] : -1;
  }

  // Instructions of the innermost loop itself, for one step of its statement.
  double overhead(const Leaf& leaf) const {
    const LoopId inner = innermost(leaf);
    return (inner < 0 || r_.loops[inner].unrolled ? 0 : kLoopInstructions) + mask_overhead(leaf);
  }

  // Rows that may be past the end have an address each, beyond some of them in memory; masks of lanes are made where their
  // loop stands and used by each access.
  double mask_overhead(const Leaf& leaf) const {
    double count = 0, inside = 1;
    for (std::size_t i = leaf.loops.size(); i-- > 0;) {
      const LoopId l = leaf.loops[i];
      if (r_.loops[l].masked && has_tail(g_, r_, l)) {
        const double vectors = std::ceil(tile(l) / width(leaf));
        if (r_.loops[l].axis == 0) count += std::max(0.0, tile(l) - kRowAddresses);
        if (r_.loops[l].axis == 1) count += vectors * (1 + kMaskInstructions / inside);
      }
      inside *= steps(l);
    }
    return count;
  }

  // Cycles per step. What does not depend on the inner loops is loaded outside of them; what the steps of written out
  // loops share is loaded once.
  double load_cycles(const Leaf& leaf, LoopId lane, double vectors, double trips) const {
    const double vector_load = m_.vector_bits / 8.0 * m_.rates.ghz / m_.rates.l1_gbytes;  // cycles
    std::vector<double> span(g_.loops.size(), 1);
    double written_out = 1;
    for (LoopId l : leaf.loops) {
      if (r_.loops[l].axis == 0) span[l] = tile(l);
      if (r_.loops[l].unrolled) span[l] = a_.extents[l], written_out *= a_.extents[l];
    }
    double cycles = 0;
    for (const Access& access : leaf.accesses) {
      if (loaded_before(leaf, access)) continue;
      double times = 1, seen = 1;
      for (LoopId l : leaf.loops) {
        seen *= steps(l);
        if (access.strides[l] != Stride::None) times = seen;
      }
      Stride along = lane < 0 ? Stride::None : access.strides[lane];
      if (along != Stride::None && (packed(access) || in_word(leaf))) along = Stride::Unit;
      double one = std::clamp(vector_load, kScalarLoad, 2 * kScalarLoad);  // one that is spread takes the way of a vector
      if (along == Stride::Unit) one = vectors * vector_load;
      if (along == Stride::Other) one = tile(lane) * (access.store ? kScatterLane : kGatherLane);
      const bool shared = along != Stride::Unit || fits_registers(leaf, access, span, vectors);
      const double distinct = shared ? elements(access, span) / written_out : rows_of(access, span);
      cycles += one * std::max(distinct, 1.0 / written_out) * std::min(1.0, times * written_out / trips);
    }
    return cycles;
  }

  // By an earlier term of the same sum.
  bool loaded_before(const Leaf& leaf, const Access& access) const {
    if (!leaf.product) return false;
    for (const Leaf* term : a_.terms(leaf)) {
      if (term == &leaf) break;
      for (const Access& other : term->accesses) {
        if (other.param == access.param && other.at == access.at) return true;
      }
    }
    return false;
  }

  // Rows of the tile that an access has elements for.
  double rows_of(const Access& access, const std::vector<double>& span) const {
    double rows = 1;
    for (std::size_t l = 0; l < span.size(); ++l) {
      if (r_.loops[l].axis == 0 && access.strides[l] != Stride::None) rows *= span[l];
    }
    return rows;
  }

  // Whether what the steps of the innermost written out loop share can stay in registers beside the accumulators.
  bool fits_registers(const Leaf& leaf, const Access& access, const std::vector<double>& span, double vectors) const {
    const LoopId last = innermost(leaf);
    if (last < 0 || !r_.loops[last].unrolled) return true;
    std::vector<double> inner(span.size(), 1);
    double rows = 1;
    for (LoopId l : leaf.loops) {
      if (r_.loops[l].axis == 0) inner[l] = span[l], rows *= span[l];
    }
    inner[last] = span[last];
    return (rows + elements(access, inner) + 1) * vectors <= m_.vector_registers;
  }

  bool packed(const Access& access) const { return r_.maps[access.param].panel > 0; }

  // ---- bytes ----

  static double elements(const Access& access, const std::vector<double>& span) {
    double n = 1;
    for (const Coordinate& c : access.coordinates) n *= reach(c, span);
    return n;
  }

  static double reach(const Coordinate& c, const std::vector<double>& span) {
    double points = 1, range = 1;
    for (const auto& [l, step] : c.terms) {
      points *= span[l];
      range += step * (span[l] - 1);
    }
    return std::min({points, range, c.extent});
  }

  // A line is touched whole: the last axis counts by lines where it is not read from end to end.
  double bytes(const Access& access, const std::vector<double>& span) const {
    if (access.coordinates.empty()) return access.bytes;
    double n = elements(access, span);
    if (packed(access)) return n * access.bytes;
    const Coordinate& last = access.coordinates.back();
    const double run = reach(last, span), lines = std::ceil(run * access.bytes / static_cast<double>(m_.cache_line));
    const bool whole = run >= last.extent;
    return whole ? n * access.bytes : n / run * lines * static_cast<double>(m_.cache_line);
  }

  struct Touched {
    double all = 0, stored = 0;  // stored bytes are fetched before and written back after
  };

  Touched touched(const std::vector<const Leaf*>& leaves, const std::vector<double>& span) const {
    read_.assign(g_.params.size(), 0), stored_.assign(g_.params.size(), 0);
    for (const Leaf* leaf : leaves) {
      for (const Access& access : leaf->accesses) {
        double& most = (access.store ? stored_ : read_)[access.param];
        most = std::max(most, bytes(access, span));
      }
    }
    Touched t;
    for (std::size_t p = 0; p < read_.size(); ++p) {
      t.all += std::max(read_[p], stored_[p]);
      t.stored += stored_[p];
    }
    return t;
  }

  Part part_of(const Stmt& s) const {
    Part p;
    p.loop = s.id, p.trips = steps(s.id), p.inner = tile(s.id);
    add_inside(p, s.body);
    return p;
  }

  void add_inside(Part& p, const std::vector<Stmt>& body) const {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Loop) p.parts.push_back(part_of(s));
    }
    for (const Leaf& leaf : a_.leaves) {
      if (p.loop < 0 || a_.encloses(p.loop, leaf)) p.leaves.push_back(&leaf);
    }
  }

  Part root() const {
    const std::vector<Stmt>* body = &g_.body;
    for (std::size_t i = 0; i < r_.grid_order.size(); ++i) body = &body->front().body;
    Part inside;
    add_inside(inside, *body);
    for (const bool whole_block : {false, true}) {
      for (std::size_t i = r_.grid_order.size(); i-- > 0;) {
        const LoopId l = r_.grid_order[i];
        Part around;
        around.loop = l;
        around.leaves = all_;
        around.inner = whole_block ? tile(l) * block(l) : tile(l);
        around.trips = whole_block ? std::ceil(steps(l) / block(l)) : std::min(block(l), steps(l));
        if (inside.loop >= 0) {
          around.parts.push_back(std::move(inside));
        } else {
          around.parts = std::move(inside.parts);
        }
        inside = std::move(around);
      }
    }
    return inside;
  }

  // Bytes that come from beyond a cache of `capacity` while the part runs once.
  double traffic(const Part& part, std::vector<double>& span, double capacity) const {
    const Touched all = touched(part.leaves, span);
    if (all.all <= capacity) return all.all + all.stored;
    const double outer = part.loop >= 0 ? span[part.loop] : 1;
    if (part.loop >= 0) span[part.loop] = std::min(part.inner, outer);
    double sum = 0;
    if (part.loop >= 0 && touched(part.leaves, span).all <= capacity) {
      sum = all.all + all.stored;
    } else if (part.parts.empty()) {
      const Touched once = touched(part.leaves, span);
      sum = part.trips * (once.all + once.stored);
    } else {
      for (const Part& inner : part.parts) sum += part.trips * traffic(inner, span, capacity);
    }
    if (part.loop >= 0) span[part.loop] = outer;
    return sum;
  }

  void traffic_times(Cost& cost, double cores) const {
    const Part whole = root();
    std::vector<double> span(a_.extents);
    const auto beyond = [&](std::int64_t capacity) { return traffic(whole, span, kCacheShare * static_cast<double>(capacity)); };
    const double us = 1e-3;  // per GB/s
    cost.l2 = beyond(m_.l1_bytes) * us / m_.rates.l2_gbytes / cores;
    const double resident = touched(all_, span).all;
    if (resident > static_cast<double>(m_.l2_bytes) / 2) cost.l3 = beyond(m_.l2_bytes) * us / m_.rates.l3_gbytes / cores;
    const std::int64_t last = std::max(m_.l2_bytes, m_.l3_bytes);
    if (resident > kCacheShare * static_cast<double>(last)) {
      cost.memory = beyond(last) * us / std::min(cores * m_.rates.memory_gbytes, all_gbytes());
    }
    cost.memory = std::max(cost.memory, weights() * us / (cores > 1 ? all_gbytes() : m_.rates.memory_gbytes));
  }

  // Bytes that are read of constants: until a kernel runs again, the model's others have been through the caches.
  double weights() const {
    std::vector<double> read(g_.params.size(), 0);
    for (const Leaf& leaf : a_.leaves) {
      for (const Access& access : leaf.accesses) {
        if (g_.params[access.param].constant) read[access.param] = std::max(read[access.param], bytes(access, a_.extents));
      }
    }
    return std::accumulate(read.begin(), read.end(), 0.0);
  }

  double all_gbytes() const { return m_.rates.all_gbytes > 0 ? m_.rates.all_gbytes : 2 * m_.rates.memory_gbytes; }

  const Analysis& a_;
  const Machine& m_;
  const Record& r_;
  const loop::Group& g_;
  std::vector<const Leaf*> all_;
  mutable std::vector<double> read_, stored_;  // of touched(), by parameter
};

}  // namespace

double Cost::total() const {
  const double parts[] = {std::max(compute, l1), l2, l3, memory};
  double longest = 0, sum = 0;
  for (double p : parts) longest = std::max(longest, p), sum += p;
  return longest + kOverlap * (sum - longest) + waste + dispatch;
}

double Candidate::score() const { return std::sqrt(cost.total() * few.total()) + code_share(instructions); }

Cost cost(const loop::Group& group, const Machine& machine, const DimFacts& facts, const Record& record) {
  const Analysis analysis(group, facts);
  return model(analysis, machine.has_groups() ? core_of_groups(machine) : machine, record);
}

Cost model(const Analysis& analysis, const Machine& machine, const Record& record) {
  return Model(analysis, machine, record).run();
}

}  // namespace weft::schedule
