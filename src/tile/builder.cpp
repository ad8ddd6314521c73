#include <bit>
#include <map>
#include <tuple>

#include "ssa/fold.h"
#include "tile/tile.h"

namespace weft::tile {
namespace {

constexpr Type kIndex = {DType::I64, 0, {1, 1}};

std::uint16_t code(Op op) { return static_cast<std::uint16_t>(op); }

bool stretches(const Type& from, const Type& to) {
  if (from.rank == 0) return true;
  for (int axis = 0; axis < 2; ++axis) {
    if (from.shape[axis] != to.shape[axis] && from.shape[axis] != 1) return false;
  }
  return to.rank == 2;
}

// The smallest shape that both stretch to.
Type united(const Type& a, const Type& b) {
  if (a.rank == 0 || b.rank == 0) return a.rank == 0 ? b : a;
  return Type::tile(a.dtype, std::max(a.shape[0], b.shape[0]), std::max(a.shape[1], b.shape[1]));
}

}  // namespace

// What each pure value was computed from, and which values each open block can see.
struct Builder::Numbering final : ssa::Folding {
  using Key = std::tuple<std::uint16_t, std::vector<ValueId>, std::int64_t, std::uint64_t, int, int,
                         int, int>;
  struct Def {
    int op = -1;
    std::vector<ValueId> operands;
    std::int64_t imm = 0;
    double fimm = 0;
  };

  explicit Numbering(Builder& builder) : b(builder) {}

  ValueId pure(Op op, std::vector<ValueId> operands, const Type& type, std::int64_t imm = 0,
               double fimm = 0) {
    Key key{code(op),
            operands,
            imm,
            std::bit_cast<std::uint64_t>(fimm),
            static_cast<int>(type.dtype),
            type.rank,
            type.shape[0],
            type.shape[1]};
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      if (const auto it = scope->find(key); it != scope->end()) return it->second;
    }
    const ValueId v = b.append1(code(op), operands, type, imm, fimm);
    scopes.back().emplace(std::move(key), v);
    if (static_cast<std::size_t>(v) >= defs.size()) defs.resize(v + 1);
    defs[v] = {code(op), std::move(operands), imm, fimm};
    return v;
  }

  const Def* def(ValueId v) const {
    const bool known = v >= 0 && static_cast<std::size_t>(v) < defs.size() && defs[v].op >= 0;
    return known ? &defs[v] : nullptr;
  }
  bool is(ValueId v, Op op) const { return def(v) && def(v)->op == code(op); }
  ValueId unbroadcast(ValueId v) const {
    while (is(v, Op::Broadcast)) v = def(v)->operands[0];
    return v;
  }

  Type type_of(ValueId v) const override { return b.type(v); }
  std::optional<Scalar> constant_of(ValueId v) const override {
    v = unbroadcast(v);
    if (!is(v, Op::Const)) return std::nullopt;
    if (is_float(b.type(v).dtype)) return Scalar{def(v)->fimm, 0};
    return Scalar{0, def(v)->imm};
  }
  bool constant_is(ValueId v, bool value) const {
    const auto c = constant_of(v);
    return c && (c->i != 0) == value;
  }
  std::optional<ssa::ScalarDef> definition_of(ValueId v) const override {
    const Def* d = def(v);
    if (!d) return std::nullopt;
    const auto op = as_scalar(static_cast<Op>(d->op));
    if (!op) return std::nullopt;
    return ssa::ScalarDef{*op, d->operands};
  }
  ValueId make_constant(const Type& type, Scalar value) override {
    const Type scalar = Type::scalar(type.dtype);
    const ValueId v = is_float(type.dtype) ? pure(Op::Const, {}, scalar, 0, value.f)
                                           : pure(Op::Const, {}, scalar, value.i);
    return spread(v, type);
  }
  ValueId make(ScalarOp op, std::vector<ValueId> operands) override {
    return b.scalar(op, std::move(operands));
  }

