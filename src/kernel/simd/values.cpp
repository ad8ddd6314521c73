#include <numeric>

#include "kernel/simd/lowering.h"

namespace weft::kernel::simd {

Layout Lowering::natural_layout(const tile::Type& type) const {
  const int cols = type.shape[1];
  int lanes = std::gcd(cols, width_);
  if (cols % width_ != 0) lanes = cols & -cols;  // the largest power of two that divides it
  if (lanes > width_) lanes = width_;
  return lanes == 1 ? Layout{0, cols} : Layout{lanes, cols / lanes};
}

Layout Lowering::layout(ValueId v) const {
  return by_element_[v] ? Layout{0, type(v).shape[1]} : natural_layout(type(v));
}

Value Lowering::uniform_value(const tile::Type& type, std::vector<ValueId> rows) {
  Value v;
  v.type = type;
  v.stored_rows = static_cast<int>(rows.size());
  if (type.dtype == DType::I64) {
    v.form = Value::Form::Index;
    for (const ValueId row : rows) v.rows.push_back(math_.term(row, {1, b_.depth(), false}));
  } else {
    v.registers = std::move(rows);
  }
  return v;
}

Value Lowering::registers_value(const tile::Type& type, int stored_rows, Layout layout,
                                std::vector<ValueId> registers) {
  if (layout == Layout{}) return uniform_value(type, std::move(registers));
  Value v;
  v.type = type;
  v.stored_rows = stored_rows;
  v.layout = layout;
  v.registers = std::move(registers);
  return v;
}

Value Lowering::from_elements(const tile::Type& type, Layout layout,
                              const std::function<ValueId(int, int)>& element) {
  std::vector<ValueId> registers;
  for (int row = 0; row < type.shape[0]; ++row) {
    for (int i = 0; i < layout.count; ++i) {
      if (layout.lanes == 0) {
        registers.push_back(element(row, i));
      } else {
        registers.push_back(assemble(
            layout.lanes, [&](int lane) { return element(row, i * layout.lanes + lane); }));
      }
    }
  }
  return registers_value(type, type.shape[0], layout, std::move(registers));
}

int Lowering::stored_rows(const Value& v) {
  if (v.form == Value::Form::Index) return static_cast<int>(v.rows.size());
  return std::max(v.stored_rows, static_cast<int>(v.guard.size()));
}

ValueId Lowering::assemble(int lanes, const std::function<ValueId(int)>& element) {
  ValueId vector = b_.splat(element(0), lanes);
  for (int lane = 1; lane < lanes; ++lane) vector = b_.insert(vector, element(lane), lane);
  return vector;
}

ValueId Lowering::at(const Value& v, int row, int index, Layout layout) {
  const ValueId lanes = unguarded(v, row, index, layout);
  if (v.guard.empty()) return lanes;
  const ValueId guard = v.guard[v.guard.size() == 1 ? 0 : row];
  return b_.scalar(ScalarOp::And, {b_.splat(guard, layout.lanes), lanes});
}

ValueId Lowering::unguarded(const Value& v, int row, int index, Layout layout) {
  const int width = std::max(layout.lanes, 1);
  if (v.form == Value::Form::Index) {
    Sum first = v.rows[v.rows.size() == 1 ? 0 : row];
    first = math_.add(first, math_.scale(v.lane, std::int64_t{index} * width));
    const ValueId base = b_.splat(math_.value(first), layout.lanes);
    if (layout.lanes == 0 || v.lane.is(0)) return base;
    const ValueId iota = b_.iota(DType::I64, layout.lanes);
    if (v.lane.is(1)) return b_.add(base, iota);
    return b_.add(base, b_.mul(iota, b_.splat(math_.value(v.lane), layout.lanes)));
  }
  const std::size_t first = static_cast<std::size_t>(v.stored_rows == 1 ? 0 : row) * v.layout.count;
  if (v.layout == Layout{}) return b_.splat(v.registers[first], layout.lanes);
  if (v.layout == layout) return v.registers[first + index];
  const auto element = [&](int col) {
    if (v.layout.lanes == 0) return v.registers[first + col];
    return b_.extract(v.registers[first + col / v.layout.lanes], col % v.layout.lanes);
  };
  if (layout.lanes == 0) return element(index);
  return assemble(layout.lanes, [&](int lane) { return element(index * layout.lanes + lane); });
}

}  // namespace weft::kernel::simd
