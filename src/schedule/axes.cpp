// Lanes are chosen by cost: for each loop, the modelled time of the statements inside it when it
// runs over lanes, against the best choice among the loops inside it.
#include "schedule/axes.h"
#include "schedule/tiles.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace weft::schedule {

using loop::LoopKind;
using loop::Op;

namespace {

constexpr double kScalarAccess = 0.5;  // cycles
constexpr double kScalarOperation = 0.5;
constexpr double kTurnedLane = 0.4;  // of a square that is transposed in registers
constexpr double kAcross = 4;        // to add up the lanes of a sum
constexpr double kReuse = 8;  // of a product's operands in a register tile

double whole_use(double extent, int lanes) { return extent / (std::ceil(extent / lanes) * lanes); }

// The share of lanes at work. A size that is not known may be the least it can be.
double lane_use(const Analysis& a, LoopId loop, int lanes) {
  const Dim& extent = a.group.loops[loop].extent;
  const double likely = whole_use(a.extents[loop], lanes);
  for (const auto& home : a.homes) {  // then all that stands inside is done for whole tiles, whose code is masked
    if (std::find(home.begin(), home.end(), loop) != home.end()) return likely;
  }
  return extent.is_const() ? likely : (likely + whole_use(std::max(a.least(extent), 1.0), lanes)) / 2;
}

class LaneChooser {
 public:
  LaneChooser(const Analysis& a, const Machine& m)
      : a_(a), m_(m), chosen_(a.group.loops.size(), false) {
    for (const Leaf& leaf : a.leaves) by_stmt_[leaf.stmt] = &leaf;
  }

  std::vector<bool> run() {
    for (const Stmt& s : a_.group.body) decide(s);
    return chosen_;
  }

 private:
  int lanes(const Leaf& leaf) const {
    const DType t = a_.group.expr(leaf.stmt->value).dtype;
    return std::max(1, m_.vector_bits / std::max(32, bits(t)));
  }

  double leaf_cost(const Leaf& leaf, LoopId lane) const {
    if (lane < 0) {
      return leaf.points * (static_cast<double>(leaf.accesses.size()) * kScalarAccess +
                            static_cast<double>(leaf.operations) * kScalarOperation);
    }
    const double v = lanes(leaf) * lane_use(a_, lane, lanes(leaf));
    const bool reuse = leaf.product && !row_choices(a_, leaf, lane).empty();
    double cost = static_cast<double>(leaf.operations) * kScalarOperation / v;
    if (leaf.stmt->kind == Stmt::Kind::Update && a_.group.loops[lane].kind == LoopKind::Reduce) cost += kAcross / a_.extents[lane];
    for (const Access& access : leaf.accesses) {
      const Stride stride = access.strides[lane];
      double c = access.store ? kScatterLane : kGatherLane;
      if (std::any_of(leaf.loops.begin(), leaf.loops.end(), [&](LoopId l) { return turns(a_, leaf, access, l); })) c = kTurnedLane;
      if (stride == Stride::None) c = kScalarAccess / v;
      const bool packed = leaf.product && a_.group.loops[lane].kind == LoopKind::Parallel &&
                          packable(a_, access, lane);
      if (stride == Stride::Unit || packed) c = kScalarAccess / v;
      cost += reuse ? c / kReuse : c;
    }
    return leaf.points * cost;
  }

  double cost(const Stmt& s, LoopId lane) const {
    if (s.kind != Stmt::Kind::Loop) return leaf_cost(*by_stmt_.at(&s), lane);
    double sum = 0;
    for (const Stmt& inner : s.body) sum += cost(inner, lane);
    return sum;
  }

  double best(const Stmt& s) const {
    if (s.kind != Stmt::Kind::Loop) return leaf_cost(*by_stmt_.at(&s), -1);
    double inside = 0;
    for (const Stmt& inner : s.body) inside += best(inner);
    return tileable(a_, s.id) ? std::min(inside, cost(s, s.id)) : inside;
  }

  void decide(const Stmt& s) {
    if (s.kind != Stmt::Kind::Loop) return;
    double inside = 0;
    for (const Stmt& inner : s.body) inside += best(inner);
    if (tileable(a_, s.id) && cost(s, s.id) < inside) {
      chosen_[s.id] = true;
      return;
    }
    for (const Stmt& inner : s.body) decide(inner);
  }

