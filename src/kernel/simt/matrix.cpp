// Products by the matrix units of warps. A thread holds pairs of columns of two rows of each 16 x 8 tile of the
// accumulator, which is what the spread of such a program is (spread.cpp); which row is which of the 16 does not matter,
// as long as the left operand says the same. Operands pass through shared memory as they lie in their tiles, where warps
// load whole matrices of them; a left operand that its threads hold as the units take it, such as what another product
// gave, stays in registers.
#include <algorithm>

#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr int kColumnBits = 3, kLaneRows = 3, kLaneWords = 2, kWordBits = 3;  // of a multiplication

// What a position's bits stand for along the steps and along the other axis of an operand.
struct Axes {
  Layout layout(std::array<std::vector<Bits>, 3> bases) const { return {{rows, columns}, std::move(bases)}; }
  Bits step(int bit) const { return Bits{1} << (along ? bit : columns + bit); }
  Bits other(int bit) const { return Bits{1} << (along ? columns + bit : bit); }
  int rows = 0, columns = 0;
  bool along = true;  // steps are the columns
};

void append(std::vector<Bits>& to, int first, int end, const std::function<Bits(int)>& basis) {
  for (int i = first; i < end; ++i) to.push_back(basis(i));
}

}  // namespace

bool Lowering::suits_matrix_units(const Inst& inst) const {
  if (!spread_.matrix || !for_matrix_units(f_, machine_, inst)) return false;
  return share(type(inst.operands[2])).rows % 2 == 0;  // the two halves of 16 rows are one thread's
}

// Register bits of a reading's layout, from the lowest: the run of one access, blocks of steps, blocks of the other axis.
// Lanes name the rows of four matrices, or their elements.
Lowering::Reading Lowering::matrix_reading(const Inst& inst, int side) const {
  const tile::Type &a = type(inst.operands[0]), &result = type(inst.results[0]);
  const ValueId operand = inst.operands[static_cast<std::size_t>(side)];
  const int word = log2_floor(word_elements(type(operand).dtype));
  const int steps = log2_ceil(a.shape[1]), rows = log2_ceil(result.shape[0]), columns = log2_ceil(result.shape[1]);
  const int warps = spread_.threads - spread_.warp, own = spread_.rows;  // the lowest bits of a row are the thread's
  const int high = share(result).high_bits;                              // and of a column's blocks the warp's
  Reading r;
  r.source = operand;
  if (deferred_.contains(operand)) r.source = defining_[operand]->operands[0], r.turned = true;
  const bool left = r.left = side == 0;
  const bool along = left != r.turned;
  r.lies_turned = !along && word_elements(type(operand).dtype) > 2;  // bytes: their words must be neighbours
  const int others = left ? rows : columns;
  Axes axes{along || r.lies_turned ? others : steps, along || r.lies_turned ? steps : others, along || r.lies_turned};
  r.how = axes.along ? Reading::How::Matrices : word == 1 ? Reading::How::TurnedMatrices : Reading::How::Elements;
  const auto step = [&](int bit) { return axes.step(bit); };
  const auto other = [&](int bit) { return axes.other(bit); };
  std::array<std::vector<Bits>, 3> bases;
  auto &registers = bases[0], &lanes = bases[1], &warp_bases = bases[2];
  const int second = left ? own : kColumnBits + high;  // bit of the other axis that tells the two blocks of one load apart
  const int block = word + kWordBits;           // of steps
  if (r.how == Reading::How::Elements) {
    append(registers, kLaneWords, block, step);
    append(lanes, 0, kLaneWords, step);
    append(lanes, 0, kLaneRows, other);
  } else {
    r.run = word + kLaneWords, r.served = kLaneRows;
    append(registers, 0, r.run, axes.along ? std::function<Bits(int)>(step) : other);
    append(lanes, 0, kLaneRows, axes.along ? std::function<Bits(int)>(other) : step);
    const Bits half = step(word + kLaneWords), next = second < others ? other(second) : 0;
    lanes.push_back(left ? next : half), lanes.push_back(left ? half : next);
  }
  append(registers, block, steps, step);
  const bool paired = r.how != Reading::How::Elements;
  append(registers, second + (paired ? 1 : 0), others, other);
  if (left) {
    append(warp_bases, kLaneRows, own, other);
  } else {
    warp_bases.resize(static_cast<std::size_t>(own - kLaneRows), 0);
    append(warp_bases, kColumnBits, kColumnBits + high, other);
  }
  warp_bases.resize(static_cast<std::size_t>(warps), 0);
  r.layout = axes.layout(std::move(bases));
  return r;
}

