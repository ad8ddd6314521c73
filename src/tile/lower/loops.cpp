// Loops: which steps a program runs, where tiles are whole, what is carried and how reductions
// accumulate.
#include <algorithm>
#include <iterator>

#include "tile/lower/lowerer.h"

namespace weft::tile {

bool Lowerer::has_tail(LoopId id) const {
  const Dim& extent = g_.loops[id].extent;
  return stride(id) > 1 && !mod(extent, Dim(stride(id))).is(0);
}

bool Lowerer::masked() const {
  for (LoopId l : stack_) {
    if (active_[l]->mask >= 0) return true;
  }
  return false;
}

void Lowerer::enter(LoopId id, ValueId base, bool masked) {
  Active a;
  a.base = a.index = base;
  a.cut = masked;
  if (tiled(id)) {
    const int t = tile(id), axis = record_.loops[id].axis;
    a.index = b_.add(base, axis == 0 ? b_.iota(t, 1, 0) : b_.iota(1, t, 1));
    if (masked) {
      const Dim& extent = g_.loops[id].extent;
      a.mask = b_.lt(a.index, size(extent));
      if (axis == 0) a.index = b_.min(a.index, size(extent - 1));
    }
  }
  active_[id] = a;
  stack_.push_back(id);
  frames_.emplace_back();
  tiles_along_.clear();
}

void Lowerer::leave(LoopId id) {
  frames_.pop_back();
  stack_.pop_back();
  active_[id].reset();
  tiles_along_.clear();
}

const Lowerer::Effects& Lowerer::effects(const Stmt& s) {
  const auto [it, fresh] = effects_.try_emplace(s.id);
  if (!fresh) return it->second;
  Effects result;
  const auto visit = [&](const auto& self, const std::vector<Stmt>& body) -> void {
    for (const Stmt& inner : body) {
      if (inner.kind == Stmt::Kind::Update || inner.kind == Stmt::Kind::Set)
        result.assigned.insert(inner.id);
      if (inner.kind == Stmt::Kind::Store) result.stored.insert(inner.id);
      self(self, inner.body);
    }
  };
  visit(visit, s.body);
  return effects_[s.id] = std::move(result);
}

// Assigned locals that are declared outside: what a loop or branch hands on.
std::vector<LocalId> Lowerer::outlive(const Effects& e) const {
  std::vector<LocalId> found;
  std::copy_if(e.assigned.begin(), e.assigned.end(), std::back_inserter(found), [&](LocalId id) { return locals_.count(id) != 0; });
  return found;
}

std::vector<ValueId> Lowerer::values(const std::vector<LocalId>& locals) const {
  std::vector<ValueId> found;
  for (LocalId id : locals) found.push_back(locals_.at(id).value);
  return found;
}

void Lowerer::set_values(const std::vector<LocalId>& locals, const std::vector<ValueId>& values) {
  for (std::size_t i = 0; i < locals.size(); ++i) locals_.at(locals[i]).value = values[i];
}

void Lowerer::find_axes(const Stmt& s, std::set<int> axes,
                        std::map<LocalId, Accumulation>& into) const {
  if (g_.loops[s.id].kind == loop::LoopKind::Reduce && tiled(s.id))
    axes.insert(record_.loops[s.id].axis);
  for (const Stmt& inner : s.body) {
    if (inner.kind == Stmt::Kind::Loop) find_axes(inner, axes, into);
    if (inner.kind != Stmt::Kind::Update) continue;
    Accumulation& a = into[inner.id];
    WEFT_CHECK(a.combine == Combine::None || a.combine == inner.combine,
               "a local is reduced in two ways");
    a.local = inner.id;
    a.combine = inner.combine;
    a.axes.insert(axes.begin(), axes.end());
  }
}

// Before the outermost reduce loop of a local: it becomes a tile that also spans the tiled reduce
// loops' axes and starts at the identity.
std::vector<Lowerer::Accumulation> Lowerer::begin_accumulate(const Stmt& s) {
  std::vector<Accumulation> result;
  if (g_.loops[s.id].kind != loop::LoopKind::Reduce) return result;
  std::map<LocalId, Accumulation> found;
  find_axes(s, {}, found);
  for (auto& [id, a] : found) {
    const auto it = locals_.find(id);
    if (it == locals_.end() || it->second.accumulating || a.axes.empty()) continue;
    Local& local = it->second;
    a.before = local.value;
    a.before_type = local.type;
    for (const int axis : a.axes) {
      WEFT_CHECK(local.type.shape[axis] == 1, "two tiled loops on one axis");
      local.type.shape[axis] = 0;  // set below
    }
    const auto size_axis = [&](const auto& self, const Stmt& loop) -> void {
      if (tiled(loop.id) && g_.loops[loop.id].kind == loop::LoopKind::Reduce &&
          effects(loop).assigned.count(it->first)) {
        auto& extent = local.type.shape[record_.loops[loop.id].axis];
        WEFT_CHECK(extent == 0 || extent == tile(loop.id),
                   "tiles of one accumulator differ in size");
        extent = tile(loop.id);
      }
      for (const Stmt& inner : loop.body) {
        if (inner.kind == Stmt::Kind::Loop) self(self, inner);
      }
    };
    size_axis(size_axis, s);
    local.accumulating = true;
    local.value = as(identity(a.combine, local.type.dtype), local.type);
    result.push_back(a);
  }
  std::set<LocalId> changed;
  for (const auto& a : result) changed.insert(a.local);
  forget(changed, {});
  return result;
}

void Lowerer::end_accumulate(std::vector<Accumulation>& accumulations) {
  for (Accumulation& a : accumulations) {
    Local& local = locals_.at(a.local);
    ValueId v = local.value;
    for (const int axis : a.axes) v = b_.reduce(a.combine, v, axis);
    local.type = a.before_type;
    local.value = as(combined(a.combine, a.before, v), local.type);
    local.accumulating = false;
    forget({a.local}, {});
  }
}

void Lowerer::step(const Stmt& s, ValueId base, bool masked) {
  enter(s.id, base, masked);
  if (s.value >= 0) {
    where_needed(s);
  } else {
    block(s.body);
  }
  leave(s.id);
}

// The body of an iteration that some may leave out: all elements of the tiles around it run it where one has to.
void Lowerer::where_needed(const Stmt& s) {
  ValueId needed = eval(s.value);
  for (int axis = 0; axis < 2; ++axis) {
    if (b_.type(needed).rank == 2 && b_.type(needed).shape[axis] > 1) needed = b_.reduce(Combine::Or, needed, axis);
  }
  const Effects& e = effects(s);
  const std::vector<LocalId> changed = outlive(e);
  const std::vector<ValueId> before = values(changed);
  std::vector<Type> types;
  for (LocalId id : changed) types.push_back(locals_.at(id).type);
  b_.begin_if(needed, types);
  frames_.emplace_back();
  block(s.body);
  frames_.pop_back();
  b_.begin_else(values(changed));
  set_values(changed, b_.end_if(before));
  forget(e.assigned, e.stored);
}

namespace {

constexpr std::int64_t kChain = 256;  // terms of one float sum before a new partial sum starts
constexpr std::int64_t kUnitChain = 4096;  // where a matrix unit adds 32 of them before it rounds

// How many terms a step of the loop adds to a local, and whether all it does is add floats to locals.
struct Sums {
  bool only = true;
  bool known = true;
  std::int64_t terms = 1;  // a bound below when not known
  bool deep = false, words = false;  // both: a matrix unit adds many at a time, in an order of its own
};

void look_for_sums(const loop::Group& g, const schedule::Record& r, const std::vector<Stmt>& body, Sums& sums) {
  std::map<LocalId, std::int64_t> added;
  std::int64_t most = 1;
  for (const Stmt& inner : body) {
    if (inner.kind == Stmt::Kind::Update) most = std::max(most, ++added[inner.id]);
  }
  sums.terms *= most;
  for (const Stmt& inner : body) {
    const bool adds = inner.kind == Stmt::Kind::Update && inner.combine == Combine::Sum && is_float(g.locals[inner.id]);
    const bool reduces = inner.kind == Stmt::Kind::Loop && g.loops[inner.id].kind == loop::LoopKind::Reduce;
    if (!adds && !reduces) sums.only = false;
    if (!reduces) continue;
    sums.deep = sums.deep || r.loops[inner.id].depth > 1;
    sums.words = sums.words || r.loops[inner.id].in_word;
    const Dim& extent = g.loops[inner.id].extent;
    if (extent.is_const()) {
      sums.terms *= std::clamp<std::int64_t>(extent.value(), 1, kChain);
    } else {
      sums.known = false;
    }
    look_for_sums(g, r, inner.body, sums);
  }
}

}  // namespace

// Steps of a reduce loop after which a new partial sum starts, so that no float sum is one long chain; 0: it is short.
std::int64_t Lowerer::partial_steps(const Stmt& s) const {
  if (g_.loops[s.id].kind != loop::LoopKind::Reduce) return 0;
  Sums sums;
  sums.deep = record_.loops[s.id].depth > 1;
  look_for_sums(g_, record_, s.body, sums);
  if (!sums.only) return 0;
  sums.terms *= record_.loops[s.id].depth;
  const std::int64_t terms = sums.deep && sums.words ? kUnitChain : kChain;
  const std::int64_t block = !sums.known ? 1 : std::max<std::int64_t>(1, terms / sums.terms);
  const Dim& extent = g_.loops[s.id].extent;
  return extent.is_const() && extent.value() <= 2 * block * stride(s.id) ? 0 : block;
}

// Chains of at most so many terms, each from zero, and their sums added up: the rounding error of a sum of n terms grows
// with the number of chains and the length of one instead of n.
void Lowerer::steps(const Stmt& s, ValueId lo, ValueId hi, bool masked) {
  const std::int64_t block = partial_steps(s);
  if (block == 0) return chain(s, lo, hi, masked);
  const Effects& e = effects(s);
  const std::vector<LocalId> sums = outlive(e);
  const std::vector<ValueId> inits = values(sums);
  forget(e.assigned, e.stored);
  const ValueId apart = b_.constant_i64(block * stride(s.id));
  const auto loop = b_.begin_for(lo, hi, apart, inits);
  for (LocalId id : sums) {
    Local& local = locals_.at(id);
    local.value = as(identity(Combine::Sum, local.type.dtype), local.type);
  }
  if (block == 1) {
    step(s, loop.iv, masked);
  } else {
    chain(s, loop.iv, b_.min(b_.add(loop.iv, apart), hi), masked);
  }
  std::vector<ValueId> next;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    next.push_back(combined(Combine::Sum, loop.carried[i], locals_.at(sums[i]).value));
  }
  set_values(sums, b_.end_for(next));
  forget(e.assigned, e.stored);
}