  ValueId spread(ValueId x, const Type& shape) {
    const Type type = shape.with(b.type(x).dtype);
    if (b.type(x) == type) return x;
    WEFT_CHECK(stretches(b.type(x), type),
               "a tile of shape " + str(b.type(x)) + " does not broadcast to " + str(type));
    x = unbroadcast(x);
    return b.type(x) == type ? x : pure(Op::Broadcast, {x}, type);
  }

  // Elementwise on the smallest shapes: what all operands repeat is computed once, then spread.
  ValueId elementwise(ScalarOp op, std::vector<ValueId> operands, DType result) {
    Type full = b.type(operands[0]), small = full;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      full = united(full, b.type(operands[i]));
      operands[i] = unbroadcast(operands[i]);
      small = i == 0 ? b.type(operands[i]) : united(small, b.type(operands[i]));
    }
    full = full.with(result), small = small.with(result);
    ValueId v = ssa::fold(*this, op, operands, small);
    if (v < 0) {
      for (ValueId& operand : operands) operand = spread(operand, small);
      v = pure(from_scalar(op), std::move(operands), small);
    }
    return spread(v, full);
  }

  Builder& b;
  std::vector<Def> defs;
  std::vector<std::map<Key, ValueId>> scopes{1};
};

Builder::Builder(std::string name)
    : FunctionBuilder(op_table(), std::move(name)),
      numbering_(std::make_unique<Numbering>(*this)) {}
Builder::~Builder() = default;

ValueId Builder::constant(DType dtype, double value) {
  const Scalar wide{value, 0};
  return numbering_->make_constant(Type::scalar(dtype),
                                   evaluate(ScalarOp::Cast, DType::F64, dtype, {&wide, 1}));
}

ValueId Builder::constant_i64(std::int64_t value, DType dtype) {
  const Scalar wide{0, value};
  return numbering_->make_constant(Type::scalar(dtype),
                                   evaluate(ScalarOp::Cast, DType::I64, dtype, {&wide, 1}));
}

ValueId Builder::size(int number) { return numbering_->pure(Op::Size, {}, kIndex, number); }
ValueId Builder::program_id() { return numbering_->pure(Op::ProgramId, {}, kIndex); }

ValueId Builder::iota(int rows, int cols, int axis) {
  const Type full = Type::tile(DType::I64, rows, cols);
  if (full.shape[axis] == 1) return numbering_->make_constant(full, {});
  const Type line = Type::tile(DType::I64, axis == 0 ? rows : 1, axis == 0 ? 1 : cols);
  return numbering_->spread(numbering_->pure(Op::Iota, {}, line, axis), full);
}

ValueId Builder::broadcast(ValueId x, int rows, int cols) {
  return numbering_->spread(x, Type::tile(type(x).dtype, rows, cols));
}

ValueId Builder::scalar(ScalarOp op, std::vector<ValueId> operands) {
  const ScalarOpInfo& row = info(op);
  WEFT_CHECK(static_cast<int>(operands.size()) == row.operands && row.result != ScalarResult::Cast,
             row.name);
  const DType dtype = row.result == ScalarResult::Bool ? DType::Bool : type(operands.back()).dtype;
  return numbering_->elementwise(op, std::move(operands), dtype);
}

ValueId Builder::cast(ValueId x, DType dtype) {
  return numbering_->elementwise(ScalarOp::Cast, {x}, dtype);
}
ValueId Builder::bitcast(ValueId x, DType dtype) {
  return numbering_->elementwise(ScalarOp::Bitcast, {x}, dtype);
}