  const Analysis& a_;
  const Machine& m_;
  std::vector<bool> chosen_;
  std::map<const Stmt*, const Leaf*> by_stmt_;
};

}  // namespace

std::vector<bool> choose_lanes(const Analysis& a, const Machine& m) {
  return LaneChooser(a, m).run();
}

namespace {

// What speaks for a loop as rows, the strongest first.
struct RowMerit {
  bool outer;    // its operand does not depend on the lanes: then the other one is a plain row
  bool settled;  // enough rows for certain: a symbolic size may turn out to be 1
  double extent;  // of known ones, up to what a tile can use
  std::size_t depth;  // the innermost: its rows lie closest together, and an unknown outermost one is often a batch of 1
  auto operator<=>(const RowMerit&) const = default;
};

constexpr std::int64_t kEnoughRows = 4;

}  // namespace

std::vector<LoopId> row_choices(const Analysis& a, const Leaf& leaf, LoopId lanes) {
  std::vector<std::pair<RowMerit, LoopId>> choices;
  for (std::size_t depth = 0; depth < leaf.loops.size(); ++depth) {
    const LoopId l = leaf.loops[depth];
    if (l == lanes || a.group.loops[l].kind != LoopKind::Parallel || !tileable(a, l)) continue;
    if (leaf.lhs[l] == leaf.rhs[l]) continue;
    const Dim& extent = a.group.loops[l].extent;
    const RowMerit merit{leaf.lhs[l] ? !leaf.lhs[lanes] : !leaf.rhs[lanes],
                         extent.is_const() && extent.value() >= kEnoughRows,
                         extent.is_const() ? std::min<double>(a.extents[l], kMostRows) : 0, depth};
    choices.emplace_back(merit, l);
  }
  std::sort(choices.begin(), choices.end(), std::greater<>());
  std::vector<LoopId> loops;
  for (const auto& [merit, l] : choices) loops.push_back(l);
  return loops;
}

bool turns(const Analysis& a, const Leaf& leaf, const Access& access, LoopId rows) {
  const bool grid = std::find(a.chain.begin(), a.chain.end(), rows) != a.chain.end();
  return !grid && !leaf.product && access.strides[rows] == Stride::Unit && a.homes[access.param].empty() &&
         a.group.params[access.param].role != loop::Role::OnChip && a.group.loops[rows].kind == LoopKind::Parallel &&
         tileable(a, rows);
}

bool tileable(const Analysis& a, LoopId loop) {
  if (a.group.loops[loop].kind == LoopKind::Serial) return false;
  if (a.group.loops[loop].kind == LoopKind::Reduce) {
    // Only what is combined into locals may be spread over a tile, or stored in an element of its own on chip.
    return std::all_of(a.leaves.begin(), a.leaves.end(), [&](const Leaf& leaf) {
      return !a.encloses(loop, leaf) || leaf.stmt->kind != Stmt::Kind::Store ||
             leaf.accesses.back().strides[loop] != Stride::None;
    });
  }
  for (const Leaf& leaf : a.leaves) {
    if (leaf.stmt->kind == Stmt::Kind::Store && a.encloses(loop, leaf) &&
        leaf.accesses.back().strides[loop] == Stride::None) {
      return false;
    }
  }
  return true;
}

bool packable(const Analysis& a, const Access& access, LoopId loop) {
  const loop::Param& p = a.group.params[access.param];
  if (!p.constant || access.store || p.map.panel > 0) return false;
  for (const Leaf& leaf : a.leaves) {
    const bool elsewhere = std::any_of(leaf.accesses.begin(), leaf.accesses.end(), [&](const Access& other) {
      return other.param == access.param && other.at != access.at;
    });
    if (elsewhere) return false;
  }
  bool found = false;
  for (std::size_t i = 0; i < access.at.size(); ++i) {
    const loop::Expr& e = a.group.expr(access.at[i]);
    if (e.op == Op::Index && e.id == loop) {
      found = p.shape[i] == a.group.loops[loop].extent && is_static(p.shape);
    } else if (e.op != Op::Index && e.op != Op::Const) {
      return false;
    }
  }
  return found;
}

}  // namespace weft::schedule
