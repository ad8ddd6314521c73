#include <gtest/gtest.h>

#include "tile/tile.h"

namespace weft::tile {
namespace {

constexpr ssa::Buffer kIn = {DType::F32, ssa::Space::Memory, true, false, 0};
constexpr ssa::Buffer kOut = {DType::F32, ssa::Space::Memory, false, true, 0};

TEST(TileInterpret, MaskedTailsOfAGrid) {
  Builder b("scale");
  const int in = b.add_buffer(kIn), out = b.add_buffer(kOut);
  const ValueId n = b.size(b.add_size());
  const ValueId i = b.add(b.mul(b.program_id(), b.constant_i64(4)), b.iota(1, 4, 1));
  const ValueId mask = b.lt(i, n);
  b.store(out, b.mul(b.load(in, i, mask), b.constant(DType::F32, 2)), i, mask);
  const Function f = b.finish();
  ASSERT_TRUE(verify(f).ok());
  float x[5] = {1, 2, 3, 4, 5}, y[5] = {};
  const BufferView views[] = {{x, 5}, {y, 5}};
  const std::int64_t sizes[] = {5};
  ASSERT_TRUE(interpret(f, views, sizes, 2).ok());
  for (int k = 0; k < 5; ++k) EXPECT_EQ(y[k], 2 * x[k]);
  const std::int64_t wrong[] = {6};
  EXPECT_FALSE(interpret(f, views, wrong, 2).ok());  // reads element 5 of 5
}

TEST(TileInterpret, DotReduceTransposeLoop) {
  Builder b("f");
  const int in = b.add_buffer(kIn), out = b.add_buffer(kOut);
  const ValueId row = b.iota(2, 3, 0), col = b.iota(2, 3, 1);
  const ValueId a = b.load(in, b.add(b.mul(row, b.constant_i64(3)), col));  // [2,3]
  const ValueId square = b.dot(a, b.transpose(a), b.broadcast(b.constant(DType::F32, 0), 2, 2));
  const ValueId sum = b.reduce(Combine::Sum, b.reduce(Combine::Max, square, 0), 1);
  const auto loop = b.begin_for(b.constant_i64(0), b.constant_i64(3), b.constant_i64(1), {sum});
  const ValueId total = b.end_for({b.add(loop.carried[0], sum)})[0];
  b.store(out, total, b.broadcast(b.constant_i64(0), 1, 1));
  const Function f = b.finish();
  ASSERT_TRUE(verify(f).ok()) << verify(f).error().what();
  float x[6] = {1, 2, 3, 4, 5, 6}, y[1] = {};
  const BufferView views[] = {{x, 6}, {y, 1}};
  ASSERT_TRUE(interpret(f, views, {}, 1).ok());
  EXPECT_EQ(y[0], 4 * (32 + 77));  // a a^T = [[14, 32], [32, 77]]
}

TEST(TileInterpret, ChecksAndSteps) {
  Builder b("f");
  b.add_size();
  b.check(b.lt(b.size(0), b.constant_i64(3)), 2);
  const Function f = b.finish();
  const std::int64_t good[] = {2}, bad[] = {3};
  EXPECT_TRUE(interpret(f, {}, good, 1).ok());
  EXPECT_FALSE(interpret(f, {}, bad, 1).ok());
}

}  // namespace
}  // namespace weft::tile
