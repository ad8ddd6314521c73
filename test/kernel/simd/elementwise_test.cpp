#include "kernel/simd/differential.h"

namespace weft::kernel::simd_test {
namespace {

struct Grid1d {
  ValueId index, mask;
};
Grid1d elements(Builder& b, int cols) {
  const ValueId n = b.size(b.add_size());
  const ValueId i = b.add(b.mul(b.program_id(), b.constant_i64(cols)), b.iota(1, cols, 1));
  return {i, b.lt(i, n)};
}

TEST(SimdElementwise, TailsOfEveryDtype) {
  for (const DType t : {DType::F32, DType::F64, DType::I8, DType::I16, DType::I32, DType::I64,
                        DType::U8, DType::U16, DType::U32, DType::U64}) {
    SCOPED_TRACE(name(t));
    Builder b("f");
    const int x = b.add_buffer(in_buffer(t)), y = b.add_buffer(out_buffer(t));
    const auto [i, mask] = elements(b, 32);
    const ValueId v = b.load(x, i, mask);
    b.store(y, b.add(b.mul(v, v), b.min(v, b.constant(t, 3))), i, mask);
    const tile::Function f = b.finish();
    for (const std::int64_t n : {1, 31, 32, 33, 70}) differential(f, {{n, n}, {n}, (n + 31) / 32});
  }
}

TEST(SimdElementwise, HalfPrecisionAndBoolThroughCasts) {
  for (const DType t : {DType::F16, DType::BF16, DType::Bool}) {
    SCOPED_TRACE(name(t));
    Builder b("f");
    const int x = b.add_buffer(in_buffer(t)), y = b.add_buffer(out_buffer(t)),
              z = b.add_buffer(out_buffer(DType::F32));
    const auto [i, mask] = elements(b, 16);
    const ValueId v = b.cast(b.load(x, i, mask), DType::F32);
    const ValueId r = b.mul(v, b.constant(DType::F32, 1.5));
    b.store(z, r, i, mask);
    b.store(y, is_bool(t) ? b.lt(r, b.constant(DType::F32, 1)) : b.cast(r, t), i, mask);
    const tile::Function f = b.finish();
    for (const std::int64_t n : {1, 15, 37}) differential(f, {{n, n, n}, {n}, (n + 15) / 16});
  }
}

TEST(SimdElementwise, OddTileSizes) {
  for (const int cols : {1, 2, 3, 6, 12, 20, 48}) {
    SCOPED_TRACE(cols);
    Builder b("f");
    const int x = b.add_buffer(in_buffer(DType::F32)), y = b.add_buffer(out_buffer(DType::F32));
    const auto [i, mask] = elements(b, cols);
    b.store(y, b.sub(b.load(x, i, mask), b.constant(DType::F32, 2)), i, mask);
    const std::int64_t n = 3 * cols - 1;
    differential(b.finish(), {{n, n}, {n}, 3});
  }
}

// out[r, c] = bias[c] * scale[r] + x[r, c] with row and column tails.
TEST(SimdElementwise, BroadcastsRowsAndColumns) {
  Builder b("f");
  const int x = b.add_buffer(in_buffer(DType::F32)), bias = b.add_buffer(in_buffer(DType::F32));
  const int scale = b.add_buffer(in_buffer(DType::F32)), y = b.add_buffer(out_buffer(DType::F32));
  const ValueId m = b.size(b.add_size()), n = b.size(b.add_size());
  const ValueId row = b.add(b.mul(b.program_id(), b.constant_i64(3)), b.iota(3, 1, 0));
  const ValueId row_ok = b.lt(row, m);
  const auto loop = b.begin_for(b.constant_i64(0), n, b.constant_i64(16), {});
  const ValueId col = b.add(loop.iv, b.iota(1, 16, 1));
  const ValueId col_ok = b.lt(col, n);
  const ValueId index = b.add(b.mul(row, n), col), ok = b.logical_and(row_ok, col_ok);
  const ValueId product = b.mul(b.load(bias, col, col_ok), b.load(scale, row, row_ok));
  b.store(y, b.add(product, b.load(x, index, ok)), index, ok);
  b.end_for({});
  const tile::Function f = b.finish();
  differential(f, {{7 * 37, 37, 7, 7 * 37}, {7, 37}, 3});
  differential(f, {{6 * 32, 32, 6, 6 * 32}, {6, 32}, 2});
  differential(f, {{1, 1, 1, 1}, {1, 1}, 1});
  const auto lowered = lower_simd(f, machine_of(64));
  EXPECT_EQ(count(lowered->body, Op::Gather) + count(lowered->body, Op::Scatter), 0);
}

TEST(SimdElementwise, ComparisonsOfIndices) {
  for (const ScalarOp op :
       {ScalarOp::Lt, ScalarOp::Le, ScalarOp::Gt, ScalarOp::Ge, ScalarOp::Eq, ScalarOp::Ne}) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(info(op).name);
      Builder b("f");
      const int y = b.add_buffer(out_buffer(DType::Bool));
      const ValueId limit = b.sub(b.mul(b.program_id(), b.constant_i64(5)), b.constant_i64(10));
      const ValueId col = b.add(b.iota(2, 32, 1), b.mul(b.iota(2, 1, 0), b.constant_i64(3)));
      const ValueId bit = swapped ? b.scalar(op, {limit, col}) : b.scalar(op, {col, limit});
      const ValueId index =
          b.add(b.mul(b.program_id(), b.constant_i64(64)),
                b.add(b.mul(b.iota(2, 1, 0), b.constant_i64(32)), b.iota(1, 32, 1)));
      b.store(y, bit, index);
      differential(b.finish(), {{64 * 12}, {}, 12});
    }
  }
}

}  // namespace
}  // namespace weft::kernel::simd_test