ValueId Builder::load(int buffer, ValueId index, ValueId mask) {
  const Type result = type(index).with(function().buffers[buffer].dtype);
  if (mask >= 0 && numbering_->constant_is(mask, false))
    return numbering_->make_constant(result, {});
  // All lanes of a spread index read the same element: read it once.
  const ValueId narrow = numbering_->unbroadcast(index);
  std::vector<ValueId> operands = {narrow};
  if (mask >= 0 && !numbering_->constant_is(mask, true)) {
    mask = numbering_->unbroadcast(mask);
    const bool fits = type(mask).rank <= type(narrow).rank && stretches(type(mask), type(narrow));
    operands = {fits ? narrow : index};
    operands.push_back(numbering_->spread(mask, type(operands[0])));
  }
  return numbering_->spread(
      append1(code(Op::Load), operands, type(operands[0]).with(result.dtype), buffer), result);
}

void Builder::store(int buffer, ValueId value, ValueId index, ValueId mask) {
  if (mask >= 0 && numbering_->constant_is(mask, false)) return;
  std::vector<ValueId> operands = {numbering_->spread(value, type(index)), index};
  if (mask >= 0 && !numbering_->constant_is(mask, true))
    operands.push_back(numbering_->spread(mask, type(index)));
  append(code(Op::Store), std::move(operands), {}, buffer);
}

ValueId Builder::reduce(Combine combine, ValueId x, int axis) {
  Type result = type(x);
  if (result.shape[axis] == 1) return x;
  result.shape[axis] = 1;
  return numbering_->pure(reduce_op(combine), {x}, result, axis);
}

ValueId Builder::scan(Combine combine, ValueId x, int axis) {
  const Type& t = type(x);
  return t.shape[axis] == 1 ? x : numbering_->pure(scan_op(combine), {x}, t, axis);
}

ValueId Builder::atomic(Combine combine, int buffer, ValueId value, ValueId index, ValueId mask) {
  const Type result = type(index).with(f_.buffers[buffer].dtype);
  std::vector<ValueId> operands = {numbering_->spread(value, type(index)), index};
  if (mask >= 0 && !numbering_->constant_is(mask, true))
    operands.push_back(numbering_->spread(mask, type(index)));
  return append1(code(atomic_op(combine)), std::move(operands), result, buffer);
}

ValueId Builder::dot(ValueId a, ValueId b, ValueId acc) {
  return numbering_->pure(Op::Dot, {a, b, acc}, type(acc));
}

ValueId Builder::transpose(ValueId x) {
  const Type from = type(x), to = Type::tile(from.dtype, from.shape[1], from.shape[0]);
  if (from.rank == 0) return x;
  if (numbering_->is(x, Op::Transpose)) return numbering_->def(x)->operands[0];
  if (numbering_->is(x, Op::Iota))
    return iota(to.shape[0], to.shape[1], 1 - static_cast<int>(numbering_->def(x)->imm));
  if (numbering_->is(x, Op::Broadcast))
    return numbering_->spread(transpose(numbering_->unbroadcast(x)), to);
  return numbering_->pure(Op::Transpose, {x}, to);
}

void Builder::check(ValueId ok, int check_code) {
  ok = numbering_->unbroadcast(ok);
  if (!numbering_->constant_is(ok, true)) append(code(Op::Check), {ok}, {}, check_code);
}

Builder::Loop Builder::begin_for(ValueId lo, ValueId hi, ValueId step, std::vector<ValueId> inits) {
  numbering_->scopes.emplace_back();
  return FunctionBuilder::begin_for(code(Op::For), lo, hi, step, std::move(inits));
}

std::vector<ValueId> Builder::end_for(std::vector<ValueId> next) {
  numbering_->scopes.pop_back();
  return FunctionBuilder::end_for(std::move(next));
}

void Builder::begin_if(ValueId cond, std::vector<Type> results) {
  numbering_->scopes.emplace_back();
  FunctionBuilder::begin_if(code(Op::If), cond, std::move(results));
}

void Builder::begin_else(std::vector<ValueId> yields) {
  numbering_->scopes.back().clear();
  FunctionBuilder::begin_else(std::move(yields));
}

std::vector<ValueId> Builder::end_if(std::vector<ValueId> yields) {
  numbering_->scopes.pop_back();
  return FunctionBuilder::end_if(std::move(yields));
}

}  // namespace weft::tile
