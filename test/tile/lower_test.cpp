// Groups of every kind but products, lowered and compared (lower_support.h).
#include "tile/lower_support.h"

namespace weft::tile::testing {
namespace {

constexpr const char* kPointwise = R"(group "g"
  param p0: input f32[n, m]
  param p1: input f32[m]
  param p2: output f32[n, m]
  parallel i0: n { parallel i1: m { store p2[i0, i1] = max(p0[i0, i1] + p1[i1], f32(0)) } })";

TEST(Lower, Pointwise) {
  for (int n : {0, 1, 3, 17}) {
    for (int m : {0, 1, 5, 16, 33, 130}) check(kPointwise, {{"n", n}, {"m", m}}, 0, 0.1);
  }
}

TEST(Lower, PointwiseByHand) {
  for (int n : {1, 6, 9}) {
    for (int m : {3, 8, 21}) {
      for (std::int64_t block : {1, 2, 5}) {
        check_with(kPointwise, {{0, 0, 4, true, block}, {1, 1, 8, true, block}},
                   {{"n", n}, {"m", m}}, 0.1);
        check_with(kPointwise, {{0, 0, 4, true, 1}, {1, 1, 8, true, block}}, {{"n", n}, {"m", m}},
                   0.1);
        check_with(kPointwise, {{1, 1, 8, true, 1}, {0, 0, 4, true, block}}, {{"n", n}, {"m", m}},
                   0.1);
      }
      check_with(kPointwise, {{0, 1, 4, true, 1}}, {{"n", n}, {"m", m}}, 0.1);  // strided lanes
      check_with(kPointwise, {{0, 0, 4, false, 1}, {1, 1, 8, false, 1}}, {{"n", n}, {"m", m}}, 0.1);
    }
  }
}

TEST(Lower, TransposeAndBroadcast) {
  check(R"(group "g"
  param p0: input f32[19, 37]
  param p1: input i8[37]
  param p2: output f32[37, 19]
  parallel i0: 37 { parallel i1: 19 { store p2[i0, i1] = p0[i1, i0] * cast.f32(p1[i0]) } })");
}

TEST(Lower, NarrowTypes) {
  check(R"(group "g"
  param p0: input f16[50]
  param p1: input bf16[50]
  param p2: input bool[50]
  param p3: output f16[50]
  param p4: output bool[50]
  parallel i0: 50 {
    store p3[i0] = cast.f16(select(p2[i0], cast.f32(p0[i0]), cast.f32(p1[i0])))
    store p4[i0] = not(p2[i0])
  })");
}

constexpr const char* kSoftmax = R"(group "softmax"
  param p0: input f32[n, M]
  param p1: output f32[n, M]
  parallel i0: n {
    local t0: f32 = f32(-inf)
    reduce i1: M { update t0 max= p0[i0, i1] }
    local t1: f32 = f32(0)
    reduce i2: M { update t1 sum= exp(p0[i0, i2] - t0) }
    parallel i3: M { store p1[i0, i3] = exp(p0[i0, i3] - t0) / t1 }
  })";

TEST(Lower, RowSoftmax) {
  for (int m : {1, 5, 16, 50, 200}) {
    for (int n : {0, 1, 9}) check(replace(kSoftmax, {{"M", m}}).c_str(), {{"n", n}});
    check_with(replace(kSoftmax, {{"M", m}}).c_str(),
               {{0, 0, 4, true, 1}, {1, 1, 8, false, 1}, {2, 1, 8, false, 1}, {3, 1, 16, false, 1}},
               {{"n", 9}}, 0.05);
    check_with(replace(kSoftmax, {{"M", m}}).c_str(),
               {{0, 1, 4, true, 1}, {1, 0, 3, false, 1}, {2, 0, 3, false, 1}}, {{"n", 9}}, 0.05);
  }
}

TEST(Lower, ReductionsOverOneAxis) {
  const char* columns = R"(group "g"
  param p0: input f32[n, m]
  param p1: output f32[m]
  parallel i0: m {
    local t0: f32 = f32(0)
    reduce i1: n { update t0 sum= p0[i1, i0] }
    store p1[i0] = t0 * f32(0.5)
  })";
  const char* rows = R"(group "g"
  param p0: input i32[n, m]
  param p1: output i32[n]
  parallel i0: n {
    local t0: i32 = i32(-2147483648)
    reduce i1: m { update t0 max= p0[i0, i1] }
    store p1[i0] = t0
  })";
  for (int n : {0, 1, 7, 40}) {
    for (int m : {0, 1, 6, 65}) {
      check(columns, {{"n", n}, {"m", m}}, 0, 0.02);
      check(rows, {{"n", n}, {"m", m}});
      check_with(columns, {{0, 1, 8, true, 1}, {1, 0, 4, false, 1}}, {{"n", n}, {"m", m}}, 0.02);
    }
  }
}

