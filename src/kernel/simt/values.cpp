#include <algorithm>
#include <bit>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {

bool Value::uniform() const {
  const auto alike = [](const Lines& x) { return x.lane.is(0); };
  return is_index() ? alike(*this) : is_condition() ? std::all_of(above.begin(), above.end(), alike) : one_scalar;
}

int Value::rows_held() const {
  if (is_index()) return static_cast<int>(rows.size());
  std::size_t most = is_condition() ? 1 : static_cast<std::size_t>(stored_rows);
  for (const Lines& x : above) most = std::max(most, x.rows.size());
  return static_cast<int>(most);
}

Value Lowering::index_value(const tile::Type& type, Lines lines) const {
  Value v;
  static_cast<Lines&>(v) = std::move(lines);
  v.form = Value::Form::Index;
  v.type = type;
  v.one_row = type.shape[0] == 1;
  return v;
}

Value Lowering::registers_value(const tile::Type& type, int stored_rows, bool one_scalar, std::vector<ValueId> registers) {
  if (one_scalar && type.dtype == DType::I64) {
    Lines lines;
    for (const ValueId row : registers) lines.rows.push_back(math_.term(row, {1, b_.depth(), false}));
    return index_value(type, std::move(lines));
  }
  Value v;
  v.type = type;
  v.one_row = type.shape[0] == 1;
  v.stored_rows = stored_rows;
  v.one_scalar = one_scalar;
  v.registers = std::move(registers);
  return v;
}

ValueId Lowering::splat(ValueId scalar, int lanes) {
  if (lanes == 1) return scalar;
  const ValueId v = b_.splat(scalar, lanes);
  splats_.emplace(v, scalar);
  return v;
}

ValueId Lowering::splat_scalar(ValueId v) const {
  if (b_.type(v).rank == 0) return v;
  const auto it = splats_.find(v);
  return it == splats_.end() ? -1 : it->second;
}

ValueId Lowering::assemble(const std::vector<ValueId>& lanes) {
  if (lanes.size() == 1) return lanes[0];
  ValueId vector = b_.splat(lanes[0], static_cast<int>(lanes.size()));
  for (std::size_t i = 1; i < lanes.size(); ++i) vector = b_.insert(vector, lanes[i], static_cast<int>(i));
  return vector;
}

Sum Lowering::own_column(const Share& share) {
  const auto part = [&](int from, int bits) {
    const ValueId above = b_.scalar(ScalarOp::Shr, {b_.thread_id(), b_.constant_i64(from)});
    return math_.term(b_.scalar(ScalarOp::And, {above, b_.constant_i64((1 << bits) - 1)}), {1, 0, true, true});
  };
  Sum column = math_.constant(0);
  if (share.column_bits > 0) column = math_.scale(part(0, share.column_bits), share.lanes);
  if (share.high_bits == 0) return column;
  return math_.add(column, math_.scale(part(spread_.columns + spread_.rows, share.high_bits), share.lanes << share.column_bits));
}

Sum Lowering::own_row(const Share& share) {
  if (share.row_bits == 0) return math_.constant(0);
  const ValueId above = b_.scalar(ScalarOp::Shr, {b_.thread_id(), b_.constant_i64(spread_.columns)});
  return math_.term(b_.scalar(ScalarOp::And, {above, b_.constant_i64((1 << share.row_bits) - 1)}), {1, 0, true, true});
}

Lines Lowering::rows_of(const tile::Type& type) {
  const Share s = share(type);
  Lines lines;
  for (int row = 0; row < s.rows; ++row) lines.rows.push_back(math_.add(own_row(s), math_.constant(row * s.row_step)));
  return lines;
}

Sum Lowering::first_index(const Value& v, int row, int index) {
  if (v.lane.is(0)) return v.row(row);
  const Share s = share(v.type);
  const Sum column = math_.add(own_column(s), math_.constant(index * s.column_step));
  return math_.add(v.row(row), math_.mul(v.lane, column));
}

ValueId Lowering::at(const Value& v, int row, int index) {
  const Share s = share(v.type);
  if (v.is_index()) {
    const ValueId first = splat(math_.value(first_index(v, row, index)), s.lanes);
    if (v.lane.is(0) || s.lanes == 1) return first;
    const ValueId iota = b_.iota(DType::I64, s.lanes);
    return b_.add(first, v.lane.is(1) ? iota : b_.mul(iota, splat(math_.value(v.lane), s.lanes)));
  }
  if (v.is_condition()) return condition_at(v, row, index);
  const int stored = v.stored_rows == 1 ? 0 : row;
  return v.one_scalar ? splat(v.registers[stored], s.lanes) : v.registers[stored * s.count + index];
}

