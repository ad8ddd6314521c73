#include <gtest/gtest.h>

#include "loop/group.h"
#include "schedule/schedule.h"
#include "schedule/support.h"

namespace weft::schedule {
namespace {

Machine avx2() {
  Machine m = avx512();
  m.vector_bits = 256;
  m.vector_registers = 16;
  return m;
}

TEST(Schedule, ProductTilesFillTheRegisters) {
  const Record wide = schedule(dot("1120", "768", "1024"), avx512(), {}).variants.back().record;
  EXPECT_EQ(wide.loops[0].axis, 0);
  EXPECT_EQ(wide.loops[0].tile, 14);
  EXPECT_EQ(wide.loops[1].axis, 1);
  EXPECT_EQ(wide.loops[1].tile, 32);
  EXPECT_EQ(wide.loops[2].axis, -1);
  const Record narrow = schedule(dot("1120", "768", "1024"), avx2(), {}).variants.back().record;
  EXPECT_LE(narrow.loops[0].tile * narrow.loops[1].tile / 8 + narrow.loops[1].tile / 8 + 1, 16);
  EXPECT_GE(narrow.loops[0].tile * narrow.loops[1].tile / 8, 10);
}

TEST(Schedule, RowsAreBalanced) {
  EXPECT_EQ(schedule(dot("56", "64", "64"), avx512(), {}).variants.back().record.loops[0].tile, 14);
  EXPECT_EQ(schedule(dot("49", "64", "64"), avx512(), {}).variants.back().record.loops[0].tile, 7);
  EXPECT_LE(schedule(dot("3", "64", "64"), avx512(), {}).variants.back().record.loops[0].tile, 3);
}

// Which of two unknown sizes is a batch of 1 is only known at run time.
TEST(Schedule, RowsRunAlongAnotherLoopWhenThereAreFew) {
  const auto g = group(
      "param p0: input f32[s, b, 64]\nparam p1: input f32[64, 96] const\nparam p2: output f32[s, b, 96]\n"
      "parallel i0: s { parallel i1: b { parallel i2: 96 { local t0: f32 = f32(0) reduce i3: 64 "
      "{ update t0 sum= p0[i0, i1, i3] * p1[i3, i2] } store p2[i0, i1, i2] = t0 } } }");
  const auto made = schedule(g, avx512(), {});
  ASSERT_EQ(made.variants.size(), 3u);
  EXPECT_EQ(made.variants[0].record.loops[0].axis, -1);
  EXPECT_EQ(made.variants[0].record.loops[1].axis, -1);
  EXPECT_EQ(made.variants[1].guard->size, Dim::symbol("b"));
  EXPECT_GT(made.variants[1].record.loops[0].tile, 4);
  EXPECT_GT(made.variants[2].record.loops[1].tile, 4);
}

// A batch that is not known does not run over lanes by gathers while there are channels that can.
TEST(Schedule, LanesAreNotOverASizeThatMayBeOne) {
  const auto g = group(
      "param p0: input f32[n, 20, 22, 8]\nparam p1: input f32[3, 3, 8, 8] const\nparam p2: output f32[n, 18, 20, 8]\n"
      "parallel i0: n { parallel i1: 18 { parallel i2: 20 { parallel i3: 8 { local t0: f32 = f32(0) "
      "reduce i4: 3 { reduce i5: 3 { reduce i6: 8 { update t0 sum= p0[i0, i1 + i4, i2 + i5, i6] * p1[i4, i5, i6, i3] } "
      "} } store p2[i0, i1, i2, i3] = t0 } } } }");
  const Record r = schedule(g, avx512(), {}).variants.back().record;
  EXPECT_EQ(r.loops[0].axis, -1);
  EXPECT_EQ(r.loops[3].axis, 1);
  EXPECT_EQ(r.loops[2].axis, 0);
}

// A machine whose registers are scalars holds no lane of what is wider than they are.
TEST(Schedule, ElementsMayBeWiderThanRegisters) {
  Machine scalars;
  scalars.vector_bits = 32;
  const auto g = group(
      "param p0: onchip f32[6]\nparam p1: input f32[4, 6, 8]\nparam p2: input f32[4, 8]\nparam p3: input i64[4, 6]\n"
      "param p4: output f32[4, 6]\n"
      "parallel i0: 4 { parallel i1: 6 { local t0: f32 = f32(0) reduce i2: 8 { update t0 sum= p1[i0, i1, i2] * p2[i0, i2] } "
      "store p0[i1] = t0 } parallel i3: 6 { store p4[i0, i3] = select(lt(p3[i0, i3], i64(3)), p0[i3], f32(0)) } }");
  EXPECT_FALSE(schedule(g, scalars, {}).variants.empty());
}

TEST(Schedule, ShortReductionsAreWrittenOut) {
  const auto g = group(
      "param p0: input f32[20, 22, 64]\nparam p1: input f32[3, 3, 64] const\nparam p2: output f32[18, 20, 64]\n"
      "parallel i0: 18 { parallel i1: 20 { parallel i2: 64 { local t0: f32 = f32(0) reduce i3: 3 { reduce i4: 3 "
      "{ update t0 sum= p0[i0 + i3, i1 + i4, i2] * p1[i3, i4, i2] } } store p2[i0, i1, i2] = t0 } } }");
  const Record r = schedule(g, avx512(), {}).variants.back().record;
  EXPECT_EQ(r.loops[3].axis, -1);
  EXPECT_TRUE(r.loops[4].unrolled);  // how many steps are is a matter of the tile's width
}

TEST(Schedule, ConstantOperandsArePacked) {
  const auto packed = schedule(dot("100", "768", "1000"), avx512(), {});
  const Record& r = packed.variants.back().record;
  EXPECT_EQ(r.maps[1].panel_axis, 1);
  EXPECT_EQ(r.maps[1].panel, r.loops[1].tile);
  EXPECT_EQ(r.maps[0], loop::StorageMap{});
  const Record plain = schedule(dot("100", "768", "1000", false), avx512(), {}).variants.back().record;
  EXPECT_EQ(plain.maps[1], loop::StorageMap{});
}

TEST(Schedule, DynamicRowsHaveVariantsThatAskForTheSameMaps) {
  DimFacts facts;
  facts.declare("n", {1, 512, 1});
  const auto s = schedule(dot("n", "768", "1000"), avx512(), facts);
  ASSERT_GE(s.variants.size(), 2u);
  ASSERT_LE(s.variants.size(), 4u);
  EXPECT_FALSE(s.variants.back().guard);
  for (const Variant& v : s.variants) EXPECT_EQ(v.record.maps, s.variants[0].record.maps);
  EXPECT_EQ(s.variants[0].guard->hi, 1);
  EXPECT_EQ(s.variants[0].record.loops[0].axis, -1);
  EXPECT_FALSE(s.why.empty());
}

TEST(Schedule, LanesFollowContiguousData) {
  const auto softmax = group(R"(param p0: input f32[512, 1000]
  param p1: output f32[512, 1000]
  parallel i0: 512 {
    local t0: f32 = f32(0)
    reduce i1: 1000 { update t0 sum= exp(p0[i0, i1]) }
    parallel i2: 1000 { store p1[i0, i2] = p0[i0, i2] / t0 } })");
  const Record rows = schedule(softmax, avx512(), {}).variants[0].record;
  EXPECT_EQ(rows.loops[0].axis, -1);
  EXPECT_TRUE(rows.loops[0].grid);
  EXPECT_EQ(rows.loops[1].axis, 1);
  EXPECT_EQ(rows.loops[2].axis, 1);
  const auto columns = group(R"(param p0: input f32[512, 1000]
  param p1: output f32[1000]
  parallel i0: 1000 {
    local t0: f32 = f32(0)
    reduce i1: 512 { update t0 sum= p0[i1, i0] }
    store p1[i0] = t0 })");
  const Record down = schedule(columns, avx512(), {}).variants[0].record;
  EXPECT_EQ(down.loops[0].axis, 1);
  EXPECT_EQ(down.loops[1].axis, 0);  // partial sums
}

TEST(Schedule, GridFeedsTheCores) {
  const auto big = dot("2048", "1024", "1024");
  const auto s = schedule(big, avx512(), {});
  EXPECT_GE(grid_size(big, s.variants.back().record).value(), 16);
  const auto small = dot("8", "16", "32");
  const auto one = schedule(small, avx512(), {});
  EXPECT_EQ(grid_size(small, one.variants.back().record), Dim(1));
}

TEST(Schedule, SerialLoopsStayAlone) {
  const auto scan = group(R"(param p0: input f32[9]
  param p1: output f32[9]
  local t0: f32 = f32(0)
  serial i0: 9 { set t0 = t0 + p0[i0] store p1[i0] = t0 })");
  const auto s = schedule(scan, avx512(), {});
  EXPECT_EQ(print(s.variants[0].record), "serial");
  EXPECT_EQ(grid_size(scan, s.variants[0].record), Dim(1));
}

}  // namespace
}  // namespace weft::schedule
