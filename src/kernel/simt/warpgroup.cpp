// Products by four warps together, which read operands that lie in shared memory as the units want them, beside the
// threads. The spread is that of products by warps: of the 64 rows of a part, a warp has 16, a thread two of these. Which
// row of the tile is which of the 64 is told by where it lies.
#include <algorithm>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr int kGroupColumnBits = 3, kGroupLaneRows = 3, kPartBits = 6, kGroupRowWarps = 2;  // of a product, as bits
constexpr int kMostColumnBits = 8, kLeastTurnedBits = 4;
constexpr int kRunBits = 4;                       // of bytes that stay together
constexpr int kMostRowBits = 7, kMixedFrom = 7;   // rows of 128 bytes, bits that are exclusive-ored to lower ones

Bits one(int bit) { return Bits{1} << bit; }

// Bits of the longer axes of an operand in the order in which the units count.
struct Order {
  std::vector<Bits> steps, others;
  int own = 0;  // of others, that one product reads
};

// Bits of coordinates, from the lowest bit of the offset: a row, eight rows, further ones, what lies beside them.
std::vector<Bits> arranged(const Order& order, bool along, int row) {
  const auto &first = along ? order.steps : order.others, &second = along ? order.others : order.steps;
  std::vector<Bits> bits(first.begin(), first.begin() + row);
  bits.insert(bits.end(), second.begin(), second.end());
  bits.insert(bits.end(), first.begin() + row, first.end());
  return bits;
}

// The offset of an element of 2^bytes bytes, in rows of 2^row.
Bits mixed(Bits offset, int row, int bytes) {
  return offset ^ (offset >> (kMixedFrom - bytes) & ((Bits{1} << (row + bytes - kRunBits)) - 1)) << (kRunBits - bytes);
}

}  // namespace

bool Lowering::suits_groups(const Inst& inst) const {
  if (!spread_.groups || !for_groups(f_, machine_, inst)) return false;
  const tile::Type& result = type(inst.results[0]);
  const Share s = share(result);
  const int columns = log2_ceil(result.shape[1]) - s.high_bits;
  if (s.rows % 2 != 0 || columns < kGroupColumnBits || columns > kMostColumnBits) return false;
  const bool right_turned = bits(type(inst.operands[1]).dtype) == 16 && !deferred_.contains(inst.operands[1]);  // its rows are steps
  return !right_turned || columns >= kLeastTurnedBits;
}

Lowering::Reading Lowering::block_reading(const Inst& inst, int side) const {
  const tile::Type& result = type(inst.results[0]);
  const ValueId operand = inst.operands[static_cast<std::size_t>(side)];
  const int step_bits = log2_ceil(type(inst.operands[0]).shape[1]), own = spread_.rows, high = share(result).high_bits;
  Reading r;
  r.source = operand, r.left = side == 0, r.how = Reading::How::Blocks;
  if (deferred_.contains(operand)) r.source = defining_[operand]->operands[0], r.turned = true;
  const int bytes = log2_floor(bits(type(operand).dtype) / 8);
  r.lies_turned = r.left == r.turned && bytes == 0;  // the units read bytes along the steps alone
  const bool along = r.left != r.turned || r.lies_turned;  // steps are columns, as it lies
  const int other_bits = log2_ceil(result.shape[r.left ? 0 : 1]);
  const int lower = along ? step_bits : other_bits;  // bits of a column of the tile
  Order order;
  for (int i = 0; i < step_bits; ++i) order.steps.push_back(one(along ? i : lower + i));
  const auto other = [&](int i) { order.others.push_back(one(along ? lower + i : i)); };
  const auto others = [&](int from, int end) { for (int i = from; i < end; ++i) other(i); };
  if (r.left) {
    others(0, kGroupLaneRows), other(own), others(kGroupLaneRows, kGroupLaneRows + kGroupRowWarps);
    order.own = kPartBits;
    others(kGroupLaneRows + kGroupRowWarps, own), others(own + 1, other_bits);
  } else {
    others(0, kGroupColumnBits), others(kGroupColumnBits + high, other_bits);
    order.own = other_bits - high;
    others(kGroupColumnBits, kGroupColumnBits + high);
  }
  const int row = std::min(kMostRowBits - bytes, along ? step_bits : order.own);
  const std::vector<Bits> bits = arranged(order, along, row);
  const int all = static_cast<int>(bits.size());
  std::vector<Bits> plain(bits.size());
  for (int i = 0; i < all; ++i) plain[static_cast<std::size_t>(log2_floor(bits[static_cast<std::size_t>(i)]))] = one(i);
  r.plain = LinearMap(all, plain);
  for (Bits& offset : plain) offset = mixed(offset, row, bytes);
  r.mixed = LinearMap(all, std::move(plain));
  const int eight = log2_floor(kPartRows);
  r.block.row = row + bytes, r.block.turned = !along;
  r.block.stride = row + eight + bytes;
  r.block.leading = along ? 0 : row + step_bits + bytes;
  return r;
}

