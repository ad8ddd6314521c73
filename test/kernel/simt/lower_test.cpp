// What only groups of threads have: shared memory, barriers, shuffles, padding, the choice of a spread. The rest of the
// lowering is tested beside kernel/simd's: every tile program there runs as groups of threads too.
#include "kernel/simd/differential.h"
#include "kernel/simt/spread.h"

namespace weft::kernel::simd_test {
namespace {

Function lowered(const tile::Function& f, const Machine& m) { return lower_simt(f, m).value(); }

ValueId flat(Builder& b, int rows, int cols) {
  return b.add(b.mul(b.iota(rows, 1, 0), b.constant_i64(cols)), b.iota(1, cols, 1));
}

// What one thread writes another one reads.
tile::Function reversed_on_chip(int columns) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const int t = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, columns});
  const ValueId i = b.iota(1, columns, 1);
  b.store(t, b.load(x, i), i);
  b.store(y, b.load(t, b.sub(b.constant_i64(columns - 1), i)), i);
  return b.finish();
}

TEST(Simt, ABarrierBetweenAWriteAndAReadOfSharedMemory) {
  const tile::Function f = reversed_on_chip(256);
  differential(f, {{256, 256}});
  EXPECT_EQ(count(lowered(f, group_machine(64, 32, true)).body, Op::Barrier), 1);
}

// A sequence over a state that is on chip: every step reads all of what the step before wrote.
TEST(Simt, BarriersInALoop) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const int t = b.add_buffer({DType::F32, ssa::Space::OnChip, true, true, 64});
  const ValueId i = b.iota(1, 64, 1), one = b.constant_i64(1);
  b.store(t, b.load(x, i), i);
  b.begin_for(b.constant_i64(0), b.size(b.add_size()), one, {});
  const ValueId next = b.load(t, b.scalar(ScalarOp::Mod, {b.add(i, one), b.constant_i64(64)}));
  b.store(t, b.add(next, b.load(x, i)), i);
  b.end_for({});
  b.store(y, b.load(t, i), i);
  const tile::Function f = b.finish();
  for (const std::int64_t steps : {0, 1, 5}) differential(f, {{64, 64}, {steps}});
}

TEST(Simt, ABranchThatSomeProgramsTake) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId i = b.add(b.iota(1, 64, 1), b.mul(b.program_id(), b.constant_i64(64)));
  const ValueId v = b.load(x, i);
  b.begin_if(b.lt(b.program_id(), b.constant_i64(1)), {b.type(v)});
  b.begin_else({b.broadcast(b.reduce(Combine::Sum, v, 1), 1, 64)});
  const ValueId out = b.end_if({v})[0];
  b.store(y, out, i);
  Case c{{128, 128}, {}, 2, 1e-5};
  c.special = false;
  differential(b.finish(), c);
}

TEST(Simt, Transposes) {
  for (const auto& [rows, cols] : {std::pair{8, 8}, {32, 32}, {16, 64}, {1, 32}, {32, 1}, {5, 12}, {33, 7}}) {
    SCOPED_TRACE(std::to_string(rows) + " by " + std::to_string(cols));
    Builder b("f");
    const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
    b.store(y, b.transpose(b.load(x, flat(b, rows, cols))), flat(b, cols, rows));
    differential(b.finish(), {{rows * cols, rows * cols}});
  }
}

// 32 lanes and no more: within a warp, where there are shuffles.
TEST(Simt, ATransposeOfOneWarpShuffles) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId v = b.load(x, flat(b, 4, 8));
  b.store(y, b.transpose(v), flat(b, 8, 4));
  const tile::Function f = b.finish();
  differential(f, {{32, 32}});
  const Function with = lowered(f, group_machine(128, 32, true)), without = lowered(f, group_machine(128, 32, false));
  EXPECT_EQ(count(with.body, Op::Shuffle), 2);
  EXPECT_EQ(count(with.body, Op::Barrier), 0);
  EXPECT_EQ(count(without.body, Op::Shuffle), 0);
  EXPECT_EQ(count(without.body, Op::Barrier), 1);
}

TEST(Simt, ReductionsGoFromRegistersToLanesToWarps) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  b.store(y, b.reduce(Combine::Sum, b.load(x, b.iota(1, 512, 1)), 1), b.iota(1, 1, 1));
  const tile::Function f = b.finish();
  Case c{{512, 1}, {}, 1, 1e-5};
  c.special = false;
  differential(f, c);
  const Function with = lowered(f, group_machine(128, 32, true)), without = lowered(f, group_machine(128, 32, false));
  EXPECT_EQ(with.threads, 128);
  EXPECT_EQ(count(with.body, Op::Shuffle), 5);
  EXPECT_EQ(count(with.body, Op::Barrier), 1);
  EXPECT_EQ(count(without.body, Op::Barrier), 3);  // two rounds, and one between them
}

