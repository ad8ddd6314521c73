// Products by the matrix units of warps, in the interpreter: fragments, shared memory, and what does not suit the units.
#include "kernel/simd/differential.h"
#include "kernel/simt/spread.h"

namespace weft::kernel::simd_test {
namespace {

Machine with_matrix_units(int threads) {
  Machine m = group_machine(threads, 32, true);
  m.has_matrix = true;
  m.shared_bytes = 48 << 10;
  return m;
}

// y = x a, over `blocks` blocks of `depth` steps.
tile::Function product(DType t, int rows, int depth, int columns, int blocks) {
  Builder b("product");
  const int x = b.add_buffer({t, ssa::Space::Memory, true, false, 0}), a = b.add_buffer({t, ssa::Space::Memory, true, false, 0});
  const int y = b.add_buffer(kOut);
  const auto at = [&](int r, int c, int stride, ValueId first_row, ValueId first_column) {
    const ValueId row = b.add(b.iota(r, 1, 0), first_row), column = b.add(b.iota(1, c, 1), first_column);
    return b.add(b.mul(row, b.constant_i64(stride)), column);
  };
  const ValueId zero = b.constant_i64(0), step = b.constant_i64(depth);
  const ValueId start = b.broadcast(b.constant(DType::F32, 0), rows, columns);
  const auto loop = b.begin_for(zero, b.constant_i64(depth * blocks), step, {start});
  const ValueId left = b.load(x, at(rows, depth, depth * blocks, zero, loop.iv));
  const ValueId right = b.load(a, at(depth, columns, columns, loop.iv, zero));
  const ValueId sum = b.end_for({b.dot(left, right, loop.carried[0])})[0];
  b.store(y, sum, at(rows, columns, columns, zero, zero));
  return b.finish();
}

std::vector<std::uint16_t> encoded(DType t, std::size_t n, int seed) {
  std::vector<std::uint16_t> words(n);
  for (std::size_t i = 0; i < n; ++i) {  // whole numbers: sums are exact
    store_scalar(t, words.data(), static_cast<std::int64_t>(i), {static_cast<double>((i * 7 + i / 13 * 5 + seed) % 9) - 4, 0});
  }
  return words;
}

void check(DType t, int rows, int depth, int columns, int blocks, int threads, bool units) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(depth) + " x " + std::to_string(columns));
  const auto f = lower_simt(product(t, rows, depth, columns, blocks), with_matrix_units(threads));
  ASSERT_TRUE(f.ok()) << f.error().what();
  EXPECT_EQ(count(f->body, Op::MultiplyMatrix) > 0, units);
  const int k = depth * blocks;
  std::vector<std::uint16_t> x = encoded(t, static_cast<std::size_t>(rows * k), 1), a = encoded(t, static_cast<std::size_t>(k * columns), 5);
  std::vector<float> y(static_cast<std::size_t>(rows * columns));
  const BufferView views[] = {{x.data(), rows * k}, {a.data(), k * columns}, {y.data(), rows * columns}};
  const auto ran = interpret(*f, views, {}, 1);
  ASSERT_TRUE(ran.ok()) << ran.error().what();
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += load_f64(t, x.data(), r * k + i) * load_f64(t, a.data(), i * columns + c);
      ASSERT_EQ(y[static_cast<std::size_t>(r * columns + c)], sum) << r << ", " << c;
    }
  }
}

TEST(Matrix, UnitsMultiplyTilesOfAllSizes) {
  for (const DType t : {DType::F16, DType::BF16}) {
    check(t, 16, 16, 8, 1, 32, true);
    check(t, 16, 32, 16, 2, 256, true);
    check(t, 64, 32, 64, 2, 256, true);
    check(t, 64, 16, 32, 1, 64, true);  // fewer threads than rows ask for
    check(t, 128, 32, 32, 1, 256, true);
    check(t, 32, 64, 128, 1, 128, true);
  }
}

TEST(Matrix, WhatDoesNotSuitThemIsMultipliedByThreads) {
  check(DType::F16, 16, 8, 16, 2, 64, false);
  check(DType::F16, 8, 16, 16, 1, 64, false);
  check(DType::BF16, 16, 16, 12, 1, 64, false);
  check(DType::BF16, 13, 16, 16, 1, 64, false);
}

}  // namespace
}  // namespace weft::kernel::simd_test
