// Dot products, reductions and transposes of unrolled tiles.
#include "kernel/combine.h"
#include "kernel/simd/lowering.h"

namespace weft::kernel::simd {
namespace {

bool is_idempotent(Combine combine) { return combine != Combine::Sum && combine != Combine::Prod; }

}  // namespace

// sum + a * b: what a machine without fused multiplications is not made to imitate one for.
ValueId Lowering::accumulate(ValueId a, ValueId b, ValueId sum) {
  if (has_fma_ && is_float(b_.type(sum).dtype)) return b_.scalar(ScalarOp::Fma, {a, b, sum});
  return b_.add(sum, b_.mul(a, b));
}

// k is outermost, so that a step's loads are used at once: a vector of b for all rows, a scalar of
// a for all columns.
Value Lowering::dot(const Inst& inst) {
  if (is_tile_dot(f_, inst, machine_)) return dot_in_tiles(inst);
  const Value &a = in(inst, 0), &b = in(inst, 1), &acc = in(inst, 2);
  const tile::Type& result = type(inst.results[0]);
  const Layout to = layout(inst.results[0]);
  if (const int steps = steps_in_word(inst); to.lanes > 0 && steps > 0) return dot_in_words(inst, steps);
  const int rows = result.shape[0], depth = a.column_count();
  std::vector<ValueId> sums;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < to.count; ++i) sums.push_back(at(acc, row, i, to));
  }
  for (int k = 0; k < depth; ++k) {
    std::vector<ValueId> right;
    for (int i = 0; i < to.count; ++i) right.push_back(b_.cast(at(b, k, i, to), result.dtype));
    for (int row = 0; row < rows; ++row) {
      const ValueId left = b_.splat(b_.cast(element(a, row, k), result.dtype), to.lanes);
      for (int i = 0; i < to.count; ++i) {
        ValueId& sum = sums[row * to.count + i];
        sum = accumulate(left, right[i], sum);
      }
    }
  }
  return registers_value(result, rows, to, std::move(sums));
}

// As dot(), with several steps of k in a word: of a row of a in a scalar, of the columns of b in the lanes.
Value Lowering::dot_in_words(const Inst& inst, int steps) {
  const Value &a = in(inst, 0), &b = in(inst, 1), &acc = in(inst, 2);
  const tile::Type& result = type(inst.results[0]);
  const Layout to = layout(inst.results[0]);
  const int rows = result.shape[0], words = a.column_count() / steps;
  const auto add = [&](ValueId left, ValueId right, ValueId sum) {
    if (steps == 2) return b_.dot2(left, right, sum);
    return a.type.dtype == DType::U8 ? b_.dot4(left, right, sum) : b_.dot4(right, left, sum);
  };
  std::vector<ValueId> sums;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < to.count; ++i) sums.push_back(at(acc, row, i, to));
  }
  for (int word = 0; word < words; ++word) {
    std::vector<ValueId> right;
    for (int i = 0; i < to.count; ++i) right.push_back(words_of(b, word, i, to, steps));
    for (int row = 0; row < rows; ++row) {
      const ValueId left = b_.splat(b_.words(at(a, row, word, {steps, words})), to.lanes);
      for (int i = 0; i < to.count; ++i) {
        ValueId& sum = sums[row * to.count + i];
        sum = add(left, right[i], sum);
      }
    }
  }
  return registers_value(result, rows, to, std::move(sums));
}

ValueId Lowering::words_of(const Value& b, int word, int index, Layout to, int steps) {
  if (b.words) return b.registers[word * to.count + index];
  const ValueId elements = assemble(steps * to.lanes, [&](int k) {
    return element(b, steps * word + k % steps, index * to.lanes + k / steps);
  });
  return b_.words(elements);
}

Value Lowering::reduce(const Inst& inst, Combine combine) {
  const Value& x = in(inst, 0);
  const tile::Type& result = type(inst.results[0]);
  std::vector<ValueId> registers;
  if (inst.imm == 1) {
    const Layout from = x.uniform() && is_idempotent(combine) ? Layout{} : natural_layout(x.type);
    const int rows = stored_rows(x);
    for (int row = 0; row < rows; ++row) {
      std::vector<ValueId> parts;
      for (int i = 0; i < from.count; ++i) parts.push_back(at(x, row, i, from));
      const ValueId all = combine_pairwise(b_, combine, std::move(parts));
      registers.push_back(from.lanes == 0 ? all
                                          : b_.reduce(lane_combine(combine, result.dtype), all));
    }
    return registers_value(result, rows, {}, std::move(registers));
  }
  const Layout to = x.uniform() ? Layout{} : layout(inst.results[0]);
  const int rows = is_idempotent(combine) ? stored_rows(x) : x.row_count();
  for (int i = 0; i < to.count; ++i) {
    std::vector<ValueId> parts;
    for (int row = 0; row < rows; ++row) parts.push_back(at(x, row, i, to));
    registers.push_back(combine_pairwise(b_, combine, std::move(parts)));
  }
  return registers_value(result, 1, to, std::move(registers));
}

Value Lowering::scan(const Inst& inst, Combine combine) {
  const Value& x = in(inst, 0);
  const tile::Type& result = type(inst.results[0]);
  const ScalarOp op = combining_op(combine, result.dtype);
  const Layout to = layout(inst.results[0]);
  if (inst.imm == 0) {
    std::vector<ValueId> registers;
    for (int row = 0; row < result.shape[0]; ++row) {
      for (int i = 0; i < to.count; ++i) {
        const ValueId here = at(x, row, i, to);
        registers.push_back(row == 0 ? here : b_.scalar(op, {registers[registers.size() - to.count], here}));
      }
    }
    return registers_value(result, result.shape[0], to, std::move(registers));
  }
  ValueId running = -1;  // along the lanes one after the other: the order is what the op promises
  return from_elements(result, to, [&](int row, int col) {
    const ValueId here = element(x, row, col);
    return running = col == 0 ? here : b_.scalar(op, {running, here});
  });
}

// Squares of whole vectors are turned round by log2(W) rounds of interleaving rows i and i + W/2; other tiles element
// by element.
Value Lowering::transpose(const Inst& inst) {
  const Value& x = in(inst, 0);
  const tile::Type& result = type(inst.results[0]);
  const Layout to = layout(inst.results[0]), from = natural_layout(x.type);
  const int lanes = to.lanes;
  if (lanes < 4 || from.lanes != lanes || x.uniform() || !(x.layout == from)) {
    return from_elements(result, to, [&](int row, int col) { return element(x, col, row); });
  }
  std::vector<ValueId> registers(static_cast<std::size_t>(result.shape[0]) * to.count);
  for (int block = 0; block < to.count; ++block) {
    for (int part = 0; part < from.count; ++part) {
      std::vector<ValueId> square;
      for (int row = 0; row < lanes; ++row) square.push_back(at(x, block * lanes + row, part, from));
      for (int round = 1; round < lanes; round *= 2) square = interleaved(square);
      for (int row = 0; row < lanes; ++row)
        registers[static_cast<std::size_t>(part * lanes + row) * to.count + block] = square[row];
    }
  }
  return registers_value(result, result.shape[0], to, std::move(registers));
}

std::vector<ValueId> Lowering::interleaved(const std::vector<ValueId>& rows) {
  std::vector<ValueId> next;
  const std::size_t half = rows.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    for (const int side : {0, 1}) next.push_back(b_.interleave(rows[i], rows[i + half], side));
  }
  return next;
}

}  // namespace weft::kernel::simd