// y[r, c] += x[r, k] w[k, c] in one step of many k.
tile::Function deep_dot(int rows, int depth, int cols, DType narrow = DType::F32) {
  Builder b("f");
  const int x = b.add_buffer(in_buffer(narrow)), w = b.add_buffer(in_buffer(narrow)), y = b.add_buffer(kOut);
  const ValueId at = flat(b, rows, cols);
  const auto loop = b.begin_for(b.constant_i64(0), b.constant_i64(2), b.constant_i64(1), {b.load(y, at)});
  const ValueId sum = b.dot(b.load(x, flat(b, rows, depth)), b.load(w, flat(b, depth, cols)), loop.carried[0]);
  b.store(y, b.end_for({sum})[0], at);
  return b.finish();
}

TEST(Simt, DotsThroughSharedMemory) {
  for (const auto& [rows, depth, cols] : {std::array{16, 8, 32}, {64, 16, 64}, {8, 48, 16}, {1, 8, 64}, {5, 3, 12}, {13, 40, 20}}) {
    SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(depth) + " " + std::to_string(cols));
    Case c{{rows * depth, depth * cols, rows * cols}, {}, 1, 1e-4};
    c.special = false;
    differential(deep_dot(rows, depth, cols), c);
  }
  Case c{{16 * 8, 8 * 32, 16 * 32}, {}, 1, 1e-4};
  c.special = false;
  differential(deep_dot(16, 8, 32, DType::BF16), c);
}

TEST(Simt, NeighboursAreOneAccess) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId i = b.add(b.iota(1, 128, 1), b.mul(b.program_id(), b.constant_i64(128)));
  b.store(y, b.load(x, i), i);
  const Function f = lowered(b.finish(), group_machine(128, 32, true));
  EXPECT_EQ(f.threads, 32);
  EXPECT_EQ(count(f.body, Op::Load), 1);
  EXPECT_EQ(count(f.body, Op::Store), 1);
  EXPECT_EQ(count(f.body, Op::Gather), 0);
}

// A mask that ends between vectors asks once for each of them.
TEST(Simt, MasksOfWholeVectors) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId n = b.mul(b.size(b.add_size()), b.constant_i64(4)), i = b.iota(1, 128, 1), ok = b.lt(i, n);
  b.store(y, b.load(x, i, ok), i, ok);
  const tile::Function f = b.finish();
  for (const std::int64_t quarter : {0, 5, 32}) differential(f, {{4 * quarter, 4 * quarter}, {quarter}});
  EXPECT_EQ(count(lowered(f, group_machine(128, 32, true)).body, Op::Gather), 0);
}

TEST(Simt, AScalarIsStoredByOneThread) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  b.store(y, b.load(x, b.constant_i64(3)), b.constant_i64(2));
  b.store(y, b.load(x, b.iota(1, 64, 1)), b.add(b.iota(1, 64, 1), b.constant_i64(8)));
  differential(b.finish(), {{64, 80}});
}

TEST(Simt, RefusesMoreSharedMemoryThanThereIs) {
  Machine small = group_machine(64, 32, true);
  small.shared_bytes = 1000;
  const auto refused = lower_simt(reversed_on_chip(256), small);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind(), ErrorKind::Unsupported);
  EXPECT_EQ(refused.error().code(), "shared-memory");
}

TEST(Simt, PrintsAndParses) {
  const Function f = lowered(reversed_on_chip(256), group_machine(64, 32, true));
  const std::string text = ssa::print(f);
  EXPECT_NE(text.find("threads 64 warp 32"), std::string::npos);
  EXPECT_EQ(ssa::print(ssa::parse(text, op_table()).value()), text);
}

// The layout says the same as the share that the lowering computes with, element by element.
TEST(Spread, LayoutAndShareAgree) {
  for (const auto& [rows, cols] : {std::pair{1, 512}, {64, 64}, {16, 4}, {1, 1}, {32, 1}, {2, 1024}}) {
    Builder b("f");
    const int y = b.add_buffer(kOut);
    b.store(y, b.constant(DType::F32, 0), flat(b, 64, 64));
    const simt::Spread spread = simt::choose_spread(b.finish(), group_machine(128, 32, true));
    const tile::Type type = tile::Type::tile(DType::F32, rows, cols);
    const simt::Share s = simt::share_of(spread, type);
    const simt::Layout layout = simt::layout_of(spread, type);
    for (int thread = 0; thread < 1 << spread.threads; ++thread) {
      const int column = (thread & ((1 << s.column_bits) - 1)) * s.lanes;
      const int row = thread >> spread.columns & ((1 << s.row_bits) - 1);
      for (int number = 0; number < s.registers() * s.lanes; ++number) {
        const simt::Bits at = layout.coordinate(static_cast<simt::Bits>(number), static_cast<simt::Bits>(thread & ((1 << spread.warp) - 1)),
                                                static_cast<simt::Bits>(thread >> spread.warp));
        EXPECT_EQ(layout.row(at), row + number / s.lanes / s.count * s.row_step);
        EXPECT_EQ(layout.column(at), column + number / s.lanes % s.count * s.column_step + number % s.lanes);
      }
    }
  }
}

}  // namespace
}  // namespace weft::kernel::simd_test
