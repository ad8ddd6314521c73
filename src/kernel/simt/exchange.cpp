// What threads tell each other: reductions over threads, and tiles that change their layout.
#include <algorithm>
#include <bit>

#include "kernel/combine.h"
#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr int kRoundBits = 4;  // of a thread's number that one round through shared memory combines

bool is_idempotent(Combine combine) { return combine != Combine::Sum && combine != Combine::Prod; }

}  // namespace

// Afterwards, all threads whose numbers differ in the bits [low, high) alone hold the same.
std::vector<ValueId> Lowering::across(Combine combine, std::vector<ValueId> parts, int low, int high) {
  if (parts.empty()) return parts;
  const Type type = b_.type(parts[0]);
  const ScalarOp op = combining_op(combine, type.dtype);
  if (machine_.has_shuffle) {
    const ValueId lane = b_.scalar(ScalarOp::And, {b_.thread_id(), b_.constant_i64((1 << spread_.warp) - 1)});
    for (; low < high && low < spread_.warp; ++low) {
      const ValueId other = b_.scalar(ScalarOp::Xor, {lane, b_.constant_i64(1 << low)});
      for (ValueId& part : parts) {
        std::vector<ValueId> lanes;
        for (int l = 0; l < type.lanes(); ++l) lanes.push_back(b_.shuffle(type.rank == 0 ? part : b_.extract(part, l), other));
        part = b_.scalar(op, {part, assemble(lanes)});
      }
    }
  }
  for (; low < high; low += kRoundBits) across_shared(combine, parts, low, std::min(high, low + kRoundBits));
  return parts;
}

void Lowering::across_shared(Combine combine, std::vector<ValueId>& parts, int low, int high) {
  const Type type = b_.type(parts[0]);
  const std::int64_t threads = std::int64_t{1} << spread_.threads, slots = static_cast<std::int64_t>(parts.size()) * threads;
  const int buffer = scratch(type.dtype, 0, slots * type.lanes());
  const ValueId lanes = b_.constant_i64(type.lanes()), thread = b_.thread_id();
  const auto slot = [&](std::size_t part, ValueId of) {
    return b_.mul(b_.add(of, b_.constant_i64(static_cast<std::int64_t>(part) * threads)), lanes);
  };
  before_write(buffer, true);
  for (std::size_t p = 0; p < parts.size(); ++p) b_.store(buffer, parts[p], slot(p, thread));
  before_read(buffer);
  const ValueId base = b_.scalar(ScalarOp::And, {thread, b_.constant_i64(~(((std::int64_t{1} << (high - low)) - 1) << low))});
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<ValueId> all;
    for (std::int64_t k = 0; k < 1 << (high - low); ++k) {
      all.push_back(b_.load(buffer, slot(p, b_.add(base, b_.constant_i64(k << low))), type.rank == 0 ? 0 : type.lanes()));
    }
    parts[p] = combine_pairwise(b_, combine, std::move(all));
  }
}

Value Lowering::reduce(const Inst& inst, Combine combine) {
  const tile::Type& result = type(inst.results[0]);
  Value x = in(inst, 0);
  const bool over_columns = inst.imm == 1;
  if (is_idempotent(combine) && (over_columns ? x.uniform() : x.one_row)) {
    x.type = result;
    return x;
  }
  const Share s = share(x.type);
  const ValueId neutral = [&] {
    const Scalar v = identity(combine, result.dtype);
    return is_float(result.dtype) ? b_.constant(result.dtype, v.f) : b_.constant_i64(v.i, result.dtype);
  }();
  const auto part = [&](int row, int i) {
    const ValueId v = at(x, row, i), real = inside(x.type, row, i);
    return real < 0 ? v : b_.select(real, v, splat(neutral, s.lanes));
  };
  std::vector<ValueId> results;
  if (over_columns) {
    for (int row = 0; row < s.rows; ++row) {
      std::vector<ValueId> parts;
      for (int i = 0; i < s.count; ++i) parts.push_back(part(row, i));
      results.push_back(b_.reduce(lane_combine(combine, result.dtype), combine_pairwise(b_, combine, std::move(parts))));
    }
    results = across(combine, std::move(results), 0, s.column_bits);
    const int high = spread_.columns + spread_.rows;
    results = across(combine, std::move(results), high, high + s.high_bits);
    return registers_value(result, s.rows, true, std::move(results));
  }
  for (int i = 0; i < s.count; ++i) {
    std::vector<ValueId> parts;
    for (int row = 0; row < s.rows; ++row) parts.push_back(part(row, i));
    results.push_back(combine_pairwise(b_, combine, std::move(parts)));
  }
  results = across(combine, std::move(results), spread_.columns, spread_.columns + s.row_bits);
  return registers_value(result, 1, result.shape[1] == 1, std::move(results));
}

