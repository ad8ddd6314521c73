#include "api/tile/recorder.h"

#include "api/tile/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weft::tile {
namespace {

thread_local Recorder* current_recorder = nullptr;

bool is_narrow(DType t) { return is_float(t) && bits(t) < 32; }

// Values that a loop carries without changing them are those from before it.
void substitute(ssa::Block& block, const std::vector<ValueId>& by) {
  const auto replace = [&](std::vector<ValueId>& values) {
    for (ValueId& v : values) {
      while (by[v] >= 0) v = by[v];
    }
  };
  for (ssa::Inst& inst : block.insts) {
    replace(inst.operands);
    for (ssa::Block& region : inst.regions) substitute(region, by);
  }
  replace(block.yields);
}

void find_unchanged(ssa::Block& block, std::vector<ValueId>& by) {
  for (ssa::Inst& inst : block.insts) {
    for (ssa::Block& region : inst.regions) find_unchanged(region, by);
    if (static_cast<Op>(inst.op) != Op::For) continue;
    ssa::Block& body = inst.regions[0];
    for (std::size_t i = inst.results.size(); i-- > 0;) {
      ValueId next = body.yields[i];
      while (by[next] >= 0) next = by[next];
      if (next != body.args[i + 1]) continue;
      by[body.args[i + 1]] = by[inst.results[i]] = inst.operands[i + 3];
      body.args.erase(body.args.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      body.yields.erase(body.yields.begin() + static_cast<std::ptrdiff_t>(i));
      inst.results.erase(inst.results.begin() + static_cast<std::ptrdiff_t>(i));
      inst.operands.erase(inst.operands.begin() + static_cast<std::ptrdiff_t>(i) + 3);
    }
  }
}

void drop_unchanged(Function& f) {
  std::vector<ValueId> by(f.types.size(), -1);
  find_unchanged(f.body, by);
  substitute(f.body, by);
}

}  // namespace

Recorder::Recorder(std::string name) : b_(std::move(name)), outer_(current_recorder) { current_recorder = this; }
Recorder::~Recorder() { current_recorder = outer_; }

Recorder& Recorder::current() {
  WEFT_CHECK(current_recorder != nullptr, "tiles exist only in the body of a kernel");
  return *current_recorder;
}

Recorded Recorder::finish() {
  Recorded r;
  r.parameters = std::move(parameters_);
  r.checks = std::move(checks_);
  r.prints = std::move(prints_);
  r.error = std::move(error_);
  if (r.error) return r;
  r.function = b_.finish();
  drop_unchanged(r.function);
  eliminate_dead(r.function);
  if (auto well = verify(r.function); !well.ok()) r.error = well.error();
  return r;
}

void Recorder::fail(std::string message) {
  if (!error_) error_ = user_error("tile-kernel", std::move(message)).at(b_.function().name);
}

int Recorder::add_memory(DType dtype, bool read, bool written) {
  parameters_.push_back({false, buffers_++});
  return b_.add_buffer({dtype, ssa::Space::Memory, read, written, 0});
}

ValueId Recorder::add_number() {
  const int number = b_.add_size();
  parameters_.push_back({true, number});
  return b_.size(number);
}

Tile Recorder::zero() { return Tile(0.0); }

bool Recorder::is_open(int scope) const { return std::find(scopes_.begin(), scopes_.end(), scope) != scopes_.end(); }

void Recorder::run_new() {
  if (!stepper_) return;
  const auto& insts = b_.function().body.insts;
  for (; run_ < insts.size() && !error_; ++run_) {
    const auto done = stepper_->run(insts[run_]);
    if (!done.ok()) error_ = done.error();
  }
}

// The builder answers with values that may be used here, be they new or from an enclosing scope.
Tile Recorder::tile(ValueId v) {
  run_new();
  if (scope_of_.size() <= static_cast<std::size_t>(v)) scope_of_.resize(v + 1, -1);
  if (scope_of_[v] < 0 || !is_open(scope_of_[v])) scope_of_[v] = scopes_.back();
  return Tile(v, Tile::Kind::Value);
}

ValueId Recorder::value(const Tile& x, std::optional<DType> number_type) {
  if (!is_number(x)) {
    const auto v = static_cast<std::size_t>(x.value_);
    if (v < scope_of_.size() && is_open(scope_of_[v])) return x.value_;
    fail("a tile made in a loop or branch is used after it; what leaves one is a Var");
    return b_.constant(DType::F32, 0);
  }
  const bool real = x.kind_ == Tile::Kind::Real;
  const DType t = number_type.value_or(real ? DType::F32 : DType::I64);
  if (is_float(t)) return b_.constant(t, x.real_);
  if (real && static_cast<double>(x.integer_) != x.real_) fail(fmt::format("{} meets {}", x.real_, name(t)));
  return b_.constant_i64(x.integer_, t);
}

Type Recorder::type(const Tile& x) {
  if (is_number(x)) return Type::scalar(x.kind_ == Tile::Kind::Real ? DType::F32 : DType::I64);
  return failed() ? Type::scalar(DType::F32) : b_.type(x.value_);
}

Scalar Recorder::known(const Tile& x, int row, int column) {
  if (is_number(x)) return {x.real_, x.integer_};
  if (!stepper_ || failed()) return {};
  const Type t = type(x);
  const int r = t.shape[0] == 1 ? 0 : row, c = t.shape[1] == 1 ? 0 : column;
  if (r < 0 || c < 0 || r >= t.shape[0] || c >= t.shape[1]) {
    fail(fmt::format("element ({}, {}) of a tile of {}", row, column, str(t)));
    return {};
  }
  return stepper_->value(x.value_)[static_cast<std::size_t>(r) * t.shape[1] + c];
}

ValueId Recorder::widened(ValueId v) { return is_narrow(b_.type(v).dtype) ? b_.cast(v, DType::F32) : v; }

std::optional<Type> Recorder::united(const char* what, const std::vector<Type>& types) {
  Type all = types[0];
  for (const Type& t : types) {
    if (t.rank == 2 && all.rank == 0) all = t.with(all.dtype);
    for (int axis = 0; axis < 2 && t.rank == 2; ++axis) {
      if (all.shape[axis] == 1) all.shape[axis] = t.shape[axis];
      if (t.shape[axis] == 1 || t.shape[axis] == all.shape[axis]) continue;
      fail(fmt::format("{}: sizes differ: {} and {}", what, str(types[0]), str(t)));
      return std::nullopt;
    }
  }
  return all;
}

std::optional<DType> Recorder::common_type(const char* what, const std::vector<const Tile*>& operands, std::size_t from) {
  std::optional<DType> found;
  bool real = false;
  for (std::size_t i = from; i < operands.size(); ++i) {
    if (is_number(*operands[i])) {
      real = real || type(*operands[i]).dtype == DType::F32;
      continue;
    }
    const DType t = is_narrow(type(*operands[i]).dtype) ? DType::F32 : type(*operands[i]).dtype;
    if (found && *found != t) {
      fail(fmt::format("{}: {} and {}: cast one", what, name(*found), name(t)));
      return std::nullopt;
    }
    found = t;
  }
  return found ? found : real ? DType::F32 : DType::I64;
}

Tile Recorder::scalar(ScalarOp op, const std::vector<const Tile*>& operands) {
  if (failed()) return zero();
  const ScalarOpInfo& row = info(op);
  const std::size_t from = row.result == ScalarResult::Select ? 1 : 0;
  const auto t = common_type(row.name, operands, from);
  if (!t) return zero();
  if (!accepts(op, *t)) return fail(fmt::format("{} of {}", row.name, name(*t))), zero();
  std::vector<ValueId> values;
  std::vector<Type> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values.push_back(widened(value(*operands[i], i < from ? DType::Bool : *t)));
    types.push_back(b_.type(values.back()));
    if (i < from && types.back().dtype != DType::Bool) fail(fmt::format("{} chooses by {}", row.name, name(types.back().dtype)));
  }
  if (failed() || !united(row.name, types)) return zero();
  return tile(b_.scalar(op, std::move(values)));
}

