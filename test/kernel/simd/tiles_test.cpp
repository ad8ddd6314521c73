// Dots on a matrix unit, in all the ways in which their operands may lie and their sums be used.
#include "kernel/simd/differential.h"

namespace weft::kernel::simd_test {
namespace {

struct Shape {
  int rows = 32, columns = 32;
  DType left = DType::BF16, right = DType::BF16;
  bool words = true;      // right: [steps / side, n, side], else [steps, n]
  bool masked = false;    // rows and columns past the end
  bool biased = false;    // sums start with what y holds
  bool twice = false;     // over two loops, one in the other
  bool finished = false;  // y = max(sum, 0) in the first program
};

// y[m, n] = x[m, k] w[k, n] in tiles of rows x columns; k is a multiple of a row of a tile.
tile::Function product(const Shape& s) {
  Builder b("product");
  const bool bytes = bits(s.left) == 8;
  const DType wide = bytes ? DType::I32 : DType::F32;
  const int steps = bytes ? 64 : 32, side = bytes ? 4 : 2;
  const int x = b.add_buffer(in_buffer(s.left)), w = b.add_buffer(in_buffer(s.right)), y = b.add_buffer(out_buffer(wide));
  const ValueId m = b.size(b.add_size()), n = b.size(b.add_size()), k = b.size(b.add_size());
  const ValueId row = b.add(b.mul(b.program_id(), b.constant_i64(s.rows)), b.iota(s.rows, 1, 0));
  const ValueId at_row = s.masked ? b.min(row, b.sub(m, b.constant_i64(1))) : row;
  const auto js = b.begin_for(b.constant_i64(0), n, b.constant_i64(s.columns), {});
  const ValueId col = b.add(js.iv, b.iota(1, s.columns, 1));
  const ValueId out = b.add(b.mul(row, n), col);
  const ValueId inside = s.masked ? b.logical_and(b.lt(row, m), b.lt(col, n)) : -1;
  const ValueId zero = b.broadcast(b.constant(wide, 0), s.rows, s.columns);
  const ValueId first = s.biased ? (s.masked ? b.load(y, out, inside) : b.load(y, out)) : zero;
  const ValueId half = b.constant_i64(s.twice ? 2 : 1);
  const auto outer = b.begin_for(b.constant_i64(0), half, b.constant_i64(1), {first});
  const ValueId part = b.scalar(ScalarOp::FloorDiv, {k, half}), from = b.mul(outer.iv, part);
  const auto ks = b.begin_for(from, b.add(from, part), b.constant_i64(steps), {outer.carried[0]});
  const ValueId a = b.load(x, b.add(b.mul(at_row, k), b.add(ks.iv, b.iota(1, steps, 1))));
  const ValueId kr = b.iota(steps, 1, 0), sides = b.constant_i64(side);
  const ValueId group = b.mul(b.scalar(ScalarOp::FloorDiv, {kr, sides}), b.mul(n, sides));
  const ValueId in_words = b.add(b.add(b.add(b.mul(ks.iv, n), group), b.scalar(ScalarOp::Mod, {kr, sides})), b.mul(col, sides));
  const ValueId at = s.words ? in_words : b.add(b.mul(b.add(ks.iv, kr), n), col);
  const ValueId c = s.masked ? b.load(w, at, b.broadcast(b.lt(col, n), steps, s.columns)) : b.load(w, at);
  ValueId sum = b.end_for({b.dot(a, c, ks.carried[0])})[0];
  sum = b.end_for({sum})[0];
  if (s.finished) {
    b.begin_if(b.lt(b.program_id(), b.constant_i64(1)), {b.type(sum)});
    b.begin_else({b.scalar(ScalarOp::Max, {sum, zero})});
    sum = b.end_if({sum})[0];
  }
  b.store(y, sum, out, inside);
  b.end_for({});
  return b.finish();
}

std::string describe(const Shape& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.columns) + (s.words ? " words" : "") + (s.masked ? " masked" : "") +
         (s.biased ? " biased" : "") + (s.twice ? " twice" : "") + (s.finished ? " finished" : "") + " " + weft::name(s.left) + " " +
         weft::name(s.right);
}

void compare_with_tiles(const Shape& s) {
  SCOPED_TRACE(describe(s));
  const tile::Function f = product(s);
  const std::int64_t depth = 128, m = s.masked ? s.rows + 5 : 2 * s.rows, n = s.masked ? s.columns + 3 : s.columns;
  differential(f, {{m * depth, depth * n, m * n}, {m, n, depth}, 2, 1e-4, false, false});
  const auto lowered = lower_simd(f, matrix_machine());
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(count(lowered->body, Op::MultiplyTiles), s.rows / 16 * s.columns / 16);
  EXPECT_EQ(count(lowered->body, Op::Fma) + count(lowered->body, Op::Dot4), 0);
}

TEST(SimdTiles, EveryWayOfLying) {
  for (const bool words : {true, false}) {
    for (const bool masked : {false, true}) {
      for (const auto& [rows, columns] : {std::pair{32, 32}, {16, 16}, {16, 48}, {48, 16}, {16, 32}}) {
        Shape s;
        s.rows = rows, s.columns = columns, s.words = words, s.masked = masked;
        compare_with_tiles(s);
      }
    }
  }
}

TEST(SimdTiles, EveryUseOfSums) {
  for (const bool biased : {false, true}) {
    for (const bool twice : {false, true}) {
      for (const bool finished : {false, true}) {
        Shape s;
        s.biased = biased, s.twice = twice, s.finished = finished;
        compare_with_tiles(s);
        s.masked = true;
        compare_with_tiles(s);
      }
    }
  }
}

TEST(SimdTiles, Bytes) {
  for (const DType left : {DType::U8, DType::I8}) {
    for (const DType right : {DType::U8, DType::I8}) {
      for (const bool words : {true, false}) {
        Shape s;
        s.left = left, s.right = right, s.words = words;
        compare_with_tiles(s);
      }
    }
  }
}

TEST(SimdTiles, WholeOnesTakeNoOtherMemory) {
  Shape s;
  const auto lowered = lower_simd(product(s), matrix_machine());
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(count(lowered->body, Op::ZeroTile), 4);
  EXPECT_EQ(count(lowered->body, Op::LoadTile), 4);
  EXPECT_EQ(count(lowered->body, Op::StoreTile), 4);
  EXPECT_EQ(count(lowered->body, Op::Load) + count(lowered->body, Op::Store), 0);
  EXPECT_EQ(lowered->buffers.size(), 3U);
  const auto again = ssa::parse(ssa::print(*lowered), op_table());
  ASSERT_TRUE(again.ok()) << again.error().what();
  EXPECT_EQ(ssa::print(*again), ssa::print(*lowered));
}

}  // namespace
}  // namespace weft::kernel::simd_test