// Writes the elements of a tile where the map from positions says, each once.
void Lowering::stage(int buffer, const Value& v, const LinearMap& offsets) {
  const Share s = share(v.type);
  const int register_bits = layout_of(spread_, v.type).bits(Part::Register);
  std::vector<Bits> of_threads;
  for (int i = register_bits; i < offsets.inputs(); ++i) of_threads.push_back(offsets.column(i));
  const ValueId base = linear({offsets.outputs(), std::move(of_threads)}, b_.thread_id());
  const ValueId mine = owner(s);
  const int count = std::bit_ceil(static_cast<unsigned>(s.count));
  before_write(buffer, true);
  bool neighbours = s.lanes > 1;  // a register's columns stay side by side
  for (Bits bit = 1; bit < static_cast<Bits>(s.lanes); bit *= 2) neighbours = neighbours && offsets(bit) == bit;
  for (int i = register_bits; i < offsets.inputs(); ++i) neighbours = neighbours && offsets.column(i) % s.lanes == 0;
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) {
      if (neighbours) {
        const auto number = static_cast<Bits>((row * count + i) * s.lanes);
        const ValueId offset = b_.scalar(ScalarOp::Xor, {base, b_.constant_i64(offsets(number))});
        if (mine >= 0) b_.begin_if(mine, {});
        b_.store(buffer, at(v, row, i), offset);
        if (mine >= 0) b_.begin_else({}), b_.end_if({});
        continue;
      }
      for (int lane = 0; lane < s.lanes; ++lane) {
        const int number = (row * count + i) * s.lanes + lane;
        const ValueId offset = b_.scalar(ScalarOp::Xor, {base, b_.constant_i64(offsets(static_cast<Bits>(number)))});
        b_.store(buffer, element(v, number), offset, mine);
      }
    }
  }
}

// Reads a tile where the map from positions says.
Value Lowering::fetch(int buffer, const tile::Type& type, const LinearMap& offsets) {
  const Share s = share(type);
  const int count = std::bit_ceil(static_cast<unsigned>(s.count));
  std::vector<Bits> of_threads;
  for (int i = layout_of(spread_, type).bits(Part::Register); i < offsets.inputs(); ++i) of_threads.push_back(offsets.column(i));
  const ValueId base = linear({offsets.outputs(), std::move(of_threads)}, b_.thread_id());
  before_read(buffer);
  return from_elements(type, [&](int number) {
    ValueId real = inside(type, number / s.lanes / count, number / s.lanes % count);
    if (real >= 0 && s.lanes > 1) real = b_.extract(real, number % s.lanes);
    return b_.load(buffer, b_.scalar(ScalarOp::Xor, {base, b_.constant_i64(offsets(static_cast<Bits>(number)))}), 0, real);
  });
}

Value Lowering::shared_by_owners(const Value& v) {
  const LinearMap map = layout_of(spread_, v.type).map();
  const int buffer = scratch(v.type.dtype, 0, std::int64_t{1} << map.outputs());
  stage(buffer, v, map);
  return fetch(buffer, v.type, map);
}

Value Lowering::transpose(const Inst& inst) {
  const Value& x = in(inst, 0);
  const tile::Type& result = type(inst.results[0]);
  const Layout from = layout_of(spread_, x.type).transposed(), to = layout_of(spread_, result);
  const Conversion c = conversion(from, to);
  const Bits registers = (Bits{1} << from.bits(Part::Register)) - 1;
  const bool shuffles = c.through == Conversion::Through::Lanes;
  if (c.through != Conversion::Through::Shared && (!shuffles || machine_.has_shuffle)) {
    std::vector<Bits> of_lanes;
    for (int i = 0; shuffles && i < to.bits(Part::Lane); ++i) {
      of_lanes.push_back(c.source.column(to.bits(Part::Register) + i) >> from.bits(Part::Register));
    }
    const ValueId lane = shuffles ? linear({to.bits(Part::Lane), std::move(of_lanes)}, b_.thread_id()) : -1;
    return from_elements(result, [&](int number) {
      const Bits source = c.source(static_cast<Bits>(number));
      const ValueId own = element(x, static_cast<int>(source & registers));
      if (!shuffles) return own;
      return b_.shuffle(own, b_.scalar(ScalarOp::Xor, {lane, b_.constant_i64(source >> from.bits(Part::Register))}));
    });
  }
  const LinearMap offsets = swizzle(from, to, 0, bank_bits(result.dtype, 0));
  const int buffer = scratch(result.dtype, 0, std::int64_t{1} << offsets.outputs());
  stage(buffer, x, compose(offsets, from.map()));
  return fetch(buffer, result, compose(offsets, to.map()));
}

}  // namespace weft::kernel::simt
