#include <fmt/format.h>

#include <algorithm>

#include "loop/words.h"
#include "tile/lower/lowerer.h"

namespace weft::tile {

using loop::Role;
using LOp = loop::Op;

Lowerer::Lowerer(const loop::Group& group, const schedule::Record& record)
    : g_(group), record_(record), b_(group.name) {
  for (std::size_t i = 0; i < record.maps.size() && i < g_.params.size(); ++i) {
    if (!(record.maps[i] == loop::StorageMap{})) g_.params[i].map = record.maps[i];
  }
  active_.resize(g_.loops.size());
  grid_coordinate_.assign(g_.loops.size(), -1);
  frames_.emplace_back();
}

Result<void> Lowerer::check_record() const {
  if (record_.loops.size() != g_.loops.size())
    return internal_error("a record does not fit its group");
  for (std::size_t i = 0; i < g_.loops.size(); ++i) {
    const auto& p = record_.loops[i];
    const bool good = p.axis >= -1 && p.axis <= 1 && p.tile >= 1 && p.block >= 1 &&
                      (p.axis < 0 || g_.loops[i].kind != loop::LoopKind::Serial) &&
                      (!p.grid || g_.loops[i].kind == loop::LoopKind::Parallel) &&
                      (!p.unrolled || (p.axis < 0 && !p.grid && g_.loops[i].extent.is_const())) &&
                      (!p.in_word || (p.axis < 0 && !p.unrolled && loop::in_word(g_, static_cast<LoopId>(i)))) &&
                      (p.depth == 1 || (p.depth > 1 && p.axis < 0 && !p.unrolled && !p.in_word &&
                                        g_.loops[i].kind == loop::LoopKind::Reduce)) &&
                      p.grid == (std::count(record_.grid_order.begin(), record_.grid_order.end(),
                                            static_cast<int>(i)) == 1);
    if (!good) return internal_error(fmt::format("the plan of i{} is not possible", i));
  }
  // Grid loops are the first ones of the chain of only statements from the root.
  std::size_t found = 0;
  const std::vector<Stmt>* body = &g_.body;
  while (body->size() == 1 && body->front().kind == Stmt::Kind::Loop &&
         record_.loops[body->front().id].grid) {
    ++found;
    body = &body->front().body;
  }
  if (found != record_.grid_order.size()) return internal_error("a loop on the grid has siblings");
  for (const auto& p : g_.params) {
    if (bits(p.dtype) < 8)
      return unsupported("dtype", fmt::format("kernels on packed {} elements", name(p.dtype)));
    if (p.role == Role::OnChip && !loop::storage_elements(p.shape, p.map).is_const()) {
      return unsupported("on-chip-size", "an on-chip buffer of symbolic size");
    }
  }
  return {};
}

void Lowerer::declare_buffers() {
  std::vector<bool> read(g_.params.size()), written(g_.params.size());
  for (const auto& e : g_.exprs()) {
    if (e.op == loop::Op::Load || e.op == loop::Op::LoadIf) read[e.id] = true;
  }
  const auto visit = [&](const auto& self, const std::vector<Stmt>& body) -> void {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Store) {
        written[s.id] = true;
        if (s.combine != Combine::None) read[s.id] = true;
      }
      if (s.kind == Stmt::Kind::Update || s.kind == Stmt::Kind::Set) changing_.insert(s.id);
      self(self, s.body);
    }
  };
  visit(visit, g_.body);
  buffer_of_.assign(g_.params.size(), -1);
  homes_ = loop::on_chip_homes(g_);
  own_.assign(g_.params.size(), 1);
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    for (LoopId l : homes_[i]) own_[i] *= tile(l);
  }
  for (const bool on_chip : {false, true}) {
    for (std::size_t i = 0; i < g_.params.size(); ++i) {
      const auto& p = g_.params[i];
      if ((p.role == Role::OnChip) != on_chip) continue;
      ssa::Buffer buffer{p.dtype, on_chip ? ssa::Space::OnChip : ssa::Space::Memory, read[i],
                         written[i], 0};
      if (on_chip) buffer.elements = loop::storage_elements(p.shape, p.map).value() * own_[i];
      buffer_of_[i] = b_.add_buffer(buffer);
      if (!on_chip) buffers_.push_back(static_cast<ParamId>(i));
    }
  }
  for (std::size_t i = 0; i < g_.loops.size(); ++i)
    any_tile_ = any_tile_ || tiled(static_cast<LoopId>(i));
}

