// Products. Each thread holds a block of the accumulator: some rows by some vectors of columns.
#include <numeric>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr int kUnrolledSteps = 8;  // of a loop over steps
constexpr int kRun = 4;            // of them, whose left operands are one access
constexpr int kRunRegisters = 32;  // that these may take

// Thread bits of a map from positions.
LinearMap of_threads(const LinearMap& map, int register_bits) {
  std::vector<Bits> columns;
  for (int i = register_bits; i < map.inputs(); ++i) columns.push_back(map.column(i));
  return {map.outputs(), std::move(columns)};
}

// Bits of an offset that threads or the counter of steps set.
Bits reached(const LinearMap& map, int register_bits, const std::vector<Bits>& steps, int counted_from) {
  Bits bits = 0;
  for (int i = register_bits; i < map.inputs(); ++i) bits |= map.column(i);
  for (std::size_t i = static_cast<std::size_t>(counted_from); i < steps.size(); ++i) bits |= steps[i];
  return bits;
}

// Whether runs of steps lie side by side, aligned.
bool keeps_runs(const LinearMap& map, const std::vector<Bits>& steps) {
  bool all = steps.size() >= 2 && steps[0] == 1 && steps[1] == 2;
  for (std::size_t i = 2; i < steps.size(); ++i) all = all && steps[i] % kRun == 0;
  for (int i = 0; i < map.inputs(); ++i) all = all && map.column(i) % kRun == 0;
  return all;
}

}  // namespace

// One step: a column and a row that every thread holds its part of.
Value Lowering::outer_product(const Inst& inst) {
  const tile::Type& result = type(inst.results[0]);
  Value a = in(inst, 0), b = in(inst, 1), acc = in(inst, 2);
  const Share s = share(result);
  std::vector<ValueId> sums;
  for (int row = 0; row < s.rows; ++row) {
    const ValueId left = splat(b_.cast(at(a, row, 0), result.dtype), s.lanes);
    for (int i = 0; i < s.count; ++i) sums.push_back(accumulate(left, b_.cast(at(b, 0, i), result.dtype), at(acc, row, i)));
  }
  return registers_value(result, s.rows, result.shape[1] == 1, std::move(sums));
}

Value Lowering::dot(const Inst& inst) {
  const int depth = type(inst.operands[0]).shape[1];
  if (depth == 1) return outer_product(inst);
  if (suits_groups(inst)) return group_dot(inst);
  if (suits_matrix_units(inst)) return matrix_dot(inst);
  const tile::Type& result = type(inst.results[0]);
  const Value& acc = in(inst, 2);
  const Share s = share(result);
  const int steps = log2_ceil(depth), vector = log2_floor(s.lanes);
  const Reading a_reading = reading(inst, 0), b_reading = reading(inst, 1);
  const Layout &left = a_reading.layout, &right = b_reading.layout;
  const Lying a_lies = place(a_reading, 1), b_lies = place(b_reading, 2);
  const LinearMap &a_offsets = a_lies.offsets, &b_offsets = b_lies.offsets;
  const int a_buffer = a_lies.buffer, b_buffer = b_lies.buffer;
  arrived(a_lies);
  arrived(b_lies);

  const LinearMap a_map = compose(a_offsets, left.map()), b_map = compose(b_offsets, right.map());
  const ValueId a_base = linear(of_threads(a_map, left.bits(Part::Register)), b_.thread_id());
  const ValueId b_base = linear(of_threads(b_map, right.bits(Part::Register)), b_.thread_id());
  const int count_bits = log2_ceil(s.count), columns = log2_ceil(result.shape[1]);
  // Offsets of step k, which are exclusive-ored to the bases.
  std::vector<Bits> a_steps, b_steps;
  for (int i = 0; i < steps; ++i) a_steps.push_back(a_offsets(Bits{1} << i)), b_steps.push_back(b_offsets(Bits{1} << (columns + i)));
  tile::Type one_row = result, one_column = result;
  one_row.shape[0] = one_column.shape[1] = 1;
  const LinearMap a_of_step{a_offsets.outputs(), a_steps}, b_of_step{b_offsets.outputs(), b_steps};
  const int at_once = depth <= kUnrolledSteps ? depth : std::gcd(depth, kUnrolledSteps);
  const int counted_from = at_once == depth ? steps : log2_floor(at_once);  // bits of a step's number that the loop counts
  const Bits a_reached = reached(a_map, left.bits(Part::Register), a_steps, counted_from);
  const Bits b_reached = reached(b_map, right.bits(Part::Register), b_steps, counted_from);
  const bool few = s.rows * kRun <= kRunRegisters;
  const int a_run = few && !s.padded_rows && at_once % kRun == 0 && keeps_runs(a_map, a_steps) ? kRun : 1;
  const auto address = [&](const Lying& lies, ValueId base, Bits number, Bits reached) {
    const ValueId moved = b_.scalar(ScalarOp::Xor, {base, b_.constant_i64(number & reached)});
    return b_.add(lies.slot < 0 ? moved : b_.add(moved, lies.slot), b_.constant_i64(number & ~reached));
  };
  // Step number k of those that start at the bases; `lefts` has the scalars of a run of steps, by row.
  std::vector<ValueId> lefts(static_cast<std::size_t>(s.rows));
  const auto step = [&](ValueId a_base, ValueId b_base, int k, std::vector<ValueId>& sums) {
    const auto number = static_cast<Bits>(k);
    std::vector<ValueId> rights;
    for (int i = 0; i < s.count; ++i) {
      const ValueId at = address(b_lies, b_base, b_of_step(number) ^ b_map(static_cast<Bits>(i) << vector), b_reached);
      rights.push_back(b_.cast(b_.load(b_buffer, at, s.lanes == 1 ? 0 : s.lanes, inside(one_row, 0, i)), result.dtype));
    }
    for (int row = 0; row < s.rows; ++row) {
      ValueId& run = lefts[static_cast<std::size_t>(row)];
      if (k % a_run == 0) {
        const ValueId at = address(a_lies, a_base, a_of_step(number) ^ a_map(static_cast<Bits>(row) << (count_bits + vector)), a_reached);
        run = b_.cast(b_.load(a_buffer, at, a_run == 1 ? 0 : a_run, inside(one_column, row, 0)), result.dtype);
      }
      const ValueId left = splat(a_run == 1 ? run : b_.extract(run, k % a_run), s.lanes);
      for (int i = 0; i < s.count; ++i) {
        ValueId& sum = sums[static_cast<std::size_t>(row * s.count + i)];
        sum = accumulate(left, rights[static_cast<std::size_t>(i)], sum);
      }
    }
  };
  std::vector<ValueId> sums;
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) sums.push_back(at(acc, row, i));
  }
  const auto loop = b_.begin_for(b_.constant_i64(0), b_.constant_i64(depth), b_.constant_i64(at_once), sums);
  const ValueId a_from = b_.scalar(ScalarOp::Xor, {a_base, linear(a_of_step, loop.iv)});
  const ValueId b_from = b_.scalar(ScalarOp::Xor, {b_base, linear(b_of_step, loop.iv)});
  sums = loop.carried;
  for (int k = 0; k < at_once; ++k) step(a_from, b_from, k, sums);
  sums = b_.end_for(std::move(sums));
  return registers_value(result, s.rows, result.shape[1] == 1, std::move(sums));
}

}  // namespace weft::kernel::simt