Tile Recorder::cast(const Tile& x, DType dtype, bool bits_only) {
  if (failed()) return zero();
  if (is_complex(dtype) || is_string(dtype)) return fail(fmt::format("cast to {}", name(dtype))), zero();
  if (!bits_only) return tile(is_number(x) ? value(x, dtype) : b_.cast(value(x), dtype));
  const DType from = type(x).dtype;
  if (bits(from) != bits(dtype) || is_bool(from) || is_bool(dtype))
    return fail(fmt::format("the bits of {} as {}", name(from), name(dtype))), zero();
  return tile(b_.bitcast(value(x), dtype));
}

bool Recorder::is_axis(const char* what, int axis) {
  if (axis == 0 || axis == 1) return true;
  fail(fmt::format("{}: axis {}; there are 0 (rows) and 1 (lanes)", what, axis));
  return false;
}

Tile Recorder::reduce(const char* what, Combine combine, const Tile& x, int axis) {
  if (failed() || !is_axis(what, axis)) return zero();
  const ValueId v = widened(value(x));
  const bool logical = combine == Combine::And || combine == Combine::Or;
  if (logical != is_bool(b_.type(v).dtype)) return fail(fmt::format("{} of {}", what, name(b_.type(v).dtype))), zero();
  return tile(b_.type(v).rank == 0 ? v : b_.reduce(combine, v, axis));
}