// Puts the grid loops into the record's order, which they may take because they are parallel and
// perfectly nested.
void Lowerer::order_grid() {
  if (record_.grid_order.empty()) return;
  std::vector<Stmt> body = std::move(g_.body);
  for (std::size_t i = 0; i < record_.grid_order.size(); ++i) {
    std::vector<Stmt> inner = std::move(body.front().body);
    body = std::move(inner);
  }
  for (std::size_t i = record_.grid_order.size(); i-- > 0;) {
    Stmt s = loop::loop_stmt(record_.grid_order[i], std::move(body));
    body.clear();
    body.push_back(std::move(s));
  }
  g_.body = std::move(body);
}

// program_id = mixed radix over the grid loops' block counts, the last of grid_order fastest.
void Lowerer::split_grid() {
  if (record_.grid_order.empty()) return;
  ValueId rest = b_.program_id();
  std::size_t slowest = 0;
  while (slowest + 1 < record_.grid_order.size() && schedule::grid_blocks(g_, record_, record_.grid_order[slowest]).is(1)) ++slowest;
  for (std::size_t i = record_.grid_order.size(); i-- > 0;) {
    const LoopId id = record_.grid_order[i];
    const Dim count = schedule::grid_blocks(g_, record_, id);
    if (count.is(1)) {
      grid_coordinate_[id] = b_.constant_i64(0);
    } else if (i == slowest) {
      grid_coordinate_[id] = rest;
    } else {
      grid_coordinate_[id] = b_.scalar(ScalarOp::Mod, {rest, size(count)});
      rest = b_.scalar(ScalarOp::FloorDiv, {rest, size(count)});
    }
  }
}

Result<Lowered> Lowerer::run() {
  WEFT_TRY(check_record());
  declare_buffers();
  order_grid();
  split_grid();
  block(g_.body);
  Lowered result;
  result.function = b_.finish();
  ssa::eliminate_dead(result.function);
  result.buffers = std::move(buffers_);
  result.sizes = std::move(sizes_);
  result.grid = schedule::grid_size(g_, record_);
  return result;
}

void Lowerer::block(const std::vector<Stmt>& body) {
  std::set<LocalId> declared;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (const auto rows = finished_apart(body, i)) {
      finish_apart(body, i, *rows);
      break;
    }
    if (body[i].kind == Stmt::Kind::Local) declared.insert(body[i].id);
    statement(body[i]);
  }
  forget(declared, {});
  for (LocalId id : declared) locals_.erase(id);
}

void Lowerer::statement(const Stmt& s) {
  switch (s.kind) {
    case Stmt::Kind::Loop:
      return loop(s);
    case Stmt::Kind::Local:
      return declare(s);
    case Stmt::Kind::Update:
      return update(s);
    case Stmt::Kind::Set: {
      Local& local = locals_.at(s.id);
      const ValueId v = eval(s.value);
      local.value = as(v, local.type);
      return forget({s.id}, {});
    }
    case Stmt::Kind::Store:
      return store(s);
  }
}

// A local that changes has the shape of all tiled loops around it; one that doesn't, that of its
// value.
void Lowerer::declare(const Stmt& s) {
  const ValueId v = eval(s.value);
  Local local;
  local.type = b_.type(v);
  if (changing_.count(s.id)) {
    local.type = any_tile_ ? Type::tile(g_.locals[s.id], 1, 1) : Type::scalar(g_.locals[s.id]);
    for (LoopId l : stack_) {
      if (tiled(l)) local.type.shape[record_.loops[l].axis] = tile(l);
    }
  }
  local.value = as(v, local.type);
  forget({s.id}, {});
  locals_[s.id] = local;
}

// acc + a * b as a dot of a column and a row, or as multiply-add.
ValueId Lowerer::multiply_add(const Stmt& s, ValueId acc) {
  const loop::Expr e = g_.expr(s.value);
  ValueId a = eval(e.args[0]), b = eval(e.args[1]);
  const Type type = b_.type(acc);
  const auto column = [&](ValueId v) {
    return b_.type(v).rank == 2 && type.shape[0] > 1 &&
           b_.type(v).shape == std::array<std::int32_t, 2>{type.shape[0], 1};
  };
  const auto row = [&](ValueId v) {
    return b_.type(v).rank == 2 && type.shape[1] > 1 &&
           b_.type(v).shape == std::array<std::int32_t, 2>{1, type.shape[1]};
  };
  if (row(a) && column(b)) std::swap(a, b);
  if (column(a) && row(b)) return b_.dot(a, b, acc);
  if (!is_float(e.dtype)) return b_.add(acc, b_.mul(a, b));
  return b_.scalar(ScalarOp::Fma, {a, b, acc});
}

