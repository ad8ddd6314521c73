// The functions of weft/tile.h: each asks the recorder of the body that runs.
#include "api/tile/recorder.h"

namespace weft::tile {
namespace {

Recorder& now() { return Recorder::current(); }

}  // namespace

DType Tile::dtype() const { return now().type(*this).dtype; }
int Tile::rows() const { return now().type(*this).shape[0]; }
int Tile::columns() const { return now().type(*this).shape[1]; }
double Tile::at(int row, int column) const {
  const Scalar s = now().known(*this, row, column);
  return is_float(dtype()) ? s.f : static_cast<double>(s.i);
}

Var::Var(const Tile& initial) : Tile(initial) { now().add(*this, initial); }
Var::~Var() { now().remove(*this); }
Var& Var::operator=(const Tile& x) { return now().assign(*this, x), *this; }
Var& Var::operator+=(const Tile& x) { return *this = *this + x; }
Var& Var::operator-=(const Tile& x) { return *this = *this - x; }
Var& Var::operator*=(const Tile& x) { return *this = *this * x; }

Memory::Memory(Recorder& recorder, DType dtype, bool read, bool written)
    : buffer_(recorder.add_memory(dtype, read, written)) {}
Int::Int(Recorder& recorder) : Tile(recorder.tile(recorder.add_number())) {}

Tile program_id() { return now().program_id(); }
Tile lanes(int n) { return now().iota(1, n, 1); }
Tile rows(int n) { return now().iota(n, 1, 0); }
Tile full(DType dtype, int rows, int columns, const Tile& value) {
  return now().broadcast("full", now().cast(value, dtype, false), rows, columns);
}

Tile load(const Memory& memory, const Tile& index, const Tile& mask) { return now().load(memory.buffer(), index, mask); }
void store(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask) {
  now().store(memory.buffer(), index, value, mask);
}
Tile atomic_add(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask) {
  return now().atomic(Combine::Sum, memory.buffer(), index, value, mask);
}
Tile atomic_max(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask) {
  return now().atomic(Combine::Max, memory.buffer(), index, value, mask);
}
Tile atomic_min(const Memory& memory, const Tile& index, const Tile& value, const Tile& mask) {
  return now().atomic(Combine::Min, memory.buffer(), index, value, mask);
}

Tile Matrix::index(const Tile& i, const Tile& j) const { return offset_ + i * row_stride_ + j * column_stride_; }
Tile Matrix::inside(const Tile& i, const Tile& j) const { return (i < rows_) & (j < columns_) & (i >= 0) & (j >= 0); }
Tile Matrix::load(const Tile& i, const Tile& j) const { return tile::load(memory_, index(i, j), inside(i, j)); }
void Matrix::store(const Tile& i, const Tile& j, const Tile& value) const {
  tile::store(memory_, index(i, j), value, inside(i, j));
}

#define BINARY(function, op) \
  Tile function(const Tile& a, const Tile& b) { return now().scalar(ScalarOp::op, {&a, &b}); }
BINARY(operator+, Add)
BINARY(operator-, Sub)
BINARY(operator*, Mul)
BINARY(operator&, And)
BINARY(operator|, Or)
BINARY(operator^, Xor)
BINARY(operator<<, Shl)
BINARY(operator>>, Shr)
BINARY(operator==, Eq)
BINARY(operator!=, Ne)
BINARY(operator<, Lt)
BINARY(operator<=, Le)
BINARY(operator>, Gt)
BINARY(operator>=, Ge)
BINARY(maximum, Max)
BINARY(minimum, Min)
BINARY(pow, Pow)
#undef BINARY
Tile operator/(const Tile& a, const Tile& b) {
  const Tile& typed = now().is_number(a) ? b : a;
  return now().scalar(is_int(typed.dtype()) ? ScalarOp::FloorDiv : ScalarOp::Div, {&a, &b});
}
Tile operator%(const Tile& a, const Tile& b) { return now().scalar(ScalarOp::Mod, {&a, &b}); }

#define UNARY(function, op) \
  Tile function(const Tile& x) { return now().scalar(ScalarOp::op, {&x}); }
UNARY(operator-, Neg)
UNARY(operator~, Not)
UNARY(operator!, Not)
UNARY(abs, Abs)
UNARY(floor, Floor)
UNARY(ceil, Ceil)
UNARY(round, Round)
UNARY(exp, Exp)
UNARY(log, Log)
UNARY(sqrt, Sqrt)
UNARY(rsqrt, Rsqrt)
UNARY(sin, Sin)
UNARY(cos, Cos)
UNARY(tanh, Tanh)
UNARY(erf, Erf)
UNARY(sigmoid, Sigmoid)
#undef UNARY
Tile fma(const Tile& a, const Tile& b, const Tile& c) { return now().scalar(ScalarOp::Fma, {&a, &b, &c}); }
Tile where(const Tile& condition, const Tile& a, const Tile& b) { return now().scalar(ScalarOp::Select, {&condition, &a, &b}); }
Tile cast(const Tile& x, DType dtype) { return now().cast(x, dtype, false); }
Tile bitcast(const Tile& x, DType dtype) { return now().cast(x, dtype, true); }

Tile sum(const Tile& x, int axis) { return now().reduce("sum", Combine::Sum, x, axis); }
Tile prod(const Tile& x, int axis) { return now().reduce("prod", Combine::Prod, x, axis); }
Tile max(const Tile& x, int axis) { return now().reduce("max", Combine::Max, x, axis); }
Tile min(const Tile& x, int axis) { return now().reduce("min", Combine::Min, x, axis); }
Tile any(const Tile& x, int axis) { return now().reduce("any", Combine::Or, x, axis); }
Tile all(const Tile& x, int axis) { return now().reduce("all", Combine::And, x, axis); }
Tile cumsum(const Tile& x, int axis) { return now().scan("cumsum", Combine::Sum, x, axis); }
Tile cumprod(const Tile& x, int axis) { return now().scan("cumprod", Combine::Prod, x, axis); }
Tile cummax(const Tile& x, int axis) { return now().scan("cummax", Combine::Max, x, axis); }

Tile broadcast(const Tile& x, int rows, int columns) { return now().broadcast("broadcast", x, rows, columns); }
Tile transpose(const Tile& x) { return now().transpose(x); }
Tile dot(const Tile& a, const Tile& b) { return now().dot(a, b, nullptr); }
Tile dot(const Tile& a, const Tile& b, const Tile& acc) { return now().dot(a, b, &acc); }

Range::Range(const Tile& lo, const Tile& hi, const Tile& step) : lo_(lo), hi_(hi), step_(step) {}

Range::~Range() {
  if (open_) now().fail("a loop over range() is left by break or return");
}

Range::Iterator Range::begin() {
  Recorder& r = now();
  if (r.debugging()) {
    at_ = r.known(lo_, 0, 0).i;
    if (r.known(step_, 0, 0).i <= 0) r.fail("range: a step of 0 or less");
  } else {
    r.begin_loop(*this);
  }
  more_ = !r.failed();
  return Iterator(*this);
}

Tile Range::Iterator::operator*() const {
  Recorder& r = now();
  return r.debugging() ? Tile(range_->at_) : r.tile(range_->counter_);
}

Range::Iterator& Range::Iterator::operator++() {
  Recorder& r = now();
  if (r.debugging()) {
    range_->more_ = !__builtin_add_overflow(range_->at_, r.known(range_->step_, 0, 0).i, &range_->at_) && !r.failed();
  } else {
    r.end_loop(*range_);
    range_->more_ = false;
  }
  return *this;
}

bool Range::Iterator::operator!=(End) const {
  Recorder& r = now();
  return range_->more_ && (!r.debugging() || range_->at_ < r.known(range_->hi_, 0, 0).i);
}

void when(const Tile& condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  now().branch(condition, then, otherwise);
}

void check(const Tile& condition, const std::string& message) { now().check(condition, message); }
void print(const std::string& label, const Tile& x) { now().print(label, x); }

}  // namespace weft::tile
