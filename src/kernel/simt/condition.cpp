// Comparisons of indices, kept as sums that are above zero until somebody needs the bits. A conjunction of them is a list, from
// which falls what others imply; of those that change alike in a loop the least is found outside of it.
#include <algorithm>
#include <map>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr std::int64_t kMostLane = 1 << 8;

std::int64_t lane_of(const Lines& x) { return x.lane.constant; }
std::size_t longer(const Lines& a, const Lines& b) { return std::max(a.rows.size(), b.rows.size()); }

}  // namespace

bool Lowering::always_above(const Lines& x) const {
  return lane_of(x) >= 0 && std::all_of(x.rows.begin(), x.rows.end(), [&](const Sum& row) { return math_.facts(math_.add(row, math_.constant(-1))).natural; });
}

// Whether b is never less than a.
bool Lowering::never_less(const Lines& b, const Lines& a) const {
  if (lane_of(b) < lane_of(a)) return false;
  for (std::size_t row = 0; row < longer(a, b); ++row) {
    if (!math_.facts(math_.sub(b.row(static_cast<int>(row)), a.row(static_cast<int>(row)))).natural) return false;
  }
  return true;
}

void Lowering::require(std::vector<Lines>& all, Lines x) const {
  if (always_above(x)) return;
  if (std::any_of(all.begin(), all.end(), [&](const Lines& a) { return never_less(x, a); })) return;
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Lines& a) { return never_less(a, x); }), all.end());
  all.push_back(std::move(x));
}

Value Lowering::condition_value(const tile::Type& type, std::vector<Lines> above) const {
  Value v;
  v.form = Value::Form::Condition;
  v.type = type;
  v.one_row = type.shape[0] == 1;
  v.above = std::move(above);
  return v;
}

// Of indices whose difference cannot overflow.
std::optional<Value> Lowering::condition(ScalarOp op, const Value& a, const Value& b, const tile::Type& result) const {
  const bool less = op == ScalarOp::Lt || op == ScalarOp::Le, greater = op == ScalarOp::Gt || op == ScalarOp::Ge;
  if ((!less && !greater) || !a.is_index() || !b.is_index()) return std::nullopt;
  const Lines &low = less ? a : b, &high = less ? b : a;
  const bool equal = op == ScalarOp::Le || op == ScalarOp::Ge;
  Lines above;
  above.lane = math_.sub(high.lane, low.lane);
  if (!above.lane.is_constant() || std::abs(lane_of(above)) > kMostLane) return std::nullopt;
  for (std::size_t row = 0; row < longer(low, high); ++row) {
    const Sum apart = math_.sub(high.row(static_cast<int>(row)), low.row(static_cast<int>(row)));
    if (!math_.facts(apart).counted) return std::nullopt;
    above.rows.push_back(math_.add(apart, math_.constant(equal ? 1 : 0)));
  }
  std::vector<Lines> all;
  require(all, std::move(above));
  return condition_value(result, std::move(all));
}

std::optional<Value> Lowering::both_conditions(const Value& a, const Value& b, const tile::Type& result) const {
  if (!a.is_condition() || !b.is_condition()) return std::nullopt;
  std::vector<Lines> all = a.above;
  for (const Lines& x : b.above) require(all, x);
  return condition_value(result, std::move(all));
}

// What changes in the innermost block of those in which its terms become known, and the rest; all in the rest if they are one block's.
std::pair<Sum, Sum> Lowering::by_depth(const Sum& x) const {
  const int inner = math_.facts(x).depth;
  Sum changing, rest = math_.constant(x.constant);
  for (const Sum::Term& t : x.terms) (inner > 0 && math_.facts({{t}, 0}).depth == inner ? changing : rest).terms.push_back(t);
  return {changing, rest};
}

// The least of some sums is that of these: sums that change alike are one.
std::vector<Sum> Lowering::least_candidates(const std::vector<Sum>& sums) {
  std::vector<std::pair<Sum, std::vector<Sum>>> groups;
  for (const Sum& x : sums) {
    auto [changing, rest] = by_depth(x);
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == changing; });
    if (known != groups.end()) known->second.push_back(rest);
    else groups.push_back({changing, {rest}});
  }
  std::vector<Sum> least;
  for (const auto& [changing, rests] : groups) {
    Sum rest = rests[0];
    for (std::size_t i = 1; i < rests.size() && !changing.terms.empty(); ++i) {
      const int depth = std::max(math_.facts(rest).depth, math_.facts(rests[i]).depth);
      rest = math_.term(b_.scalar(ScalarOp::Min, {math_.value(rest), math_.value(rests[i])}), {1, depth, true});
    }
    least.push_back(math_.add(changing, rest));
    for (std::size_t i = 1; i < rests.size() && changing.terms.empty(); ++i) least.push_back(rests[i]);
  }
  return least;
}