// acc + a . b over the steps of a word, which the innermost loop is: its variable runs along the lanes of a, and along the
// rows of b.
ValueId Lowerer::multiply_words(const Stmt& s, ValueId acc) {
  const LoopId word = stack_.back();
  const auto product = loop::word_product(g_, s);
  WEFT_CHECK(product && g_.loops[word].extent.is(product->steps), "a word of what is no product in words");
  const int steps = product->steps;
  const Type type = b_.type(acc);
  ExprId a = product->a, b = product->b;
  if (over_lanes(a)) std::swap(a, b);
  if (const auto deep = deep_loop()) return multiply_deep_words(a, b, acc, *deep, word);
  const ValueId left = along(word, b_.iota(1, steps, 1), a, type.shape[0], steps);
  const ValueId right = along(word, b_.iota(steps, 1, 0), b, steps, type.shape[1]);
  return b_.dot(left, right, acc);
}

// The same over several words, which the loop around that of a word's steps counts.
ValueId Lowerer::multiply_deep_words(ExprId a, ExprId b, ValueId acc, LoopId deep, LoopId word) {
  const int side = static_cast<int>(g_.loops[word].extent.value()), steps = record_.loops[deep].depth * side;
  const Type type = b_.type(acc);
  const ValueId base = active_[deep]->index;
  const auto operand = [&](ExprId e, ValueId step, int rows, int columns) {
    active_[deep]->index = b_.add(base, b_.scalar(ScalarOp::FloorDiv, {step, b_.constant_i64(side)}));
    const ValueId v = along(word, b_.scalar(ScalarOp::Mod, {step, b_.constant_i64(side)}), e, rows, columns);
    active_[deep]->index = base;
    return v;
  };
  const ValueId over = b_.iota(1, steps, 1);
  const ValueId left = run_on(a, deep, word) ? along(word, over, a, type.shape[0], steps) : operand(a, over, type.shape[0], steps);
  return b_.dot(left, operand(b, b_.iota(steps, 1, 0), steps, type.shape[1]), acc);
}

// Whether all that an expression knows of the two loops are addresses in which a word follows the one before: the inner
// loop may then count on.
bool Lowerer::run_on(ExprId e, LoopId deep, LoopId word) {
  std::vector<ExprId> open{e};
  while (!open.empty()) {
    const ExprId at = open.back();
    open.pop_back();
    if (!depends(at).loops[deep] && !depends(at).loops[word]) continue;
    const loop::Expr x = g_.expr(at);
    if (x.op == LOp::Index) return false;
    if (x.op != LOp::Load && x.op != LOp::LoadIf) {
      open.insert(open.end(), x.args.begin(), x.args.end());
      continue;
    }
    if (x.op == LOp::LoadIf) open.push_back(x.args[0]);
    Dim of_deep, of_word;
    for (const auto& [atom, c] : address(at).terms) {
      const loop::Expr& term = g_.expr(atom);
      if (term.op == LOp::Index && term.id == deep) of_deep = c;
      else if (term.op == LOp::Index && term.id == word) of_word = c;
      else if (depends(atom).loops[deep] || depends(atom).loops[word]) return false;
    }
    if (!(of_deep == of_word * g_.loops[word].extent)) return false;
  }
  return true;
}

bool Lowerer::over_lanes(ExprId e) {
  return std::any_of(stack_.begin(), stack_.end(), [&](LoopId l) { return record_.loops[l].axis == 1 && depends(e).loops[l]; });
}

// An expression where the loop's variable is a tile of indices.
ValueId Lowerer::along(LoopId loop, ValueId index, ExprId e, int rows, int columns) {
  if (const auto it = tiles_along_.find({e, index}); it != tiles_along_.end()) return it->second;
  const ValueId before = std::exchange(active_[loop]->index, index);
  frames_.emplace_back();
  const ValueId v = eval(e);
  frames_.pop_back();
  active_[loop]->index = before;
  return tiles_along_[{e, index}] = as(v, Type::tile(g_.expr(e).dtype, rows, columns));
}

std::optional<LoopId> Lowerer::deep_loop() const {
  const auto found = std::find_if(stack_.begin(), stack_.end(), [&](LoopId l) { return record_.loops[l].depth > 1; });
  return found == stack_.end() ? std::nullopt : std::optional(*found);
}