Tile Recorder::scan(const char* what, Combine combine, const Tile& x, int axis) {
  if (failed() || !is_axis(what, axis)) return zero();
  const ValueId v = widened(value(x));
  if (is_bool(b_.type(v).dtype)) return fail(fmt::format("{} of bool", what)), zero();
  return tile(b_.type(v).rank == 0 ? v : b_.scan(combine, v, axis));
}

Tile Recorder::dot(const Tile& a, const Tile& b, const Tile* acc) {
  if (failed()) return zero();
  const ValueId left = value(a), right = value(b);
  const Type x = b_.type(left), y = b_.type(right);
  const bool fits = x.rank == 2 && y.rank == 2 && x.shape[1] == y.shape[0];
  if (!fits) return fail(fmt::format("dot: {} and {}; wanted are [r, k] and [k, c]", str(x), str(y))), zero();
  const DType wide = !is_float(x.dtype) ? (bits(x.dtype) == 64 ? DType::I64 : DType::I32)
                                        : x.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Type result = Type::tile(wide, x.shape[0], y.shape[1]);
  const ValueId sum = acc ? value(*acc) : b_.broadcast(b_.constant(wide, 0), result.shape[0], result.shape[1]);
  const Type s = b_.type(sum);
  if (s.rank != 2 || s.shape != result.shape)
    return fail(fmt::format("dot: the accumulator is {}; wanted is {}", str(s), str(result))), zero();
  for (const DType t : {x.dtype, y.dtype}) {
    if (is_bool(t) || is_float(t) != is_float(s.dtype) || bits(t) > bits(s.dtype))
      return fail(fmt::format("dot: {} into {}", name(t), name(s.dtype))), zero();
  }
  return tile(b_.dot(left, right, sum));
}

Tile Recorder::program_id() { return failed() ? zero() : tile(b_.program_id()); }

Tile Recorder::iota(int rows, int columns, int axis) {
  if (failed()) return zero();
  if (rows < 1 || columns < 1) return fail(fmt::format("{} indices", std::min(rows, columns))), zero();
  return tile(b_.iota(rows, columns, axis));
}

Tile Recorder::broadcast(const char* what, const Tile& x, int rows, int columns) {
  if (failed()) return zero();
  const ValueId v = value(x);
  const Type from = b_.type(v), to = Type::tile(from.dtype, rows, columns);
  const bool fits = rows >= 1 && columns >= 1 && (from.rank == 0 || ((from.shape[0] == 1 || from.shape[0] == rows) &&
                                                                   (from.shape[1] == 1 || from.shape[1] == columns)));
  if (!fits) return fail(fmt::format("{}: {} does not stretch to {}", what, str(from), str(to))), zero();
  return tile(b_.broadcast(v, rows, columns));
}

Tile Recorder::transpose(const Tile& x) { return failed() ? zero() : tile(b_.transpose(value(x))); }