// Words of the left operand as the units take them, if its threads hold them so: vectors by (block of steps, pair of rows).
std::optional<Lowering::Fragments> Lowering::left_in_registers(const Inst& inst) {
  const ValueId operand = inst.operands[0];
  if (lying_.contains(operand) || deferred_.contains(operand)) return std::nullopt;
  const Value& a = in(inst, 0);
  const int word = log2_floor(word_elements(a.type.dtype)), block = word + kWordBits;
  const int rows = log2_ceil(a.type.shape[0]), steps = log2_ceil(a.type.shape[1]), own = spread_.rows;
  Axes axes{rows, steps, true};
  const auto step = [&](int bit) { return axes.step(bit); };
  const auto row = [&](int bit) { return axes.other(bit); };
  std::array<std::vector<Bits>, 3> bases;
  append(bases[0], 0, word, step);
  bases[0].push_back(row(own)), bases[0].push_back(step(word + kLaneWords));
  append(bases[0], block, steps, step);
  append(bases[0], own + 1, rows, row);
  append(bases[1], word, word + kLaneWords, step);
  append(bases[1], 0, kLaneRows, row);
  append(bases[2], kLaneRows, own, row);
  bases[2].resize(static_cast<std::size_t>(spread_.threads - spread_.warp), 0);
  const Conversion c = conversion(layout_of(spread_, a.type), axes.layout(std::move(bases)));
  if (c.through != Conversion::Through::Nothing && c.through != Conversion::Through::Registers) return std::nullopt;
  return [this, a, c, steps, block, words = 4 << word](int k, int row_pair) {
    std::vector<ValueId> elements;
    const Bits first = (static_cast<Bits>(row_pair) << (steps - block) | static_cast<Bits>(k)) * static_cast<Bits>(words);
    for (Bits i = 0; i < static_cast<Bits>(words); ++i) elements.push_back(element(a, static_cast<int>(c.source(first + i))));
    return assemble(elements);
  };
}

// The same of an operand in shared memory: of the left one by (block of steps, pair of rows), of the right one by (block of
// steps, pair of blocks of columns), which a vector has one behind the other.
Lowering::Fragments Lowering::fragments(const Reading& r, const Lying& lying, int steps, int matrices) {
  const int word = log2_floor(word_elements(type(r.source).dtype)), blocks = steps - word - kWordBits;
  const auto at = offsets_of(lying, r.layout);
  if (r.how != Reading::How::Elements) {
    const bool turned = r.how == Reading::How::TurnedMatrices;
    return [=, this, run = r.run, buffer = lying.buffer](int k, int other) {
      const Bits number = (static_cast<Bits>(other) << blocks | static_cast<Bits>(k)) << run;
      return b_.load_matrix(buffer, at(number), matrices, turned);
    };
  }
  // One word of f32 each: the halves of the steps are the lowest bit, two blocks of the other axis the lowest of theirs.
  const bool left = r.left;
  return [=, this, buffer = lying.buffer](int k, int other) {
    std::vector<ValueId> words;
    for (int i = 0; i < matrices; ++i) {
      const int half = left ? i / 2 : i % 2, next = left ? i % 2 : i / 2;
      const int block = matrices == 2 && !left ? other : 2 * other + next;
      const Bits number = (static_cast<Bits>(block) << blocks | static_cast<Bits>(k)) << 1 | static_cast<Bits>(half);
      words.push_back(b_.load(buffer, at(number), 0));
    }
    return assemble(words);
  };
}

Value Lowering::matrix_dot(const Inst& inst) {
  const tile::Type& result = type(inst.results[0]);
  const Share s = share(result);
  const DType t = type(inst.operands[0]).dtype;
  const int word = word_elements(t), steps = log2_ceil(type(inst.operands[0]).shape[1]);
  std::optional<Fragments> left = left_in_registers(inst);
  const Reading left_reading = matrix_reading(inst, 0), right_reading = matrix_reading(inst, 1);
  std::optional<Lying> lies;
  if (!left) lies = place(left_reading, 1);
  const Lying right_lies = place(right_reading, 2);
  if (lies) arrived(*lies);
  arrived(right_lies);
  if (!left) left = fragments(left_reading, *lies, steps, 4);
  const bool pairs = s.count > 1;
  const Fragments right = fragments(right_reading, right_lies, steps, pairs ? 4 : 2);

  const Value& acc = in(inst, 2);
  std::vector<ValueId> sums;  // of 16 rows and 8 columns each
  for (int row = 0; row < s.rows; row += 2) {
    for (int i = 0; i < s.count; ++i) {
      const ValueId upper = at(acc, row, i), lower = at(acc, row + 1, i);
      sums.push_back(assemble({b_.extract(upper, 0), b_.extract(upper, 1), b_.extract(lower, 0), b_.extract(lower, 1)}));
    }
  }
  for (int k = 0; k < type(inst.operands[0]).shape[1] / (kMatrixWords * word); ++k) {
    std::vector<ValueId> rights;
    for (int i = 0; i < s.count; i += 2) {
      const ValueId both = right(k, i / 2);
      if (!pairs) rights.push_back(both);
      for (int half = 0; half < 2 && pairs; ++half) {
        std::vector<ValueId> elements;
        for (int n = 0; n < 2 * word; ++n) elements.push_back(b_.extract(both, half * 2 * word + n));
        rights.push_back(assemble(elements));
      }
    }
    for (int row = 0; row < s.rows; row += 2) {
      const ValueId lefts = (*left)(k, row / 2);
      for (std::size_t i = 0; i < rights.size(); ++i) {
        ValueId& sum = sums[static_cast<std::size_t>(row / 2) * rights.size() + i];
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