// acc + a . b over several steps of a loop: its variable runs along the lanes of a, and along the rows of b.
ValueId Lowerer::multiply_deep(const Stmt& s, ValueId acc, LoopId deep) {
  const Type type = b_.type(acc);
  const int steps = record_.loops[deep].depth;
  ExprId a = g_.expr(s.value).args[0], b = g_.expr(s.value).args[1];
  if (over_lanes(a)) std::swap(a, b);
  // What was only widened to be multiplied is multiplied as it is.
  const auto narrow = [&](ExprId e) { return g_.expr(e).op == loop::Op::Cast ? g_.expr(e).args[0] : e; };
  const DType of_a = g_.expr(narrow(a)).dtype, of_b = g_.expr(narrow(b)).dtype;
  if (of_a == of_b && (of_a == DType::F16 || of_a == DType::BF16)) a = narrow(a), b = narrow(b);
  const ValueId base = active_[deep]->base;
  const ValueId last = size(g_.loops[deep].extent - 1);
  const auto index = [&](ValueId steps_of) {
    const ValueId at = b_.add(base, steps_of);
    return active_[deep]->cut ? b_.min(at, last) : at;
  };
  const ValueId over = b_.iota(1, steps, 1);
  ValueId left = along(deep, index(over), a, type.shape[0], steps);
  if (active_[deep]->cut) {  // steps past the end contribute nothing
    const ValueId real = b_.scalar(ScalarOp::Le, {b_.add(base, over), last});
    left = b_.select(real, left, b_.constant(b_.type(left).dtype, 0));
    const ValueId right = along(deep, index(b_.iota(steps, 1, 0)), b, steps, type.shape[1]);
    const ValueId rows = b_.scalar(ScalarOp::Le, {b_.add(base, b_.iota(steps, 1, 0)), last});
    return b_.dot(left, b_.select(rows, right, b_.constant(b_.type(right).dtype, 0)), acc);
  }
  return b_.dot(left, along(deep, index(b_.iota(steps, 1, 0)), b, steps, type.shape[1]), acc);
}

void Lowerer::update(const Stmt& s) {
  Local& local = locals_.at(s.id);
  // Elements past the end of a reduce loop contribute nothing.
  ValueId mask = -1;
  for (LoopId l : stack_) {
    if (g_.loops[l].kind == loop::LoopKind::Reduce && local.accumulating)
      mask = both(mask, active_[l]->mask);
  }
  ValueId next = -1;
  if (!stack_.empty() && record_.loops[stack_.back()].in_word) {
    WEFT_CHECK(mask < 0, "a word is whole");
    next = multiply_words(s, local.value);
  } else if (const auto deep = deep_loop()) {
    WEFT_CHECK(mask < 0 && s.combine == Combine::Sum && g_.expr(s.value).op == loop::Op::Mul, "a deep loop of what is no product");
    next = multiply_deep(s, local.value, *deep);
  } else if (mask < 0 && s.combine == Combine::Sum && g_.expr(s.value).op == loop::Op::Mul) {
    next = multiply_add(s, local.value);
  } else {
    ValueId v = eval(s.value);
    if (mask >= 0) v = b_.select(mask, v, identity(s.combine, g_.locals[s.id]));
    next = combined(s.combine, local.value, v);
  }
  Local& now = locals_.at(s.id);
  now.value = as(next, now.type);
  forget({s.id}, {});
}

void Lowerer::store(const Stmt& s) {
  ValueId v = eval(s.value);
  const loop::Linear form = address_of(s.id, s.index);
  for (const auto& [atom, c] : form.terms) eval(atom);
  const bool across = lies_transposed(s.id, form);
  ValueId index = own_tile(s.id, emit_address(form));
  const bool on_chip = g_.params[s.id].role == Role::OnChip;
  ValueId mask = -1;
  Type shape = Type::scalar(DType::I64);
  for (LoopId l : stack_) {
    if (!tiled(l) || (g_.loops[l].kind == loop::LoopKind::Reduce && !on_chip)) continue;
    shape = join(shape, b_.type(active_[l]->index));
    WEFT_CHECK(b_.type(index).shape[record_.loops[l].axis] == tile(l),
               "a store does not depend on a tiled loop around it");
    if (!at_home(s.id, l)) mask = both(mask, active_[l]->mask);
  }
  shape.rank = std::max(shape.rank, b_.type(v).rank);
  index = as(index, join(shape, b_.type(index)));
  const int buffer = buffer_of_[s.id];
  if (across && s.combine == Combine::None) {
    const ValueId value = b_.transpose(as(v, b_.type(index)));
    index = emit_address(form, true);
    const ValueId rows = mask < 0 ? -1 : lane_mask_of_rows();  // first: types move when values are made
    b_.store(buffer, value, index, mask < 0 ? -1 : as(rows, b_.type(index)));
    return forget({}, {s.id});
  }
  if (mask >= 0) mask = as(mask, b_.type(index));
  if (s.combine != Combine::None) {
    const DType stored = b_.type(v).dtype;
    const DType computed = is_float(stored) && bits(stored) < 32 ? DType::F32 : stored;
    v = b_.cast(combined(s.combine, b_.cast(b_.load(buffer, index, mask), computed), b_.cast(v, computed)), stored);
  }
  b_.store(buffer, as(v, b_.type(index)), index, mask);
  forget({}, {s.id});
}

Result<Lowered> lower(const loop::Group& group, const schedule::Record& record) {
  return Lowerer(group, record).run();
}

}  // namespace weft::tile