std::optional<Recorder::Access> Recorder::access(const char* what, const Tile& index, const Tile& mask) {
  Access a;
  a.index = value(index, DType::I64);
  a.mask = value(mask, DType::Bool);
  const DType t = b_.type(a.index).dtype;
  if (!is_int(t)) return fail(fmt::format("{}: an index of {}", what, name(t))), std::nullopt;
  if (!is_bool(b_.type(a.mask).dtype)) return fail(fmt::format("{}: a mask of {}", what, name(b_.type(a.mask).dtype))), std::nullopt;
  a.index = b_.cast(a.index, DType::I64);
  const auto all = united(what, {b_.type(a.index), b_.type(a.mask)});
  if (!all) return std::nullopt;
  a.shape = *all;
  if (b_.type(a.index) != *all) a.index = b_.broadcast(a.index, all->shape[0], all->shape[1]);
  return a;
}

Tile Recorder::load(int buffer, const Tile& index, const Tile& mask) {
  if (failed()) return zero();
  if (!b_.function().buffers[buffer].read) return fail("load: the parameter is an Out"), zero();
  const auto a = access("load", index, mask);
  return a ? tile(b_.load(buffer, a->index, a->mask)) : zero();
}

ValueId Recorder::into(ValueId v, DType dtype, const char* what) {
  const DType t = b_.type(v).dtype;
  const bool same_kind = is_bool(t) == is_bool(dtype) && is_float(t) == is_float(dtype);
  const bool rounds = t == DType::F32 && is_narrow(dtype);
  if (t != dtype && !(same_kind && rounds)) fail(fmt::format("{}: {} into a memory of {}: cast it", what, name(t), name(dtype)));
  return b_.cast(v, dtype);
}

void Recorder::store(int buffer, const Tile& index, const Tile& x, const Tile& mask) {
  if (failed()) return;
  const ssa::Buffer& memory = b_.function().buffers[buffer];
  if (!memory.written) return fail("store: the parameter is an In");
  const ValueId v = into(value(x, memory.dtype), memory.dtype, "store");
  const auto a = access("store", index, mask);
  if (!a) return;
  const auto all = united("store", {a->shape, b_.type(v)});
  if (!all) return;
  if (*all != a->shape.with(all->dtype) && b_.type(v).elements() > 1)
    return fail(fmt::format("store: a value of {} at an index of {}", str(b_.type(v)), str(a->shape)));
  b_.store(buffer, v, a->index, a->mask);
  run_new();
}

Tile Recorder::atomic(Combine combine, int buffer, const Tile& index, const Tile& x, const Tile& mask) {
  if (failed()) return zero();
  const ssa::Buffer& memory = b_.function().buffers[buffer];
  if (!memory.written || !memory.read) return fail("atomics: the parameter is not an InOut"), zero();
  if (!atomic_on(memory.dtype, combine)) return fail(fmt::format("there is no such atomic on {}", name(memory.dtype))), zero();
  const ValueId v = into(value(x, memory.dtype), memory.dtype, "atomics");
  auto a = access("atomics", index, mask);
  if (!a) return zero();
  const auto all = united("atomics", {a->shape, b_.type(v)});
  if (!all) return zero();
  if (all->rank == 2) a->index = b_.broadcast(a->index, all->shape[0], all->shape[1]);
  return tile(b_.atomic(combine, buffer, v, a->index, a->mask));
}

void Recorder::check(const Tile& condition, const std::string& message) {
  if (failed()) return;
  const ValueId v = value(condition, DType::Bool);
  if (!is_bool(b_.type(v).dtype)) return fail(fmt::format("check of {}", name(b_.type(v).dtype)));
  checks_.push_back(message);
  b_.check(v, static_cast<int>(checks_.size()));
  run_new();
}