// Where the part of an operand begins that one product of this thread's four warps reads: of its first step, and of the part of
// the rows or columns, where a bit of `part` is a register's.
std::function<ValueId(Bits step, int part)> Lowering::block_starts(const Reading& r, const Lying& lying, const Inst& inst) {
  const int step_bits = log2_ceil(type(inst.operands[0]).shape[1]), own = spread_.rows, high = share(type(inst.results[0])).high_bits;
  const int other_bits = r.plain.inputs() - step_bits;
  const bool along = r.left != r.turned || r.lies_turned;
  const auto other = [&](int i) { return r.plain(one(along ? step_bits + i : i)); };
  std::vector<Bits> of_threads(static_cast<std::size_t>(spread_.threads));
  if (r.left) {
    for (int i = kGroupLaneRows + kGroupRowWarps; i < own; ++i) of_threads[static_cast<std::size_t>(spread_.columns + i)] = other(i);
  } else {
    for (int i = 0; i < high; ++i) of_threads[static_cast<std::size_t>(spread_.columns + own + i)] = other(kGroupColumnBits + i);
  }
  const ValueId base = linear({r.plain.outputs(), std::move(of_threads)}, b_.thread_id());
  const ValueId start = lying.slot < 0 ? base : b_.add(base, lying.slot);
  std::vector<Bits> steps, parts;
  for (int i = 0; i < step_bits; ++i) steps.push_back(r.plain(one(along ? i : other_bits + i)));
  for (int i = own + 1; r.left && i < other_bits; ++i) parts.push_back(other(i));
  return [this, start, of_step = LinearMap(r.plain.outputs(), steps), of_part = LinearMap(r.plain.outputs(), parts)](Bits step, int part) {
    return b_.add(start, b_.constant_i64(of_step(step) ^ of_part(static_cast<Bits>(part))));
  };
}

std::vector<ValueId> Lowering::group_sums(const Value& acc) {
  const Share s = share(acc.type);
  std::vector<ValueId> sums;
  for (int part = 0; part < s.rows / 2; ++part) {
    std::vector<ValueId> elements;
    for (int i = 0; i < s.count; ++i) {
      for (const int row : {2 * part, 2 * part + 1}) {
        for (const int lane : {0, 1}) elements.push_back(b_.extract(at(acc, row, i), lane));
      }
    }
    sums.push_back(assemble(elements));
  }
  return sums;
}

Value Lowering::from_group_sums(const tile::Type& type, const std::vector<ValueId>& sums) {
  const Share s = share(type);
  std::vector<ValueId> registers(static_cast<std::size_t>(s.registers()));
  for (std::size_t part = 0; part < sums.size(); ++part) {
    for (int i = 0; i < s.count; ++i) {
      for (const int half : {0, 1}) {
        const int first = 4 * i + 2 * half;
        registers[(2 * part + static_cast<std::size_t>(half)) * static_cast<std::size_t>(s.count) + static_cast<std::size_t>(i)] =
            assemble({b_.extract(sums[part], first), b_.extract(sums[part], first + 1)});
      }
    }
  }
  return registers_value(type, s.rows, false, std::move(registers));
}

Value Lowering::group_dot(const Inst& inst) {
  const tile::Type& result = type(inst.results[0]);
  const Share s = share(result);
  const int word = word_elements(type(inst.operands[0]).dtype), depth = type(inst.operands[0]).shape[1];
  const std::optional<Fragments> words = left_in_registers(inst);
  const Reading left = block_reading(inst, 0), right = block_reading(inst, 1);
  std::optional<Lying> left_lies;
  if (!words) left_lies = place(left, 1);
  const Lying right_lies = place(right, 2);
  ssa::BlocksImm blocks{left.block, right.block};
  blocks.right.buffer = right_lies.buffer;
  if (left_lies) blocks.left.buffer = left_lies->buffer;
  else blocks.left = {};
  if (right_lies.slot < 0 || (left_lies && left_lies->slot < 0)) b_.fence_shared();
  if (left_lies) arrived(*left_lies);
  arrived(right_lies);
  std::function<ValueId(Bits, int)> left_start;
  if (left_lies) left_start = block_starts(left, *left_lies, inst);
  const auto right_start = block_starts(right, right_lies, inst);

  const int parts = s.rows / 2, steps = kMatrixWords * word;
  const auto flying = flying_.find(&inst);
  std::vector<ValueId> sums = flying != flying_.end() ? flying->second : group_sums(in(inst, 2));
  std::vector<std::vector<ValueId>> lefts(static_cast<std::size_t>(parts));  // all before the fence
  for (int part = 0; part < parts; ++part) {
    for (int k = 0; k * steps < depth; ++k) {
      lefts[static_cast<std::size_t>(part)].push_back(words ? (*words)(k, part) : left_start(static_cast<Bits>(k * steps), part));
    }
  }
  b_.fence_products();
  for (int part = 0; part < parts; ++part) {
    ValueId& sum = sums[static_cast<std::size_t>(part)];
    for (int k = 0; k * steps < depth; ++k) {
      sum = b_.multiply_group(blocks, lefts[static_cast<std::size_t>(part)][static_cast<std::size_t>(k)], right_start(static_cast<Bits>(k * steps), 0), sum);
    }
  }
  b_.commit_products();
  const int left_flying = flying != flying_.end() ? 1 : 0;
  for (ValueId& sum : sums) sum = b_.wait_products(sum, left_flying);
  if (left_flying == 0) return from_group_sums(result, sums);
  flying->second = std::move(sums);
  return {};
}

}  // namespace weft::kernel::simt
