#include "kernel/simd/differential.h"

namespace weft::kernel::simd_test {
namespace {

// y[m, n] = x[m, k] w[k, n]: program tiles of rows x 32, rows clamped or masked, steps of `depth`
// along k.
tile::Function matmul(int rows, int depth, bool masked, DType narrow = DType::F32,
                      DType wide = DType::F32) {
  Builder b("matmul");
  const int x = b.add_buffer(in_buffer(narrow)), w = b.add_buffer(in_buffer(narrow)),
            y = b.add_buffer(out_buffer(wide));
  const ValueId m = b.size(b.add_size()), n = b.size(b.add_size()), k = b.size(b.add_size());
  const ValueId row = b.add(b.mul(b.program_id(), b.constant_i64(rows)), b.iota(rows, 1, 0));
  const ValueId clamped = b.min(row, b.sub(m, b.constant_i64(1)));
  const ValueId zero = b.broadcast(b.constant(wide, 0), rows, 32);
  const auto js = b.begin_for(b.constant_i64(0), n, b.constant_i64(32), {});
  const ValueId col = b.add(js.iv, b.iota(1, 32, 1)), col_ok = b.lt(col, n), row_ok = b.lt(row, m);
  const auto ks = b.begin_for(b.constant_i64(0), k, b.constant_i64(depth), {zero});
  const ValueId kr = b.add(ks.iv, b.iota(depth, 1, 0)), kc = b.add(ks.iv, b.iota(1, depth, 1));
  const ValueId k_ok = masked ? b.lt(kc, k) : b.constant_i64(1, DType::Bool);
  const ValueId kr_ok = masked ? b.lt(kr, k) : b.constant_i64(1, DType::Bool);
  const ValueId a = masked ? b.load(x, b.add(b.mul(row, k), kc), b.logical_and(row_ok, k_ok))
                           : b.load(x, b.add(b.mul(clamped, k), kc));
  const ValueId c = b.load(w, b.add(b.mul(kr, n), col), b.logical_and(kr_ok, col_ok));
  const ValueId sum = b.end_for({b.dot(a, c, ks.carried[0])})[0];
  b.store(y, sum, b.add(b.mul(row, n), col), b.logical_and(row_ok, col_ok));
  b.end_for({});
  return b.finish();
}

TEST(SimdDot, OneRow) {
  const tile::Function f = matmul(1, 1, false);
  differential(f, {{13, 13 * 45, 45}, {1, 45, 13}, 1, 1e-6});
}

TEST(SimdDot, FourteenRowsClamped) {
  const tile::Function f = matmul(14, 1, false);
  differential(f, {{17 * 9, 9 * 40, 17 * 40}, {17, 40, 9}, 2, 1e-6});
  const auto lowered = lower_simd(f, machine_of(64));
  EXPECT_EQ(count(lowered->body, Op::Fma), 28);
  EXPECT_EQ(count(lowered->body, Op::If), 0);
}

TEST(SimdDot, DeepStepsAndMasks) {
  for (const int depth : {1, 2, 4}) {
    SCOPED_TRACE(depth);
    differential(matmul(5, depth, true), {{7 * 11, 11 * 40, 7 * 40}, {7, 40, 11}, 2, 1e-6});
  }
}

TEST(SimdDot, WidensItsOperands) {
  differential(matmul(3, 2, true, DType::BF16, DType::F32),
               {{7 * 11, 11 * 40, 7 * 40}, {7, 40, 11}, 3, 1e-6});
  differential(matmul(3, 2, true, DType::I8, DType::I32),
               {{7 * 11, 11 * 40, 7 * 40}, {7, 40, 11}, 3});
}

// As matmul(), in words of four bytes or two bf16: w [k / steps, n, steps], the columns' steps side by side, or [k, n].
// Columns past the end are masked.
tile::Function matmul_in_words(int rows, int columns, int depth, DType left, DType right, bool side_by_side) {
  Builder b("matmul");
  const int steps = 32 / bits(left);
  const DType sum_type = is_float(left) ? DType::F32 : DType::I32;
  const int x = b.add_buffer(in_buffer(left)), w = b.add_buffer(in_buffer(right)), y = b.add_buffer(out_buffer(sum_type));
  const ValueId m = b.size(b.add_size()), n = b.size(b.add_size()), k = b.size(b.add_size());
  const ValueId row = b.add(b.mul(b.program_id(), b.constant_i64(rows)), b.iota(rows, 1, 0));
  const ValueId clamped = b.min(row, b.sub(m, b.constant_i64(1))), word = b.constant_i64(steps);
  const ValueId zero = b.broadcast(b.constant(sum_type, 0), rows, columns);
  const auto js = b.begin_for(b.constant_i64(0), n, b.constant_i64(columns), {});
  const ValueId col = b.add(js.iv, b.iota(1, columns, 1)), col_ok = b.lt(col, n);
  const auto ks = b.begin_for(b.constant_i64(0), k, b.constant_i64(depth), {zero});
  const ValueId a = b.load(x, b.add(b.mul(clamped, k), b.add(ks.iv, b.iota(1, depth, 1))));
  const ValueId kr = b.iota(depth, 1, 0), rest = b.scalar(ScalarOp::Mod, {kr, word});
  const ValueId in_words = b.add(b.mul(b.scalar(ScalarOp::FloorDiv, {kr, word}), b.mul(n, word)), rest);
  const ValueId at = side_by_side ? b.add(b.add(b.mul(ks.iv, n), in_words), b.mul(col, word)) : b.add(b.mul(b.add(ks.iv, kr), n), col);
  const ValueId c = b.load(w, at, b.broadcast(col_ok, depth, columns));
  const ValueId sum = b.end_for({b.dot(a, c, ks.carried[0])})[0];
  b.store(y, sum, b.add(b.mul(row, n), col), b.logical_and(b.lt(row, m), col_ok));
  b.end_for({});
  return b.finish();
}

void extremes(std::vector<Bytes>& buffers) {
  for (std::size_t i = 0; i < 2; ++i) {
    Bytes& b = buffers[i];
    const std::int64_t ends[] = {is_signed_int(b.dtype) ? -128 : 0, is_signed_int(b.dtype) ? 127 : 255};
    for (std::int64_t k = 0; k < b.elements; ++k) store_i64(b.dtype, b.payload(), k, ends[(k / 3 + k) % 2]);
  }
}

TEST(SimdDot, BytesInFours) {
  for (const bool side_by_side : {true, false}) {
    for (const bool left_unsigned : {true, false}) {
      for (const int depth : {4, 8}) {
        for (const int columns : {32, 4, 1}) {
          SCOPED_TRACE(std::to_string(depth) + " by " + std::to_string(columns));
          const DType left = left_unsigned ? DType::U8 : DType::I8, right = left_unsigned ? DType::I8 : DType::U8;
          const tile::Function f = matmul_in_words(3, columns, depth, left, right, side_by_side);
          const Case ordinary{{7 * 16, 16 * 41, 7 * 41}, {7, 41, 16}, 3};
          differential(f, ordinary);
          Case ends = ordinary;
          ends.fill = extremes;
          differential(f, ends);
        }
      }
    }
  }
}

TEST(SimdDot, BytesInFoursTakeOneInstructionEach) {
  const tile::Function f = matmul_in_words(6, 32, 4, DType::U8, DType::I8, true);
  const auto lowered = lower_simd(f, machine_of(64));
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(count(lowered->body, Op::Dot4), 12);
  EXPECT_EQ(count(lowered->body, Op::Words), 6 + 2);
  EXPECT_EQ(count(lowered->body, Op::Gather), 0);
  const auto again = ssa::parse(ssa::print(*lowered), op_table());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(ssa::print(*again), ssa::print(*lowered));
}

TEST(SimdDot, PairsOfBf16) {
  for (const bool side_by_side : {true, false}) {
    for (const int depth : {2, 4}) {
      for (const int columns : {32, 4, 1}) {
        SCOPED_TRACE(std::to_string(depth) + " by " + std::to_string(columns));
        const tile::Function f = matmul_in_words(3, columns, depth, DType::BF16, DType::BF16, side_by_side);
        differential(f, {{7 * 16, 16 * 41, 7 * 41}, {7, 41, 16}, 3, 1e-6});
      }
    }
  }
}

TEST(SimdDot, PairsOfBf16TakeOneInstructionEach) {
  const tile::Function f = matmul_in_words(6, 32, 2, DType::BF16, DType::BF16, true);
  const auto lowered = lower_simd(f, machine_of(64));
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(count(lowered->body, Op::Dot2), 12);
  EXPECT_EQ(count(lowered->body, Op::Words), 6 + 2);
  const auto again = ssa::parse(ssa::print(*lowered), op_table());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(ssa::print(*again), ssa::print(*lowered));
  const auto without = lower_simd(f, machine_of(32));
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(count(without->body, Op::Dot2), 0);
}

TEST(SimdReduce, BothAxesOfEveryKind) {
  for (const DType t : {DType::F32, DType::I32, DType::U8, DType::I64, DType::Bool}) {
    for (const Combine how :
         {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min, Combine::And, Combine::Or}) {
      const bool arithmetic = how == Combine::Sum || how == Combine::Prod;
      const bool logical = how == Combine::And || how == Combine::Or;
      if ((is_bool(t) && arithmetic) || (is_float(t) && logical)) continue;
      for (const int cols : {32, 12, 3}) {
        SCOPED_TRACE(std::string(name(t)) + " " + name(how) + " " + std::to_string(cols));
        Builder b("f");
        const int x = b.add_buffer(in_buffer(t)), y = b.add_buffer(out_buffer(t)),
                  z = b.add_buffer(out_buffer(t));
        const ValueId v =
            b.load(x, b.add(b.mul(b.iota(5, 1, 0), b.constant_i64(cols)), b.iota(1, cols, 1)));
        b.store(y, b.reduce(how, v, 1), b.iota(5, 1, 0));
        b.store(z, b.reduce(how, v, 0), b.iota(1, cols, 1));
        differential(b.finish(), {{5 * cols, 5, cols}, {}, 1, 1e-4});
      }
    }
  }
}

TEST(SimdReduce, OfWhatABroadcastRepeats) {
  for (const Combine how : {Combine::Sum, Combine::Max}) {
    Builder b("f");
    const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
    const ValueId row = b.broadcast(b.load(x, b.iota(1, 16, 1)), 3, 16),
                  col = b.broadcast(b.load(x, b.iota(3, 1, 0)), 3, 16);
    b.store(y, b.reduce(how, row, 0), b.iota(1, 16, 1));
    b.store(y, b.reduce(how, col, 1), b.add(b.iota(3, 1, 0), b.constant_i64(16)));
    differential(b.finish(), {{16, 19}, {}, 1, 1e-6});
  }
}

TEST(SimdReduce, SoftmaxOfRows) {
  Builder b("softmax");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size());
  const ValueId base = b.mul(b.program_id(), n), zero = b.constant_i64(0),
                step = b.constant_i64(16);
  const auto block = [&](ValueId iv) {
    const ValueId c = b.add(iv, b.iota(1, 16, 1));
    return std::pair{b.add(base, c), b.lt(c, n)};
  };
  const ValueId least = b.constant(DType::F32, -INFINITY);
  const auto first = b.begin_for(zero, n, step, {b.broadcast(least, 1, 1)});
  const auto [i, ok] = block(first.iv);
  const ValueId most = b.reduce(Combine::Max, b.select(ok, b.load(x, i, ok), least), 1);
  const ValueId m = b.end_for({b.scalar(ScalarOp::Max, {first.carried[0], most})})[0];
  const auto second = b.begin_for(zero, n, step, {b.broadcast(b.constant(DType::F32, 0), 1, 16)});
  const auto [j, ok2] = block(second.iv);
  const ValueId e = b.scalar(ScalarOp::Exp, {b.sub(b.load(x, j, ok2), m)});
  const ValueId s =
      b.end_for({b.add(second.carried[0], b.select(ok2, e, b.constant(DType::F32, 0)))})[0];
  const ValueId sum = b.reduce(Combine::Sum, s, 1);
  const auto third = b.begin_for(zero, n, step, {});
  const auto [l, ok3] = block(third.iv);
  b.store(y, b.scalar(ScalarOp::Div, {b.scalar(ScalarOp::Exp, {b.sub(b.load(x, l, ok3), m)}), sum}),
          l, ok3);
  b.end_for({});
  const tile::Function f = b.finish();
  for (const std::int64_t n : {1, 16, 45}) {
    Case c{{3 * n, 3 * n}, {n}, 3, 1e-5};
    c.special = false;
    differential(f, c);
  }
}

TEST(SimdControl, BranchesAndCarriedTiles) {
  Builder b("f");
  const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
  const ValueId at = b.add(b.mul(b.iota(2, 1, 0), b.constant_i64(16)), b.iota(1, 16, 1));
  const ValueId v = b.load(x, at);
  const auto loop = b.begin_for(b.constant_i64(0), b.size(b.add_size()), b.constant_i64(2),
                                {v, b.constant_i64(1), at});
  b.begin_if(b.lt(loop.iv, b.constant_i64(3)), {b.type(v)});
  b.begin_else({b.add(loop.carried[0], b.cast(b.broadcast(loop.carried[1], 2, 16), DType::F32))});
  const ValueId next = b.end_if({b.mul(loop.carried[0], v)})[0];
  const auto out = b.end_for(
      {next, b.add(loop.carried[1], loop.iv), b.sub(b.constant_i64(31), loop.carried[2])});
  b.store(y, out[0], out[2]);
  const tile::Function f = b.finish();
  for (const std::int64_t n : {0, 1, 9}) differential(f, {{32, 32}, {n}});
}

TEST(SimdControl, RefusesWhatCannotBeUnrolled) {
  Builder b("f");
  const int y = b.add_buffer(kOut);
  const ValueId at = b.add(b.mul(b.iota(1024, 1, 0), b.constant_i64(512)), b.iota(1, 512, 1));
  b.store(y, b.constant(DType::F32, 0), at);
  const auto lowered = lower_simd(b.finish(), machine_of(32));
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().kind(), ErrorKind::Unsupported);
}

TEST(SimdScan, AlongBothAxes) {
  for (const Combine how : {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min}) {
    for (const int axis : {0, 1}) {
      for (const int cols : {1, 6, 16, 48}) {
        SCOPED_TRACE(std::to_string(axis) + " " + std::to_string(cols));
        Builder b("f");
        const int x = b.add_buffer(kIn), y = b.add_buffer(kOut);
        const ValueId i = b.add(b.mul(b.iota(5, cols, 0), b.constant_i64(cols)), b.iota(5, cols, 1));
        b.store(y, b.scan(how, b.load(x, i), axis), i);
        differential(b.finish(), {{5 * cols, 5 * cols}});
      }
    }
  }
}

}  // namespace
}  // namespace weft::kernel::simd_test