void Recorder::print(const std::string& label, const Tile& x) {
  if (failed()) return;
  ValueId v = widened(value(x));
  const PrintSite site{label, b_.type(v)};
  if (stepper_) {
    const Tile shown = tile(v);
    if (!failed()) show_print(site, program_, [&](std::int64_t i) { return stepper_->value(shown.value_)[i]; });
    return;
  }
  if (print_buffer_ < 0) {
    print_buffer_ = b_.add_buffer({DType::I32, ssa::Space::Memory, true, true, 0});
    b_.add_buffer({DType::I64, ssa::Space::Memory, false, true, 0});
  }
  const DType t = site.type.dtype;
  if (is_float(t)) v = b_.bitcast(v, bits(t) == 64 ? DType::I64 : DType::I32);
  v = b_.cast(v, DType::I64);
  const ValueId words = b_.constant_i64(site.words()), zero = b_.constant_i64(0);
  const ValueId first = b_.cast(b_.atomic(Combine::Sum, print_buffer_, b_.cast(words, DType::I32), zero), DType::I64);
  const ValueId room = b_.scalar(ScalarOp::Le, {b_.add(first, words), b_.constant_i64(kPrintWords)});
  const int out = print_buffer_ + 1;
  b_.store(out, b_.constant_i64(static_cast<std::int64_t>(prints_.size())), first, room);
  b_.store(out, b_.program_id(), b_.add(first, b_.constant_i64(1)), room);
  ValueId place = b_.add(first, b_.constant_i64(2));
  if (site.type.rank == 2) {
    const int rows = site.type.shape[0], columns = site.type.shape[1];
    place = b_.add(place, b_.add(b_.mul(b_.iota(rows, columns, 0), b_.constant_i64(columns)), b_.iota(rows, columns, 1)));
  }
  b_.store(out, v, place, room);
  prints_.push_back(site);
}

std::vector<ValueId> Recorder::values_of_vars() const {
  std::vector<ValueId> values;
  for (const Var* var : vars_) values.push_back(var->value_);
  return values;
}

void Recorder::set_vars(const std::vector<ValueId>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    tile(values[i]);
    vars_[i]->value_ = values[i];
  }
}

void Recorder::add(Var& var, const Tile& initial) {
  const ValueId v = value(initial);
  tile(v);
  var.value_ = v;
  var.kind_ = Tile::Kind::Value;
  vars_.push_back(&var);
}

void Recorder::remove(Var& var) { vars_.erase(std::remove(vars_.begin(), vars_.end(), &var), vars_.end()); }

void Recorder::assign(Var& var, const Tile& x) {
  if (failed()) return;
  const Type to = b_.type(var.value_);
  ValueId v = value(x, to.dtype);
  if (b_.type(v).dtype != to.dtype) return fail(fmt::format("a variable of {} cannot become {}", str(to), str(b_.type(v))));
  if (b_.type(v) != to) {
    const Tile wide = broadcast("assignment", tile(v), to.shape[0], to.shape[1]);
    if (failed()) return;
    v = value(wide);
  }
  tile(v);
  var.value_ = v;
}

void Recorder::begin_loop(Range& range) {
  if (failed()) return;
  const ValueId lo = value(range.lo_, DType::I64), hi = value(range.hi_, DType::I64), step = value(range.step_, DType::I64);
  for (const ValueId v : {lo, hi, step}) {
    if (b_.type(v) != Type::scalar(DType::I64)) return fail(fmt::format("range: {} instead of an i64 scalar", str(b_.type(v))));
  }
  auto loop = b_.begin_for(lo, hi, step, values_of_vars());
  open_scope();
  tile(loop.iv);
  range.counter_ = loop.iv;
  range.open_ = true;
  set_vars(loop.carried);
}

void Recorder::end_loop(Range& range) {
  range.open_ = false;
  if (failed()) return;
  const std::vector<ValueId> results = b_.end_for(values_of_vars());
  scopes_.pop_back();
  set_vars(results);
}

void Recorder::branch(const Tile& condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  if (failed()) return;
  const ValueId v = value(condition, DType::Bool);
  if (b_.type(v) != Type::scalar(DType::Bool)) return fail(fmt::format("when: {} instead of a bool scalar", str(b_.type(v))));
  if (stepper_) {
    const bool taken = known(tile(v), 0, 0).i != 0;
    if (taken) then();
    else if (otherwise) otherwise();
    return;
  }
  const std::vector<ValueId> before = values_of_vars();
  std::vector<Type> types;
  for (const ValueId var : before) types.push_back(b_.type(var));
  b_.begin_if(v, types);
  open_scope();
  then();
  if (failed()) return;
  const std::vector<ValueId> first = values_of_vars();
  b_.begin_else(first);
  scopes_.pop_back();
  open_scope();
  set_vars(before);
  if (otherwise) otherwise();
  if (failed()) return;
  const std::vector<ValueId> second = values_of_vars();
  std::vector<ValueId> results = b_.end_if(second);
  scopes_.pop_back();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (first[i] == before[i] && second[i] == before[i]) results[i] = before[i];
  }
  set_vars(results);
}

}  // namespace weft::tile
