// Accesses: a vector, a scalar, or one for each lane, by the form of the index; barriers before those that need one.
#include <algorithm>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {

void Lowering::barrier() {
  if (spread_.threads > 0) b_.barrier();
  hazards_.barrier();
}

void Lowering::before_read(int buffer) {
  if (hazards_.read_needs_barrier(buffer)) barrier();
  hazards_.read(buffer);
}

void Lowering::before_write(int buffer, bool fixed) {
  if (hazards_.write_needs_barrier(buffer, place_, fixed, loops_ > 0)) barrier();
  hazards_.written(buffer, place_);
}

int Lowering::scratch(DType dtype, int which, std::int64_t elements) {
  const auto [it, fresh] = scratch_.emplace(std::pair{dtype, which}, -1);
  if (fresh) {
    it->second = b_.add_buffer({dtype, ssa::Space::OnChip, true, true, elements});
    hazards_.add_buffer();
    if (loops_ > 0) hazards_.read(it->second);  // by the iteration before
  }
  std::int64_t& size = b_.function().buffers[it->second].elements;
  size = std::max(size, elements);
  return it->second;
}

bool Lowering::fixed(const Value& index) const {
  return index.is_index() && std::all_of(index.rows.begin(), index.rows.end(), [&](const Sum& row) { return math_.facts(row).counted; });
}

bool Lowering::aligned(const Value& index, int row, int i) {
  const int lanes = share(index.type).lanes;
  return lanes > 1 && index.is_index() && index.lane.is(1) && math_.facts(first_index(index, row, i)).divisor % lanes == 0;
}

ValueId Lowering::load_register(int buffer, const Value& index, int row, int i, ValueId mask) {
  const int lanes = share(index.type).lanes;
  if (lanes == 1) return b_.load(buffer, at(index, row, i), 0, mask);
  const ValueId whole = mask < 0 ? -1 : splat_scalar(mask);
  if (!aligned(index, row, i) || (mask >= 0 && whole < 0)) return b_.gather(buffer, at(index, row, i), mask);
  const ValueId first = math_.value(first_index(index, row, i));
  if (mask < 0) return b_.load(buffer, first, lanes);
  const DType t = b_.function().buffers[buffer].dtype;
  b_.begin_if(whole, {tile::Type::vector(t, lanes)});
  b_.begin_else({b_.load(buffer, first, lanes)});
  return b_.end_if({b_.splat(b_.constant(t, 0), lanes)})[0];
}

Value Lowering::load(const Inst& inst) {
  const tile::Type& result = type(inst.results[0]);
  const int buffer = static_cast<int>(inst.imm);
  Value index = in(inst, 0);
  std::optional<Value> mask;
  if (inst.operands.size() > 1) mask = in(inst, 1);
  const bool uniform = index.uniform() && (!mask || mask->uniform());
  const bool one_row = index.one_row && (!mask || mask->one_row);
  tile::Type shape = result;  // what is held of it
  if (uniform) shape.shape[1] = 1;
  if (one_row) shape.shape[0] = 1;
  index.type = shape.with(DType::I64);
  if (mask) mask->type = shape.with(DType::Bool);
  before_read(buffer);
  std::vector<ValueId> registers;
  const Share s = share(shape);
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) {
      const ValueId asked = mask ? at(*mask, row, i) : -1;
      registers.push_back(load_register(buffer, index, row, i, both(asked, inside(shape, row, i))));
    }
  }
  Value v = registers_value(result, s.rows, uniform || result.shape[1] == 1, std::move(registers));
  v.one_row = one_row;
  return v;
}

void Lowering::store_register(int buffer, ValueId value, const Value& index, int row, int i, ValueId mask) {
  const int lanes = share(index.type).lanes;
  if (lanes == 1) return b_.store(buffer, value, at(index, row, i), mask);
  const ValueId whole = mask < 0 ? -1 : splat_scalar(mask);
  if (!aligned(index, row, i) || (mask >= 0 && whole < 0)) return b_.scatter(buffer, value, at(index, row, i), mask);
  const ValueId first = math_.value(first_index(index, row, i));
  if (mask >= 0) b_.begin_if(whole, {});
  b_.store(buffer, value, first);
  if (mask >= 0) b_.begin_else({}), b_.end_if({});
}

// Makes way for a write, and spreads its operands alike.
Lowering::Write Lowering::begin_write(const Inst& inst, bool fixed_index) {
  Write w;
  w.shape = type(inst.operands[1]);
  w.buffer = static_cast<int>(inst.imm);
  w.value = in(inst, 0);
  w.value.type = w.shape.with(w.value.type.dtype);
  if (inst.operands.size() > 2) w.mask = in(inst, 2), w.mask->type = w.shape.with(DType::Bool);
  before_write(w.buffer, fixed_index);
  w.share = share(w.shape);
  w.mine = owner(w.share);
  return w;
}

// Whether this thread writes the register; -1: it does.
ValueId Lowering::asked(const Write& w, int row, int i) {
  const ValueId masked = both(w.mask ? at(*w.mask, row, i) : -1, inside(w.shape, row, i));
  return both(masked, w.mine < 0 ? -1 : splat(w.mine, w.share.lanes));
}

void Lowering::store(const Inst& inst) {
  const Value& index = in(inst, 1);
  const Write w = begin_write(inst, fixed(index));
  for (int row = 0; row < w.share.rows; ++row) {
    for (int i = 0; i < w.share.count; ++i) {
      const ValueId mask = asked(w, row, i);
      store_register(w.buffer, at(w.value, row, i), index, row, i, mask);
    }
  }
}

// Each element once, by the thread that owns it; what was there goes to the others that hold it.
Value Lowering::atomic(const Inst& inst, Combine combine) {
  const tile::Type result = type(inst.results[0]);
  const Value& index = in(inst, 1);
  const Write w = begin_write(inst, false);
  std::vector<ValueId> registers;
  for (int row = 0; row < w.share.rows; ++row) {
    for (int i = 0; i < w.share.count; ++i) {
      const ValueId mask = asked(w, row, i);
      const ValueId operand = at(w.value, row, i), where = at(index, row, i);
      if (w.share.lanes > 1 || mask < 0) {
        registers.push_back(b_.atomic(combine, w.buffer, operand, where, mask));
        continue;
      }
      b_.begin_if(mask, {tile::Type::scalar(result.dtype)});
      b_.begin_else({b_.atomic(combine, w.buffer, operand, where)});
      registers.push_back(b_.end_if({b_.constant(result.dtype, 0)})[0]);
    }
  }
  Value old = registers_value(result, w.share.rows, result.shape[1] == 1, std::move(registers));
  return w.mine < 0 || !used_[inst.results[0]] ? old : shared_by_owners(old);
}

}  // namespace weft::kernel::simt
