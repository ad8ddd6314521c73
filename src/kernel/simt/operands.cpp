// Operands of products in shared memory: how they are read, where they lie, how they come there.
#include <algorithm>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

// How an operand is read: as the accumulator lies along the axis that they share, all of the other axis by each thread.
Layout reading_layout(const Layout& accumulator, Axis shared, int steps) {
  const Layout own = accumulator.projected(shared == Axis::Row ? Axis::Column : Axis::Row);
  std::array<std::vector<Bits>, 3> bases{own.bases(Part::Register), own.bases(Part::Lane), own.bases(Part::Warp)};
  const int rows = own.bits(Axis::Row), columns = own.bits(Axis::Column);
  if (shared == Axis::Row) {  // steps are the columns
    for (auto& part : bases) {
      for (Bits& b : part) b <<= steps;
    }
    return {{rows, steps}, std::move(bases)};
  }
  return {{steps, columns}, std::move(bases)};
}

// The lanes whose accesses of 2^run elements shared memory serves at once.
Layout served_at_once(const Layout& layout, int lanes) {
  std::array<std::vector<Bits>, 3> bases{layout.bases(Part::Register), layout.bases(Part::Lane), layout.bases(Part::Warp)};
  auto& lane = bases[static_cast<std::size_t>(Part::Lane)];
  lane.resize(std::min(lane.size(), static_cast<std::size_t>(lanes)));
  return {{layout.bits(Axis::Row), layout.bits(Axis::Column)}, std::move(bases)};
}

}  // namespace

Lowering::Reading Lowering::reading(const Inst& dot, int side) const {
  if (suits_groups(dot)) return block_reading(dot, side);
  if (suits_matrix_units(dot)) return matrix_reading(dot, side);
  const tile::Type& result = type(dot.results[0]);
  Reading r;
  r.source = dot.operands[static_cast<std::size_t>(side)];
  r.left = side == 0;
  r.run = side == 0 ? 0 : log2_floor(share(result).lanes);
  const int steps = log2_ceil(type(dot.operands[0]).shape[1]);
  r.layout = reading_layout(layout_of(spread_, result), side == 0 ? Axis::Row : Axis::Column, steps);
  return r;
}

// Offsets of an operand that is written as `writer` says, 2^run neighbours at once.
LinearMap Lowering::lying_offsets(const Reading& r, const Layout& writer, int run) const {
  if (r.how == Reading::How::Blocks) return r.mixed;
  const DType t = type(r.source).dtype;
  const int most = std::max(r.run, run);
  const auto lanes = [&](int access, int known) { return known > 0 ? known : std::min(log2_floor(machine_.warp_threads), bank_bits(t, access)); };
  return swizzle(served_at_once(writer, lanes(run, 0)), served_at_once(r.layout, lanes(r.run, r.served)), most, bank_bits(t, most));
}

// What is not there yet is written from registers.
Lowering::Lying Lowering::place(const Reading& r, int which) {
  if (const auto it = lying_.find(r.source); it != lying_.end()) return it->second;
  const Value& v = values_[r.source];
  const Layout own = layout_of(spread_, v.type), writer = r.lies_turned ? own.transposed() : own;
  Lying lying;
  lying.offsets = lying_offsets(r, writer, log2_floor(share(v.type).lanes));
  lying.buffer = scratch(v.type.dtype, which, std::int64_t{1} << lying.offsets.outputs());
  stage(lying.buffer, v, compose(lying.offsets, writer.map()));
  return lying;
}

void Lowering::arrived(const Lying& lying) {
  if (lying.slot >= 0) return hazards_.read(lying.buffer);
  before_read(lying.buffer);
}

// Bits that no thread sets are added, which the access itself can do; the others are exclusive-ored.
std::function<ValueId(Bits number)> Lowering::offsets_of(const Lying& lying, const Layout& layout) {
  const LinearMap map = compose(lying.offsets, layout.map());
  std::vector<Bits> of_threads;
  Bits reached = 0;
  for (int i = layout.bits(Part::Register); i < map.inputs(); ++i) of_threads.push_back(map.column(i)), reached |= map.column(i);
  const ValueId base = linear({map.outputs(), std::move(of_threads)}, b_.thread_id());
  return [this, map, base, reached, slot = lying.slot](Bits number) {
    const Bits offset = map(number);
    const ValueId moved = b_.scalar(ScalarOp::Xor, {base, b_.constant_i64(offset & reached)});
    const ValueId there = slot < 0 ? moved : b_.add(moved, slot);
    return b_.add(there, b_.constant_i64(offset & ~reached));
  };
}

}  // namespace weft::kernel::simt