// for base = lo; base < hi; base += tile, carrying the locals that the body assigns.
void Lowerer::chain(const Stmt& s, ValueId lo, ValueId hi, bool masked) {
  const Effects& e = effects(s);
  const std::vector<LocalId> carried = outlive(e);
  const std::vector<ValueId> inits = values(carried);
  forget(e.assigned, e.stored);
  const auto loop = b_.begin_for(lo, hi, b_.constant_i64(stride(s.id)), inits);
  set_values(carried, loop.carried);
  step(s, loop.iv, masked);
  set_values(carried, b_.end_for(values(carried)));
  forget(e.assigned, e.stored);
}

// The elements [lo, hi) of a loop. Whole tiles run without masks, unless something around is masked
// anyway.
void Lowerer::range(const Stmt& s, ValueId lo, ValueId hi) {
  const LoopId id = s.id;
  const Dim& extent = g_.loops[id].extent;
  const int t = stride(id);
  const bool grid = record_.loops[id].grid;
  if (!grid && extent.is(t)) return step(s, lo, false);
  if (record_.loops[id].in_word) return step(s, b_.constant_i64(0), false);
  if (record_.loops[id].unrolled) {
    for (std::int64_t i = 0; i < extent.value(); ++i) step(s, b_.constant_i64(i), false);
    return;
  }
  if (!has_tail(id)) return steps(s, lo, hi, false);
  if (record_.loops[id].depth > 1) return steps(s, lo, hi, true);
  const Dim whole = floor_div(extent, Dim(t)) * Dim(t);
  if (!grid && extent.is_const() && extent.value() > 0) {
    if (whole.is(t)) step(s, lo, false);
    if (whole.value() > t) steps(s, lo, size(whole), false);
    return step(s, size(whole), true);
  }
  if (masked() || record_.loops[id].masked) return steps(s, lo, hi, true);
  steps(s, lo, grid ? b_.min(hi, size(whole)) : size(whole), false);
  steps(s, size(whole), hi, true);
}