// Compares what changes with what does not; else what is added with what is taken away.
ValueId Lowering::above_zero(const Sum& x) {
  auto [low, high] = by_depth(x);
  if (low.terms.empty() || high.terms.empty()) {
    low = high = Sum();
    for (const Sum::Term& t : x.terms) (t.coefficient < 0 ? low : high).terms.push_back(t);
    (x.constant < 0 ? low : high).constant = x.constant;
    low = math_.scale(low, -1);
  } else if (low.terms[0].coefficient < 0) {
    low = math_.scale(low, -1);
  } else {
    std::swap(low, high);
    low = math_.scale(low, -1);
  }
  return b_.scalar(ScalarOp::Lt, {math_.value(low), math_.value(high)});
}

// Whether all lanes of a register, whose first makes it x, are above zero with the first.
bool Lowering::whole_run(const Sum& x, std::int64_t lane, int lanes) const {
  if (lanes == 1) return true;
  if (lane != 1 && lane != -1) return false;
  return math_.facts(lane < 0 ? x : math_.add(x, math_.constant(-1))).divisor % lanes == 0;
}

// x in 32 bits without a sign, what is below or above cut to the ends: enough to compare it with numbers of columns.
ValueId Lowering::cut(const std::vector<Sum>& sums, bool negated) {
  constexpr std::int64_t kMost = UINT32_MAX;
  constexpr int kWord = 32;
  ValueId x = -1;
  for (const Sum& sum : least_candidates(sums)) {
    const ValueId v = math_.value(sum);
    x = x < 0 ? v : b_.scalar(ScalarOp::Min, {x, v});
  }
  if (negated) x = b_.sub(b_.constant_i64(1), x);
  const ValueId high = b_.cast(b_.scalar(ScalarOp::Shr, {x, b_.constant_i64(kWord)}), DType::I32), zero = b_.constant_i64(0, DType::I32);
  const ValueId end = b_.select(b_.scalar(ScalarOp::Lt, {high, zero}), b_.constant_i64(0, DType::U32), b_.constant_i64(kMost, DType::U32));
  return b_.select(b_.scalar(ScalarOp::Eq, {high, zero}), b_.cast(x, DType::U32), end);
}

ValueId Lowering::condition_at(const Value& v, int row, int i) {
  const Share s = share(v.type);
  std::vector<Sum> alike;                            // lanes
  std::map<std::int64_t, std::vector<Sum>> by_lane;  // at this thread's first column
  for (const Lines& x : v.above) {
    if (lane_of(x) == 0) alike.push_back(x.row(row));
    else by_lane[lane_of(x)].push_back(math_.add(x.row(row), math_.scale(own_column(s), lane_of(x))));
  }
  ValueId all = -1;
  for (const auto& [lane, sums] : by_lane) {
    const std::int64_t first = lane * i * s.column_step;
    const bool whole = std::all_of(sums.begin(), sums.end(), [&](const Sum& x) { return whole_run(math_.add(x, math_.constant(first)), lane, s.lanes); });
    const bool narrow = s.registers() >= kNarrowedFrom;
    if (whole && !narrow) {
      for (const Sum& x : sums) alike.push_back(math_.add(x, math_.constant(first)));
      continue;
    }
    std::vector<ValueId> lanes;
    for (int k = 0; k < (whole ? 1 : s.lanes); ++k) {
      const std::int64_t more = first + lane * k;
      if (narrow) {
        // x + lane * column > 0: a limit is above what is counted up to it, or at most what is counted from it.
        const ValueId limit = cut(sums, lane > 0), counted = b_.constant_i64(std::abs(more), DType::U32);
        lanes.push_back(b_.scalar(lane > 0 ? ScalarOp::Le : ScalarOp::Gt, {limit, counted}));
        continue;
      }
      ValueId one = -1;
      for (const Sum& x : sums) one = both(one, above_zero(math_.add(x, math_.constant(more))));
      lanes.push_back(one);
    }
    all = both(all, whole ? splat(lanes[0], s.lanes) : assemble(lanes));
  }
  ValueId scalar = -1;  // what is known further out comes first
  std::vector<Sum> candidates = least_candidates(alike);
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Sum& x, const Sum& y) { return math_.facts(x).depth < math_.facts(y).depth; });
  for (const Sum& x : candidates) scalar = both(scalar, above_zero(x));
  if (scalar < 0 && all < 0) scalar = b_.constant_i64(1, DType::Bool);
  return scalar < 0 ? all : both(splat(scalar, s.lanes), all);
}

}  // namespace weft::kernel::simt
