// Products by the matrix units of warps. A thread holds pairs of columns of two rows of each 16 x 8 tile of the
// accumulator, which is what the spread of such a program is (spread.cpp); which row is which of the 16 does not matter,
// as long as the left operand says the same. The operands pass through shared memory, where pairs of steps are neighbours.
#include <algorithm>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr int kSteps = 16, kColumnBits = 3;  // of a multiplication
constexpr int kPair = 1, kLaneSteps = 2, kLaneRows = 3;  // bits

// Positions of an operand's elements as the units take them, the steps being columns: a register's bits are the pair, the
// row (of the left operand, where there are two), and the other half of the steps; lanes are pairs of steps, then rows.
// `others` are the bases of rows for the register's bits above, then of warps.
Layout operand_layout(int rows, int steps, std::vector<int> register_rows, std::vector<int> register_steps,
                      std::vector<int> lane_rows, std::vector<int> warp_rows, int warps) {
  const auto step = [](int bit) { return Bits{1} << bit; };
  const auto row = [&](int bit) { return Bits{1} << (steps + bit); };
  std::array<std::vector<Bits>, 3> bases;
  auto& registers = bases[static_cast<std::size_t>(Part::Register)];
  registers.push_back(step(0));
  for (const int bit : register_rows) registers.push_back(row(bit));
  for (const int bit : register_steps) registers.push_back(step(bit));
  auto& lanes = bases[static_cast<std::size_t>(Part::Lane)];
  for (int i = 0; i < kLaneSteps; ++i) lanes.push_back(step(kPair + i));
  for (const int bit : lane_rows) lanes.push_back(row(bit));
  auto& warp = bases[static_cast<std::size_t>(Part::Warp)];
  for (const int bit : warp_rows) warp.push_back(row(bit));
  while (static_cast<int>(warp.size()) < warps) warp.push_back(0);
  return {{rows, steps}, std::move(bases)};
}

std::vector<int> numbers(int from, int to) {
  std::vector<int> result;
  for (int i = from; i < to; ++i) result.push_back(i);
  return result;
}

}  // namespace

bool Lowering::suits_matrix_units(const Inst& inst) const {
  if (!spread_.matrix || !for_matrix_units(f_, machine_, inst)) return false;
  return share(type(inst.operands[2])).rows % 2 == 0;  // the two halves of 16 rows are one thread's
}

Value Lowering::matrix_dot(const Inst& inst) {
  const Value &a = in(inst, 0), &b = in(inst, 1), &acc = in(inst, 2);
  const tile::Type& result = type(inst.results[0]);
  const Share s = share(result);
  const int rows = log2_ceil(result.shape[0]), columns = log2_ceil(result.shape[1]), steps = log2_ceil(a.type.shape[1]);
  const int warps = spread_.threads - spread_.warp, own = spread_.rows;  // the lowest bits of a row are the thread's
  const Layout left = operand_layout(rows, steps, numbers(own, rows), numbers(kPair + kLaneSteps, steps), numbers(0, kLaneRows),
                                     numbers(kLaneRows, own), warps);
  const Layout right = operand_layout(columns, steps, numbers(kColumnBits, columns), numbers(kPair + kLaneSteps, steps),
                                      numbers(0, kColumnBits), {}, warps);
  const DType t = a.type.dtype;
  const Layout a_layout = layout_of(spread_, a.type), b_layout = layout_of(spread_, b.type).transposed();
  const LinearMap a_offsets = swizzle(a_layout, left, kPair, bank_bits(t, kPair));
  const LinearMap b_offsets = swizzle(b_layout, right, kPair, bank_bits(t, kPair));
  const int a_buffer = scratch(t, 1, std::int64_t{1} << a_offsets.outputs());
  const int b_buffer = scratch(t, 2, std::int64_t{1} << b_offsets.outputs());
  stage(a_buffer, a, compose(a_offsets, a_layout.map()));
  stage(b_buffer, b, compose(b_offsets, b_layout.map()));
  before_read(a_buffer);
  before_read(b_buffer);

  // Pairs at a position of an operand's layout, `pairs` numbers of registers side by side in one vector.
  const auto reader = [&](int buffer, const Layout& layout, const LinearMap& offsets) {
    const LinearMap map = compose(offsets, layout.map());
    std::vector<Bits> of_threads;
    for (int i = layout.bits(Part::Register); i < map.inputs(); ++i) of_threads.push_back(map.column(i));
    const ValueId base = linear({map.outputs(), std::move(of_threads)}, b_.thread_id());
    return [this, buffer, map, base](const std::vector<Bits>& registers) {
      std::vector<ValueId> elements;
      for (const Bits number : registers) {
        const ValueId pair = b_.load(buffer, b_.scalar(ScalarOp::Xor, {base, b_.constant_i64(map(number))}), 2);
        for (int lane = 0; lane < 2; ++lane) elements.push_back(b_.extract(pair, lane));
      }
      return assemble(elements);
    };
  };
  const auto left_at = reader(a_buffer, left, a_offsets);
  const auto right_at = reader(b_buffer, right, b_offsets);
  const Bits left_half = Bits{1} << (kPair + rows - own), right_half = Bits{1} << (kPair + columns - kColumnBits);

  std::vector<ValueId> sums;  // of 16 rows and 8 columns each
  for (int row = 0; row < s.rows; row += 2) {
    for (int i = 0; i < s.count; ++i) {
      const ValueId upper = at(acc, row, i), lower = at(acc, row + 1, i);
      sums.push_back(assemble({b_.extract(upper, 0), b_.extract(upper, 1), b_.extract(lower, 0), b_.extract(lower, 1)}));
    }
  }
  for (Bits k = 0; k < static_cast<Bits>(a.type.shape[1] / kSteps); ++k) {
    const Bits left_step = k * 2 * left_half, right_step = k * 2 * right_half;
    std::vector<ValueId> rights;
    for (Bits i = 0; i < static_cast<Bits>(s.count); ++i) {
      const Bits at_column = right_step | i << kPair;
      rights.push_back(right_at({at_column, at_column | right_half}));
    }
    for (Bits row = 0; row < static_cast<Bits>(s.rows); row += 2) {
      const Bits upper = left_step | row << kPair, lower = left_step | (row + 1) << kPair;
      const ValueId lefts = left_at({upper, lower, upper | left_half, lower | left_half});
      for (std::size_t i = 0; i < rights.size(); ++i) {
        ValueId& sum = sums[row / 2 * rights.size() + i];
        sum = b_.multiply_matrix(lefts, rights[i], sum);
      }
    }
  }
  std::vector<ValueId> registers(static_cast<std::size_t>(s.registers()));
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) {
      const ValueId sum = sums[static_cast<std::size_t>(row / 2 * s.count + i)];
      const int first = row % 2 * 2;
      registers[static_cast<std::size_t>(row * s.count + i)] = assemble({b_.extract(sum, first), b_.extract(sum, first + 1)});
    }
  }
  return registers_value(result, s.rows, false, std::move(registers));
}

}  // namespace weft::kernel::simt