ValueId Lowering::element(const Value& v, int number) {
  const Share s = share(v.type);
  const int count = std::bit_ceil(static_cast<unsigned>(s.count));
  const int lane = number % s.lanes, index = number / s.lanes % count, row = number / s.lanes / count;
  if (index >= s.count || row >= s.rows) return b_.constant(v.type.dtype, 0);
  const ValueId r = at(v, row, index);
  return s.lanes == 1 ? r : b_.extract(r, lane);
}

Value Lowering::from_elements(const tile::Type& type, const std::function<ValueId(int)>& element) {
  const Share s = share(type);
  const int count = std::bit_ceil(static_cast<unsigned>(s.count));
  std::vector<ValueId> registers;
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) {
      std::vector<ValueId> lanes;
      for (int lane = 0; lane < s.lanes; ++lane) lanes.push_back(element((row * count + i) * s.lanes + lane));
      registers.push_back(assemble(lanes));
    }
  }
  return registers_value(type, s.rows, type.shape[1] == 1, std::move(registers));
}

ValueId Lowering::both(ValueId a, ValueId b) {
  if (a < 0 || b < 0) return a < 0 ? b : a;
  const int lanes = std::max(b_.type(a).lanes(), b_.type(b).lanes());
  const ValueId x = splat_scalar(a), y = splat_scalar(b);
  if (x >= 0 && y >= 0) return splat(b_.scalar(ScalarOp::And, {x, y}), lanes);
  const auto wide = [&](ValueId v) { return b_.type(v).rank == 0 ? splat(v, lanes) : v; };
  return b_.scalar(ScalarOp::And, {wide(a), wide(b)});
}

ValueId Lowering::inside(const tile::Type& type, int row, int index) {
  const Share s = share(type);
  ValueId ok = -1;
  if (s.padded_rows && (row + 1) * s.row_step > type.shape[0]) {
    const ValueId own = math_.value(math_.add(own_row(s), math_.constant(row * s.row_step)));
    ok = splat(b_.scalar(ScalarOp::Lt, {own, b_.constant_i64(type.shape[0])}), s.lanes);
  }
  if (!s.padded_columns || (index + 1) * s.column_step <= type.shape[1]) return ok;
  const ValueId first = math_.value(math_.add(own_column(s), math_.constant(index * s.column_step)));
  if (type.shape[1] % s.lanes == 0) {
    return both(ok, splat(b_.scalar(ScalarOp::Lt, {first, b_.constant_i64(type.shape[1])}), s.lanes));
  }
  const ValueId column = b_.add(splat(first, s.lanes), b_.iota(DType::I64, s.lanes));
  return both(ok, b_.scalar(ScalarOp::Lt, {column, splat(b_.constant_i64(type.shape[1]), s.lanes)}));
}

ValueId Lowering::owner(const Share& share) {
  const auto ones = [](int bits) { return (std::int64_t{1} << bits) - 1; };
  const std::int64_t used = ones(share.column_bits) | ones(share.row_bits) << spread_.columns | ones(share.high_bits) << (spread_.columns + spread_.rows);
  const std::int64_t idle = ((std::int64_t{1} << spread_.threads) - 1) & ~used;
  if (idle == 0) return -1;
  const ValueId rest = b_.scalar(ScalarOp::And, {b_.thread_id(), b_.constant_i64(idle)});
  return b_.scalar(ScalarOp::Eq, {rest, b_.constant_i64(0)});
}

// Bits that move equally far move together.
ValueId Lowering::linear(const LinearMap& map, ValueId x) {
  ValueId sum = -1;
  for (int distance = -map.inputs(); distance <= map.outputs(); ++distance) {
    std::int64_t moved = 0;
    for (int i = 0; i < map.inputs(); ++i) {
      const int to = i + distance;
      if (to >= 0 && to < map.outputs() && (map.column(i) >> to & 1) != 0) moved |= std::int64_t{1} << i;
    }
    if (moved == 0) continue;
    ValueId part = b_.scalar(ScalarOp::And, {x, b_.constant_i64(moved)});
    if (distance != 0) part = b_.scalar(distance > 0 ? ScalarOp::Shl : ScalarOp::Shr, {part, b_.constant_i64(std::abs(distance))});
    sum = sum < 0 ? part : b_.scalar(ScalarOp::Xor, {sum, part});
  }
  return sum < 0 ? b_.constant_i64(0) : sum;
}

}  // namespace weft::kernel::simt
