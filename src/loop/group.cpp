#include "loop/group.h"

#include <cstring>

#include "loop/fold.h"

namespace weft::loop {
namespace {

void mix(std::uint64_t& h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 32;
}

std::uint64_t float_bits(double v) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}

std::uint64_t hash_of(const Expr& e) {
  std::uint64_t h = 0;
  mix(h, static_cast<std::uint64_t>(e.op));
  mix(h, static_cast<std::uint64_t>(e.dtype));
  for (ExprId a : e.args) mix(h, static_cast<std::uint64_t>(a));
  mix(h, static_cast<std::uint64_t>(e.id));
  mix(h, float_bits(e.constant.f));
  mix(h, static_cast<std::uint64_t>(e.constant.i));
  mix(h, e.dim.hash());
  return h;
}

// One NaN, and only the field that the dtype uses, so that equal constants are equal.
Scalar canonical(DType t, Scalar v) {
  if (!is_float(t)) return {0, v.i};
  return {v.f != v.f ? __builtin_nan("") : v.f, 0};
}

}  // namespace

bool operator==(const Expr& a, const Expr& b) {
  return a.op == b.op && a.dtype == b.dtype && a.id == b.id && a.args == b.args &&
         float_bits(a.constant.f) == float_bits(b.constant.f) && a.constant.i == b.constant.i &&
         a.dim == b.dim;
}

Dim storage_elements(const Shape& shape, const StorageMap& map) {
  Dim n = 1;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    const bool split = map.panel > 0 && axis == map.panel_axis;
    n = n * (split ? ceil_div(shape[axis], Dim(map.panel)) * Dim(map.panel) : shape[axis]);
  }
  return n;
}

ExprId Group::add(Expr e) {
  if (as_scalar(e.op)) {
    if (const auto folded = fold(*this, e)) return *folded;
  }
  if (e.op == Op::Const) e.constant = canonical(e.dtype, e.constant);
  const std::uint64_t h = hash_of(e);
  const auto [first, last] = interned_.equal_range(h);
  for (auto it = first; it != last; ++it) {
    if (exprs_[it->second] == e) return it->second;
  }
  const auto id = static_cast<ExprId>(exprs_.size());
  exprs_.push_back(std::move(e));
  interned_.emplace(h, id);
  return id;
}

ExprId Group::constant(DType t, double value) {
  Expr e;
  e.op = Op::Const;
  e.dtype = t;
  const Scalar wide{value, static_cast<std::int64_t>(is_float(t) ? 0 : value)};
  e.constant = evaluate(ScalarOp::Cast, is_float(t) ? DType::F64 : DType::I64, t, {&wide, 1});
  return add(std::move(e));
}

ExprId Group::constant_i64(std::int64_t value, DType t) {
  if (is_float(t)) return constant(t, static_cast<double>(value));
  Expr e;
  e.op = Op::Const;
  e.dtype = t;
  const Scalar wide{0, value};
  e.constant = evaluate(ScalarOp::Cast, DType::I64, t, {&wide, 1});
  return add(std::move(e));
}

ExprId Group::size(Dim d) {
  if (d.is_const()) return constant_i64(d.value());
  Expr e;
  e.op = Op::Size;
  e.dtype = DType::I64;
  e.dim = std::move(d);
  return add(std::move(e));
}

ExprId Group::index(LoopId loop) {
  WEFT_CHECK(loop >= 0 && loop < static_cast<LoopId>(loops.size()), "index of an unknown loop");
  Expr e;
  e.op = Op::Index;
  e.dtype = DType::I64;
  e.id = loop;
  return add(std::move(e));
}

ExprId Group::local(LocalId local) {
  WEFT_CHECK(local >= 0 && local < static_cast<LocalId>(locals.size()), "unknown local");
  Expr e;
  e.op = Op::Local;
  e.dtype = locals[local];
  e.id = local;
  return add(std::move(e));
}

ExprId Group::scalar(ScalarOp op, DType result, std::vector<ExprId> args) {
  Expr e;
  e.op = from_scalar(op);
  e.dtype = result;
  e.args = std::move(args);
  return add(std::move(e));
}

ExprId Group::cast(ExprId x, DType t) { return scalar(ScalarOp::Cast, t, {x}); }

ExprId Group::require(ExprId value, ExprId condition, std::string message) {
  checks.push_back(std::move(message));
  Expr e;
  e.op = Op::Require;
  e.dtype = expr(value).dtype;
  e.id = static_cast<std::int32_t>(checks.size());
  e.args = {value, condition};
  return add(std::move(e));
}

ExprId Group::load(ParamId param, std::vector<ExprId> index) {
  Expr e;
  e.op = Op::Load;
  e.dtype = params.at(param).dtype;
  e.args = std::move(index);
  e.id = param;
  return add(std::move(e));
}

ExprId Group::load_if(ExprId cond, ParamId param, std::vector<ExprId> index) {
  const Expr& c = expr(cond);
  if (c.op == Op::Const)
    return c.constant.i ? load(param, std::move(index)) : constant(params.at(param).dtype, 0);
  Expr e;
  e.op = Op::LoadIf;
  e.dtype = params.at(param).dtype;
  e.args = std::move(index);
  e.args.insert(e.args.begin(), cond);
  e.id = param;
  return add(std::move(e));
}

ExprId Group::iadd(ExprId a, ExprId b) { return scalar(ScalarOp::Add, DType::I64, {a, b}); }
ExprId Group::isub(ExprId a, ExprId b) { return scalar(ScalarOp::Sub, DType::I64, {a, b}); }
ExprId Group::imul(ExprId a, ExprId b) { return scalar(ScalarOp::Mul, DType::I64, {a, b}); }
ExprId Group::ifloordiv(ExprId a, ExprId b) {
  return scalar(ScalarOp::FloorDiv, DType::I64, {a, b});
}
ExprId Group::imod(ExprId a, ExprId b) { return scalar(ScalarOp::Mod, DType::I64, {a, b}); }

LoopId Group::add_loop(LoopKind kind, Dim extent) {
  loops.push_back({kind, std::move(extent)});
  return static_cast<LoopId>(loops.size()) - 1;
}

LocalId Group::add_local(DType t) {
  locals.push_back(t);
  return static_cast<LocalId>(locals.size()) - 1;
}

ParamId Group::add_param(Param p) {
  params.push_back(std::move(p));
  return static_cast<ParamId>(params.size()) - 1;
}

Stmt loop_stmt(LoopId id, std::vector<Stmt> body, ExprId when) {
  Stmt s;
  s.kind = Stmt::Kind::Loop;
  s.id = id;
  s.value = when;
  s.body = std::move(body);
  return s;
}

Stmt local_stmt(LocalId id, ExprId init) {
  Stmt s;
  s.kind = Stmt::Kind::Local;
  s.id = id;
  s.value = init;
  return s;
}

Stmt update_stmt(LocalId id, Combine combine, ExprId value) {
  Stmt s;
  s.kind = Stmt::Kind::Update;
  s.id = id;
  s.combine = combine;
  s.value = value;
  return s;
}

Stmt set_stmt(LocalId id, ExprId value) {
  Stmt s;
  s.kind = Stmt::Kind::Set;
  s.id = id;
  s.value = value;
  return s;
}

Stmt store_stmt(ParamId id, std::vector<ExprId> index, ExprId value, Combine combine) {
  Stmt s;
  s.kind = Stmt::Kind::Store;
  s.id = id;
  s.index = std::move(index);
  s.value = value;
  s.combine = combine;
  return s;
}

}  // namespace weft::loop