TEST(Lower, FullReductionOverTwoLoops) {
  check(R"(group "g"
  param p0: input f32[5, 3, 7]
  param p1: output f32[3]
  parallel i0: 3 {
    local t0: f32 = f32(1)
    reduce i1: 5 { reduce i2: 7 { update t0 prod= p0[i1, i0, i2] } }
    store p1[i0] = t0
  })");
}

TEST(Lower, GatherWraps) {
  const char* rows = R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[e, 21]
  param p1: input i64[n]
  param p2: output f32[n, 21]
  parallel i0: n { parallel i1: 21 { store p2[i0, i1] = p0[wrap(p1[i0], size(e), 1), i1] } })";
  const char* lanes = R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[8]
  param p1: input i32[n]
  param p2: output f32[n]
  parallel i0: n { store p2[i0] = p0[wrap(cast.i64(p1[i0]) - 3, 8, 1)] })";
  for (int n : {0, 1, 5, 37}) {
    check(rows, {{"n", n}, {"e", 6}}, 6);
    check(lanes, {{"n", n}}, 6);
  }
}

TEST(Lower, BadIndexFailsWithoutLeavingTheBuffer) {
  auto g = loop::parse(R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[e]
  param p1: input i64[5]
  param p2: output f32[5]
  parallel i0: 5 { store p2[i0] = p0[wrap(p1[i0], size(e), 1)] })");
  ASSERT_TRUE(g.ok());
  for (int extent : {0, 3}) {
    const auto s = schedule::schedule(*g, machine(256, 16), {});
    const auto lowered = lower(*g, s.variants[0].record);
    ASSERT_TRUE(lowered.ok());
    std::vector<float> x(3), y(5);
    std::vector<std::int64_t> at{0, 1, INT64_MIN, 2, INT64_MAX};
    std::vector<BufferView> views{{x.data(), extent}, {at.data(), 5}, {y.data(), 5}};
    std::vector<std::int64_t> sizes;
    for (const Dim& d : lowered->sizes) sizes.push_back(d.evaluate({{"e", extent}}).value());
    const auto run = interpret(lowered->function, views, sizes, 1);
    ASSERT_FALSE(run.ok());
    EXPECT_NE(std::string(run.error().what()).find("check"), std::string::npos)
        << run.error().what();
  }
}

TEST(Lower, CumulativeSum) {
  check(R"(group "scan"
  param p0: input f32[6, n]
  param p1: output f32[6, n]
  parallel i0: n {
    local t0: f32 = f32(0)
    serial i1: 6 {
      set t0 = t0 + p0[i1, i0]
      store p1[i1, i0] = t0
    }
  })",
        {{"n", 19}});
}

TEST(Lower, ScatterAdd) {
  check(R"(group "scatter"
  param p0: input f32[9, 21]
  param p1: input i64[9]
  param p2: inout f32[4, 21]
  serial i0: 9 { parallel i1: 21 { store p2[p1[i0], i1] sum= p0[i0, i1] } })",
        {}, 4);
  check(R"(group "scatter"
  param p0: input i64[30]
  param p1: inout i64[4]
  serial i0: 30 { store p1[p0[i0]] sum= p0[i0] })",
        {}, 4);
}

TEST(Lower, OnChipIntermediate) {
  check(R"(group "g"
  param p0: input f32[n, 40]
  param p1: onchip f32[40]
  param p2: output f32[n, 40]
  parallel i0: n {
    local t0: f32 = f32(0)
    parallel i1: 40 { store p1[i1] = exp(p0[i0, i1]) }
    reduce i2: 40 { update t0 sum= p1[i2] }
    parallel i3: 40 { store p2[i0, i3] = p1[i3] / t0 }
  })",
        {{"n", 5}});
}

TEST(Lower, Arange) {
  check(R"(group "g"
  param p0: output i64[n, 50]
  parallel i0: n { parallel i1: 50 { store p0[i0, i1] = i1 * size(n) + i0 } })",
        {{"n", 5}});
}

TEST(Lower, ReshapedViews) {
  check(R"(group "g"
  param p0: input f32[6, 8, 4]
  param p1: output f32[192]
  parallel i0: 192 { store p1[i0] = p0[floor_div(i0, 32), mod(floor_div(i0, 4), 8), mod(i0, 4)] })");
  check(R"(group "g"
  param p0: input f32[3, 64]
  param p1: output f32[192]
  parallel i0: 192 { store p1[i0] = p0[floor_div(i0, 64), mod(i0, 64)] })");
}

TEST(Lower, RefusesPackedTypes) {
  auto g = loop::parse(R"(group "g"
  param p0: input i4[8]
  param p1: output i8[8]
  parallel i0: 8 { store p1[i0] = cast.i8(p0[i0]) })");
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto lowered = lower(*g, serial(*g));
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().kind(), ErrorKind::Unsupported);
}

}  // namespace
}  // namespace weft::tile::testing
