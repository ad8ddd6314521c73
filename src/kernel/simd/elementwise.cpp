#include <algorithm>

#include "kernel/simd/lowering.h"

namespace weft::kernel::simd {
namespace {

bool is_index(const Value& v) { return v.form == Value::Form::Index; }

Value index_value(Lines lines) {
  Value v;
  v.form = Value::Form::Index;
  static_cast<Lines&>(v) = std::move(lines);
  return v;
}

// The comparison that holds for (b, a) when `op` holds for (a, b).
ScalarOp mirrored(ScalarOp op) {
  switch (op) {
    case ScalarOp::Lt:
      return ScalarOp::Gt;
    case ScalarOp::Le:
      return ScalarOp::Ge;
    case ScalarOp::Gt:
      return ScalarOp::Lt;
    default:
      return ScalarOp::Le;
  }
}

bool is_order(ScalarOp op) {
  return op == ScalarOp::Lt || op == ScalarOp::Le || op == ScalarOp::Gt || op == ScalarOp::Ge;
}

template <class T>
const T& row_of(const std::vector<T>& rows, int row) {
  return rows[rows.size() == 1 ? 0 : row];
}

}  // namespace

Value Lowering::elementwise(const Inst& inst, ScalarOp op) {
  const tile::Type& result = type(inst.results[0]);
  std::vector<const Value*> operands;
  for (const ValueId v : inst.operands) operands.push_back(&in_vectors(v));
  const Layout spread = layout(inst.results[0]);

  if (operands.size() == 2) {
    std::optional<Value> special;
    const Value &a = *operands[0], &b = *operands[1];
    if (is_index(a) && is_index(b)) {
      if (auto lines = math_.arithmetic(op, a, b, a.column_count())) special = index_value(*std::move(lines));
    }
    if (!special && is_order(op) && is_index(a) && is_index(b))
      special = lane_limit(op, a, b, spread);
    if (!special && op == ScalarOp::And && is_bool(result.dtype)) special = and_masks(a, b);
    if (special) {
      special->type = result;
      return *std::move(special);
    }
  }

  const bool uniform =
      std::all_of(operands.begin(), operands.end(), [](const Value* v) { return v->uniform(); });
  const Layout to = uniform ? Layout{} : spread;
  int rows = 1;
  for (const Value* v : operands) rows = std::max(rows, stored_rows(*v));
  std::vector<ValueId> registers;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < to.count; ++i) {
      std::vector<ValueId> args;
      for (const Value* v : operands) args.push_back(at(*v, row, i, to));
      if (op == ScalarOp::Cast || op == ScalarOp::Bitcast) {
        registers.push_back(op == ScalarOp::Cast ? b_.cast(args[0], result.dtype)
                                                 : b_.bitcast(args[0], result.dtype));
      } else {
        registers.push_back(op == ScalarOp::Fma ? accumulate(args[0], args[1], args[2]) : b_.scalar(op, std::move(args)));
      }
    }
  }
  if (!uniform || result.dtype != DType::I64)
    return registers_value(result, rows, to, std::move(registers));
  std::vector<const Lines*> lines;
  for (const Value* v : operands) lines.push_back(is_index(*v) ? v : nullptr);
  Lines scalars;
  for (int row = 0; row < rows; ++row)
    scalars.rows.push_back(math_.term(registers[row], math_.result_facts(op, lines, row)));
  Value v = index_value(std::move(scalars));
  v.type = result;
  return v;
}

// The narrowest integer, but no narrower than an element, that counts the columns of a tile.
DType Lowering::lane_dtype(int columns) const {
  for (const DType t : {DType::I8, DType::I16, DType::I32}) {
    if (bits(t) >= element_bits_ && columns < (std::int64_t{1} << (bits(t) - 1))) return t;
  }
  return DType::I64;
}

// base + lane < limit as lane < limit - base, on lanes as narrow as the elements.
std::optional<Value> Lowering::lane_limit(ScalarOp op, const Value& a, const Value& b,
                                          Layout layout) {
  if (a.lane.is(0)) return b.lane.is(0) ? std::nullopt : lane_limit(mirrored(op), b, a, layout);
  if (!a.lane.is(1) || !b.lane.is(0) || layout.lanes == 0) return std::nullopt;
  const bool below = op == ScalarOp::Lt || op == ScalarOp::Le;
  const bool one_more = op == ScalarOp::Le || op == ScalarOp::Gt;
  const int cols = layout.lanes * layout.count;
  const DType narrow = lane_dtype(cols);
  const int rows = static_cast<int>(std::max(a.rows.size(), b.rows.size()));
  std::vector<ValueId> registers;
  for (int row = 0; row < rows; ++row) {
    const Sum &base = row_of(a.rows, row), &end = row_of(b.rows, row);
    if (!math_.facts(base).counted || !math_.facts(end).counted) return std::nullopt;
    const Sum limit = math_.add(math_.sub(end, base), math_.constant(one_more ? 1 : 0));
    const ValueId zero = b_.constant_i64(0), most = b_.constant_i64(cols);
    const ValueId clamped =
        b_.scalar(ScalarOp::Max, {b_.scalar(ScalarOp::Min, {math_.value(limit), most}), zero});
    const ValueId narrowed = b_.splat(b_.cast(clamped, narrow), layout.lanes);
    for (int i = 0; i < layout.count; ++i) {
      const ValueId first =
          b_.splat(b_.constant_i64(std::int64_t{i} * layout.lanes, narrow), layout.lanes);
      const ValueId column = b_.add(b_.iota(narrow, layout.lanes), first);
      registers.push_back(b_.scalar(below ? ScalarOp::Lt : ScalarOp::Ge, {column, narrowed}));
    }
  }
  return registers_value(a.type.with(DType::Bool), rows, layout, std::move(registers));
}

// What holds for whole rows stays a scalar beside the lanes.
std::optional<Value> Lowering::and_masks(const Value& a, const Value& b) {
  if (a.uniform() == b.uniform()) return std::nullopt;
  const Value &rows = a.uniform() ? a : b, &lanes = a.uniform() ? b : a;
  Value v = lanes;
  const std::size_t count = std::max<std::size_t>(rows.stored_rows, lanes.guard.size());
  v.guard.clear();
  for (std::size_t row = 0; row < count; ++row) {
    const ValueId own = row_of(rows.registers, static_cast<int>(row));
    v.guard.push_back(
        lanes.guard.empty()
            ? own
            : b_.scalar(ScalarOp::And, {own, row_of(lanes.guard, static_cast<int>(row))}));
  }
  return v;
}

}  // namespace weft::kernel::simd
