#include <algorithm>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {

// sum + a * b: what a machine without fused multiplications is not made to imitate one for.
ValueId Lowering::accumulate(ValueId a, ValueId b, ValueId sum) {
  if (machine_.has_fma && is_float(b_.type(sum).dtype)) return b_.scalar(ScalarOp::Fma, {a, b, sum});
  return b_.add(sum, b_.mul(a, b));
}

// On one scalar when each operand has the same in all lanes.
ValueId Lowering::apply(ScalarOp op, const std::vector<ValueId>& args, DType result) {
  std::vector<ValueId> scalars;
  for (const ValueId v : args) {
    if (const ValueId s = splat_scalar(v); s >= 0) scalars.push_back(s);
  }
  const int lanes = b_.type(args.back()).lanes();
  if (lanes > 1 && scalars.size() == args.size()) return splat(apply(op, scalars, result), lanes);
  if (op == ScalarOp::Cast) return b_.cast(args[0], result);
  if (op == ScalarOp::Bitcast) return b_.bitcast(args[0], result);
  if (op == ScalarOp::Fma) return accumulate(args[0], args[1], args[2]);
  return b_.scalar(op, args);
}

// A comparison of columns with what is the same along a row: their numbers are small, so what they are compared with may be cut
// to 32 bits, once for a row.
std::optional<Value> Lowering::narrow_equality(ScalarOp op, const Value& a, const Value& b, const tile::Type& result) {
  constexpr std::int64_t kMost = 1 << 30, kMostLane = 1 << 8;
  const bool compares = op == ScalarOp::Eq || op == ScalarOp::Ne;
  const Share s = share(result);
  if (!compares || !a.is_index() || !b.is_index() || s.registers() < kNarrowedFrom) return std::nullopt;
  const Sum lane = math_.sub(a.lane, b.lane);
  if (!lane.is_constant() || lane.constant == 0 || std::abs(lane.constant) > kMostLane) return std::nullopt;
  const int rows = static_cast<int>(std::max(a.rows.size(), b.rows.size()));
  std::vector<Sum> limits;  // of lane * (column less what the thread adds to it)
  for (int row = 0; row < rows; ++row) {
    limits.push_back(math_.sub(math_.sub(b.row(row), a.row(row)), math_.scale(own_column(s), lane.constant)));
    if (!math_.facts(limits.back()).counted) return std::nullopt;
  }
  std::vector<ValueId> registers;
  for (const Sum& limit : limits) {
    const ValueId above = b_.scalar(ScalarOp::Max, {math_.value(limit), b_.constant_i64(-kMost)});
    const ValueId cut = splat(b_.cast(b_.scalar(ScalarOp::Min, {above, b_.constant_i64(kMost)}), DType::I32), s.lanes);
    for (int i = 0; i < s.count; ++i) {
      std::vector<ValueId> columns;
      for (int k = 0; k < s.lanes; ++k) columns.push_back(b_.constant_i64((std::int64_t{i} * s.column_step + k) * lane.constant, DType::I32));
      registers.push_back(b_.scalar(op, {assemble(columns), cut}));
    }
  }
  return registers_value(result, rows, false, std::move(registers));
}

Value Lowering::elementwise(const Inst& inst, ScalarOp op) {
  const tile::Type& result = type(inst.results[0]);
  std::vector<Value> operands;  // seen in the result's shape
  for (const ValueId v : inst.operands) operands.push_back(values_[v]), operands.back().type = result.with(type(v).dtype);
  Value v = elementwise(op, operands, result);
  v.one_row = std::all_of(operands.begin(), operands.end(), [](const Value& x) { return x.one_row; });
  return v;
}

Value Lowering::elementwise(ScalarOp op, std::vector<Value>& operands, const tile::Type& result) {
  if (operands.size() == 2 && operands[0].is_index() && operands[1].is_index()) {
    if (auto lines = math_.arithmetic(op, operands[0], operands[1], result.shape[1])) return index_value(result, *std::move(lines));
    if (auto above = condition(op, operands[0], operands[1], result)) return *std::move(above);
    if (auto narrow = narrow_equality(op, operands[0], operands[1], result)) return *std::move(narrow);
  }
  if (op == ScalarOp::And && operands.size() == 2) {
    if (auto all = both_conditions(operands[0], operands[1], result)) return *std::move(all);
  }
  const bool uniform = std::all_of(operands.begin(), operands.end(), [](const Value& v) { return v.uniform(); });
  int rows = 1;
  for (const Value& v : operands) rows = std::max(rows, v.rows_held());
  if (uniform) {
    for (Value& v : operands) v.type.shape[1] = 1;
  }
  const int count = uniform ? 1 : share(result).count;
  std::vector<ValueId> registers;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < count; ++i) {
      std::vector<ValueId> args;
      for (const Value& v : operands) args.push_back(at(v, row, i));
      registers.push_back(apply(op, args, result.dtype));
    }
  }
  if (!uniform || result.dtype != DType::I64) return registers_value(result, rows, uniform, std::move(registers));
  std::vector<const Lines*> lines;
  for (const Value& v : operands) lines.push_back(v.is_index() ? &v : nullptr);
  Lines scalars;
  for (int row = 0; row < rows; ++row) scalars.rows.push_back(math_.term(registers[row], math_.result_facts(op, lines, row)));
  return index_value(result, std::move(scalars));
}

}  // namespace weft::kernel::simt