void Lowerer::loop(const Stmt& s) {
  if (record_.loops[s.id].grid) return grid_loop(s);
  auto accumulations = begin_accumulate(s);
  range(s, b_.constant_i64(0), size(g_.loops[s.id].extent));
  end_accumulate(accumulations);
}

// One step per program: tiles that may be cut off are decided once for all grid loops in a row.
void Lowerer::grid_loop(const Stmt& s) {
  const LoopId id = s.id;
  const auto& plan = record_.loops[id];
  const Dim& extent = g_.loops[id].extent;
  if (plan.block > 1) {
    const ValueId lo = b_.mul(grid_coordinate_[id], b_.constant_i64(plan.block * tile(id)));
    return range(s, lo, b_.min(b_.add(lo, b_.constant_i64(plan.block * tile(id))), size(extent)));
  }
  const ValueId base = b_.mul(grid_coordinate_[id], b_.constant_i64(tile(id)));
  const bool always_cut = has_tail(id) && (plan.masked || (extent.is_const() && extent.value() < tile(id)));
  if (has_tail(id) && !always_cut) partial_.push_back(id);
  enter(id, base, always_cut);
  const Stmt* inner =
      s.body.size() == 1 && s.body[0].kind == Stmt::Kind::Loop ? &s.body[0] : nullptr;
  if (inner && record_.loops[inner->id].grid && record_.loops[inner->id].block == 1) {
    grid_loop(*inner);
  } else if (partial_.empty()) {
    block(s.body);
  } else {
    std::vector<LoopId> partial;
    partial.swap(partial_);
    ValueId full = -1;
    for (LoopId l : partial) {
      const ValueId end = b_.add(active_[l]->base, b_.constant_i64(tile(l)));
      full = both(full, b_.scalar(ScalarOp::Le, {end, size(g_.loops[l].extent)}));
    }
    const auto cut = [&](bool masked) {
      const auto saved = active_;
      const auto stack = stack_;
      frames_.emplace_back();
      for (LoopId l : partial) {
        if (!masked) continue;
        enter(l, active_[l]->base, true);
        stack_.pop_back();
      }
      block(s.body);
      frames_.resize(frames_.size() - 1 - (masked ? partial.size() : 0));
      active_ = saved;
      stack_ = stack;
    };
    b_.begin_if(full, {});
    cut(false);
    b_.begin_else({});
    cut(true);
    b_.end_if({});
  }
  leave(id);
}

}  // namespace weft::tile
