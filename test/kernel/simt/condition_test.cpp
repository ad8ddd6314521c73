// Conjunctions of comparisons of rows and columns, which become bits late: against the tile program, over sizes that cut rows and
// columns everywhere, and how many comparisons are left.
#include "kernel/simd/differential.h"

namespace weft::kernel::simd_test {
namespace {

struct Limits {
  bool triangle = false, columns = false, rows = false, wider = false, not_first = false;
};

// y[i, j] = x[i, j] where all limits hold, else -1. x lies in rows of `columns`, or of a size that is a multiple of four of them.
tile::Function limited(int rows, int columns, const Limits& limits, bool fours = false) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size()), m = b.size(b.add_size());
  const ValueId i = b.iota(rows, 1, 0), j = b.iota(1, columns, 1);
  const auto wide = [&](ValueId v) { return b.broadcast(v, rows, columns); };
  const auto compare = [&](ScalarOp op, ValueId a, ValueId c) { return b.scalar(op, {wide(a), wide(c)}); };
  ValueId mask = -1;
  const auto also = [&](ValueId v) { mask = mask < 0 ? v : b.scalar(ScalarOp::And, {mask, v}); };
  if (limits.triangle) also(compare(ScalarOp::Le, j, i));
  if (limits.columns) also(compare(ScalarOp::Lt, j, fours ? b.mul(n, b.constant_i64(4)) : n));
  if (limits.rows) also(compare(ScalarOp::Gt, m, i));
  if (limits.wider) also(compare(ScalarOp::Lt, j, b.add(n, b.constant_i64(3))));
  if (limits.not_first) also(compare(ScalarOp::Ge, j, b.constant_i64(1)));
  const ValueId at = b.add(wide(b.mul(i, b.constant_i64(columns))), wide(j));
  b.store(y, b.scalar(ScalarOp::Select, {mask, b.load(x, at, mask), b.broadcast(b.constant(DType::F32, -1), rows, columns)}), at);
  return b.finish();
}

TEST(Conditions, AreTheTileProgramsMasks) {
  const Limits all[] = {{.triangle = true}, {.columns = true}, {.rows = true}, {.triangle = true, .columns = true}, {.columns = true, .rows = true},
                        {.triangle = true, .columns = true, .rows = true, .wider = true, .not_first = true}, {.columns = true, .not_first = true}};
  for (const auto& [rows, columns] : {std::pair{1, 64}, {5, 7}, {16, 64}, {64, 16}}) {
    for (std::size_t l = 0; l < std::size(all); ++l) {
      const tile::Function f = limited(rows, columns, all[l]);
      for (const std::int64_t n : {0, 1, 6, 16, 63, 1000}) {
        SCOPED_TRACE(testing::Message() << rows << " by " << columns << ", limits " << l << ", size " << n);
        Case c{{rows * columns, rows * columns}, {n, n / 2 + 1}};
        c.vectors = false;
        differential(f, c);
      }
    }
  }
}

TEST(Conditions, OfSizesInFoursHoldForWholeVectors) {
  const tile::Function f = limited(4, 32, {.columns = true, .not_first = false}, true);
  for (const std::int64_t n : {0, 3, 8, 9}) differential(f, {{4 * 32, 4 * 32}, {n, 0}});
}

// Two limits of columns are one comparison for each register: of the least, which is found first.
TEST(Conditions, TheLeastOfSeveralLimitsIsCompared) {
  const auto comparisons = [](const Limits& limits) {
    const Function f = lower_simt(limited(64, 64, limits), group_machine(128, 32, true)).value();
    int all = 0;
    for (const Op op : {Op::Lt, Op::Le, Op::Gt, Op::Ge}) all += count(f.body, op);
    return all;
  };
  const int one = comparisons({.triangle = true});
  EXPECT_GT(one, 0);
  EXPECT_EQ(comparisons({.triangle = true, .columns = true}), one);
  EXPECT_EQ(comparisons({.columns = true, .wider = true}), comparisons({.columns = true}));  // which implies the other
}

// A loop's counter times a size is a sum that the loop carries.
TEST(Conditions, LoopsCarryProductsOfTheirCounters) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size()), stride = b.size(b.add_size()), j = b.iota(1, 64, 1);
  const auto loop = b.begin_for(b.constant_i64(2), n, b.constant_i64(3), {b.broadcast(b.constant(DType::F32, 0), 1, 64)});
  const ValueId at = b.add(b.broadcast(b.mul(loop.iv, stride), 1, 64), j);
  b.store(y, b.end_for({b.add(loop.carried[0], b.load(x, at))})[0], j);
  const tile::Function f = b.finish();
  for (const std::int64_t steps : {0, 2, 3, 9}) differential(f, {{64 * 10, 64}, {steps, 64}, 1, 1e-6});
  const Function lowered = lower_simt(f, group_machine(32, 32, true)).value();
  for (const ssa::Inst& inst : lowered.body.insts) {
    if (static_cast<Op>(inst.op) == Op::For) {
      EXPECT_EQ(count(inst.regions[0], Op::Mul), 0);
    }
  }
  EXPECT_TRUE(verify(lowered).ok());
}

}  // namespace
}  // namespace weft::kernel::simd_test
