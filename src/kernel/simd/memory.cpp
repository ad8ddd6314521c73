// Loads and stores: vector, scalar or gather by the form of the index.
#include "kernel/simd/lowering.h"

namespace weft::kernel::simd {

bool Lowering::contiguous(const Access& access, Layout layout) const {
  return layout.lanes > 0 && access.index.form == Value::Form::Index && access.index.lane.is(1);
}

ValueId Lowering::load_scalar(const Access& access, int row, int col) {
  const ValueId index = element(access.index, row, col);
  if (!access.mask) return b_.load(access.buffer, index, 0);
  const tile::Type type = tile::Type::scalar(f_.buffers[access.buffer].dtype);
  b_.begin_if(element(*access.mask, row, col), {type});
  b_.begin_else({b_.load(access.buffer, index, 0)});
  return b_.end_if({b_.constant(type.dtype, 0)})[0];
}

// The scalars of a row under one condition, in one branch.
std::vector<ValueId> Lowering::load_row_of_scalars(const Access& access, int row, int cols) {
  const Access plain{access.buffer, access.index, nullptr};
  const bool branch = access.mask && access.mask->uniform();
  const tile::Type type = tile::Type::scalar(f_.buffers[access.buffer].dtype);
  if (branch) b_.begin_if(element(*access.mask, row, 0), std::vector<tile::Type>(cols, type));
  std::vector<ValueId> scalars;
  for (int col = 0; col < cols; ++col)
    scalars.push_back(load_scalar(branch ? plain : access, row, col));
  if (!branch) return scalars;
  b_.begin_else(std::move(scalars));
  return b_.end_if(std::vector<ValueId>(cols, b_.constant(type.dtype, 0)));
}

// The columns' elements lie one after the other, a word of each.
std::optional<Value> Lowering::load_words(const Access& access, const tile::Type& result, int steps) {
  const Layout to = natural_layout(result);
  const auto& rows = access.index.rows;
  if (to.lanes == 0 || access.index.form != Value::Form::Index || !access.index.lane.is(steps)) return std::nullopt;
  if (static_cast<int>(rows.size()) != result.shape[0]) return std::nullopt;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t first = row / steps * steps;
    const Sum expected = math_.add(rows[first], math_.constant(static_cast<std::int64_t>(row - first)));
    if (!(rows[row] == expected)) return std::nullopt;
  }
  if (access.mask && stored_rows(*access.mask) > 1) return std::nullopt;
  Value v;
  v.type = result;
  v.words = true;
  v.stored_rows = result.shape[0] / steps;
  v.layout = to;
  for (int word = 0; word < v.stored_rows; ++word) {
    for (int i = 0; i < to.count; ++i) {
      const ValueId mask = access.mask ? each_repeated(at(*access.mask, 0, i, to), steps) : -1;
      const Sum first = math_.add(rows[steps * word], math_.constant(std::int64_t{1} * steps * i * to.lanes));
      v.registers.push_back(b_.words(b_.load(access.buffer, math_.value(first), steps * to.lanes, mask)));
    }
  }
  return v;
}

ValueId Lowering::each_repeated(ValueId mask, int times) {
  return assemble(times * b_.type(mask).lanes(), [&](int lane) { return b_.extract(mask, lane / times); });
}

Value Lowering::load(const Inst& inst) {
  const tile::Type& result = type(inst.results[0]);
  const Access access{static_cast<int>(inst.imm), in(inst, 0),
                      inst.operands.size() > 1 ? &in(inst, 1) : nullptr};
  if (tiles_.left[inst.results[0]] || tiles_.right[inst.results[0]]) {
    if (auto tiles = load_tiles(access, result, tiles_.right[inst.results[0]])) return *std::move(tiles);
  }
  if (const int steps = words_[inst.results[0]]; steps > 0) {
    if (auto words = load_words(access, result, steps)) return *std::move(words);
  }
  int rows = stored_rows(access.index);
  if (access.mask) rows = std::max(rows, stored_rows(*access.mask));
  const bool uniform = access.index.uniform() && (!access.mask || access.mask->uniform());
  const Layout to = uniform ? Layout{} : layout(inst.results[0]);
  std::vector<ValueId> registers;
  for (int row = 0; row < rows; ++row) {
    if (to.lanes == 0) {
      const auto scalars = load_row_of_scalars(access, row, to.count);
      registers.insert(registers.end(), scalars.begin(), scalars.end());
      continue;
    }
    for (int i = 0; i < to.count; ++i) {
      const ValueId mask = access.mask ? at(*access.mask, row, i, to) : -1;
      if (contiguous(access, to)) {
        registers.push_back(
            b_.load(access.buffer, element(access.index, row, i * to.lanes), to.lanes, mask));
      } else {
        registers.push_back(b_.gather(access.buffer, at(access.index, row, i, to), mask));
      }
    }
  }
  return registers_value(result, rows, to, std::move(registers));
}

void Lowering::store(const Inst& inst) {
  if (store_tiles(inst)) return;
  const Value& value = in(inst, 0);
  const Access access{static_cast<int>(inst.imm), in(inst, 1),
                      inst.operands.size() > 2 ? &in(inst, 2) : nullptr};
  const Layout to = natural_layout(type(inst.operands[1]));
  const int rows = type(inst.operands[1]).shape[0];
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < to.count; ++i) {
      const ValueId stored = at(value, row, i, to);
      const ValueId mask = access.mask ? at(*access.mask, row, i, to) : -1;
      if (contiguous(access, to)) {
        b_.store(access.buffer, stored, element(access.index, row, i * to.lanes), mask);
      } else if (to.lanes > 0) {
        b_.scatter(access.buffer, stored, at(access.index, row, i, to), mask);
      } else {
        const ValueId index = element(access.index, row, i);
        if (mask >= 0) b_.begin_if(mask, {});
        b_.store(access.buffer, stored, index);
        if (mask >= 0) b_.begin_else({}), b_.end_if({});
      }
    }
  }
}

// One element at a time and in order, whatever the index: lanes may meet.
Value Lowering::atomic(const Inst& inst, Combine combine) {
  const Value &value = in(inst, 0), &index = in(inst, 1);
  const Value* mask = inst.operands.size() > 2 ? &in(inst, 2) : nullptr;
  const int buffer = static_cast<int>(inst.imm);
  const tile::Type& result = type(inst.results[0]);
  const Layout to = natural_layout(result);
  std::vector<ValueId> registers;
  for (int row = 0; row < result.shape[0]; ++row) {
    for (int i = 0; i < to.count; ++i) {
      const ValueId operand = at(value, row, i, to), where = at(index, row, i, to);
      const ValueId allowed = mask ? at(*mask, row, i, to) : -1;
      if (to.lanes > 0 || !mask) {
        registers.push_back(b_.atomic(combine, buffer, operand, where, allowed));
        continue;
      }
      b_.begin_if(allowed, {tile::Type::scalar(result.dtype)});
      b_.begin_else({b_.atomic(combine, buffer, operand, where)});
      registers.push_back(b_.end_if({b_.constant(result.dtype, 0)})[0]);
    }
  }
  return registers_value(result, result.shape[0], to, std::move(registers));
}

}  // namespace weft::kernel::simd
