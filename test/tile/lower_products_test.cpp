// Products and convolutions, lowered and compared (lower_support.h).
#include "tile/lower_support.h"

namespace weft::tile::testing {
namespace {

constexpr const char* kDot = R"(group "dot"
  param p0: input f32[M, 20]
  param p1: input f32[20, N] const
  param p2: input f32[N]
  param p3: output f32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: f32 = f32(0)
    reduce i2: 20 { update t0 sum= p0[i0, i2] * p1[i2, i1] }
    store p3[i0, i1] = max(t0 + p2[i1], f32(0))
  } })";

TEST(Lower, DotWithEpilogue) {
  for (int m : {1, 3, 14, 15, 40}) {
    for (int n : {1, 5, 32, 50}) check(replace(kDot, {{"M", m}, {"N", n}}).c_str(), {}, 0, 0.001);
  }
}

constexpr const char* kActivated = R"(group "dot"
  param p0: input f32[M, 20]
  param p1: input f32[20, N] const
  param p2: input f32[N]
  param p3: input f32[M, N]
  param p4: output f32[M, N]
  param p5: output f32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: f32 = f32(0)
    reduce i2: 20 { update t0 sum= p0[i0, i2] * p1[i2, i1] }
    local t1: f32 = t0 + p2[i1]
    store p4[i0, i1] = t1 * sigmoid(t1) + p3[i0, i1]
    store p5[i0, i1] = exp(t0)
  } })";

TEST(Lower, DotFinishedRowByRow) {
  auto g = loop::parse(replace(kActivated, {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  EXPECT_TRUE(s.variants.back().record.loops[0].apart) << s.why;
  for (int m : {1, 3, 14, 15, 40}) {
    for (int n : {1, 5, 32, 50}) check(replace(kActivated, {{"M", m}, {"N", n}}).c_str(), {}, 0, 0.001);
  }
  std::string dynamic = replace(kActivated, {{"N", 50}});
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 2, 6, 7, 29}) check(dynamic.c_str(), {{"n", n}});
}

TEST(Lower, DotWithDynamicRows) {
  const std::string text = replace(kDot, {{"N", 50}});
  std::string dynamic = text;
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 2, 6, 7, 29}) check(dynamic.c_str(), {{"n", n}});
}

TEST(Lower, DotEmitsDot) {
  auto g = loop::parse(replace(kDot, {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  const auto lowered = lower(*g, s.variants.back().record);
  ASSERT_TRUE(lowered.ok());
  EXPECT_NE(ssa::print(lowered->function).find("dot"), std::string::npos) << s.why;
  EXPECT_EQ(s.variants.back().record.maps[1].panel, s.variants.back().record.loops[1].tile);
}

// Sums of products: each step adds a term of all of them. Two read the same panel, two the same rows.
constexpr const char* kSum = R"(group "dot"
  param p0: input TYPE[M, K]
  param p1: input TYPE[M, K]
  param p2: input TYPE[K, N] const
  param p3: input TYPE[K, N] const
  param p4: input TYPE[K, N]
  param p5: output f32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: f32 = f32(0)
    reduce i2: K {
      update t0 sum= cast.f32(p0[i0, i2]) * cast.f32(p2[i2, i1])
      update t0 sum= cast.f32(p1[i0, i2]) * cast.f32(p2[i2, i1])
      update t0 sum= cast.f32(p0[i0, i2]) * cast.f32(p3[i2, i1])
      update t0 sum= cast.f32(p1[i0, i2]) * cast.f32(p4[i2, i1])
    }
    store p5[i0, i1] = max(t0, f32(0))
  } })";

std::string sum_of(std::string text, const char* dtype) {
  if (std::string(dtype) == "f32") {
    for (std::size_t at; (at = text.find("cast.f32")) != std::string::npos;) text.erase(at, 8);
  }
  for (std::size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, dtype);
  return text;
}

TEST(Lower, SumOfDots) {
  for (const char* dtype : {"f32", "bf16"}) {
    for (int m : {1, 5, 15}) {
      for (int n : {1, 33}) check(replace(sum_of(kSum, dtype), {{"M", m}, {"N", n}, {"K", 20}}).c_str(), {}, 0, m == 5 ? 0.001 : 0);
    }
    std::string dynamic = replace(sum_of(kSum, dtype), {{"N", 40}, {"K", 9}});
    for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
    for (int n : {0, 1, 6, 29}) check(dynamic.c_str(), {{"n", n}});
  }
  check(replace(sum_of(kSum, "bf16"), {{"M", 3}, {"N", 17}, {"K", 200}}).c_str());  // several partial sums
}

TEST(Lower, SumOfDotsIsTiledAndPackedAlike) {
  auto g = loop::parse(replace(sum_of(kSum, "f32"), {{"M", 40}, {"N", 64}, {"K", 20}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  const Record& r = s.variants.back().record;
  EXPECT_EQ(r.maps[2].panel, r.loops[1].tile) << s.why;
  EXPECT_EQ(r.maps[3], r.maps[2]) << s.why;
  const auto lowered = lower(*g, r);
  ASSERT_TRUE(lowered.ok());
  const std::string text = ssa::print(lowered->function);
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = text.find("= dot ", at)) != std::string::npos; ++at) ++dots;
  EXPECT_EQ(dots % 4, 0u) << text;
  EXPECT_GT(dots, 0u) << text;
  EXPECT_EQ(text.find("= mul f32"), std::string::npos) << text;
}

TEST(Lower, SumOfDotsWhoseSidesChange) {
  check(R"(group "dot"
  param p0: input f32[9, 40]
  param p1: input f32[40, 33] const
  param p2: input f32[33, 40]
  param p3: input f32[40, 9] const
  param p4: output f32[9, 33]
  parallel i0: 9 { parallel i1: 33 {
    local t0: f32 = f32(0)
    reduce i2: 40 {
      update t0 sum= p0[i0, i2] * p1[i2, i1]
      update t0 sum= p2[i1, i2] * p3[i2, i0]
    }
    store p4[i0, i1] = t0
  } })");
}

// One sum is of bytes in words, the other one is not: neither takes words.
TEST(Lower, SumOfDotsOfBytes) {
  const char* text = R"(group "dot"
  param p0: input u8[7, 20]
  param p1: input i8[5, 4, 40] const
  param p2: input RIGHT[5, 4, 40] const
  param p3: output i32[7, 40]
  parallel i0: 7 { parallel i1: 40 {
    local t0: i32 = i32(0)
    reduce i2: 5 { reduce i3: 4 {
      update t0 sum= cast.i32(p0[i0, i2 * 4 + i3]) * cast.i32(p1[i2, i3, i1])
      update t0 sum= cast.i32(p0[i0, i2 * 4 + i3]) * cast.i32(p2[i2, i3, i1])
    } }
    store p3[i0, i1] = t0
  } })";
  for (const char* right : {"i8", "u8"}) {
    std::string one = text;
    one.replace(one.find("RIGHT"), 5, right);
    check(one.c_str());
    auto g = loop::parse(one);
    ASSERT_TRUE(g.ok()) << g.error().what();
    const auto s = schedule::schedule(*g, machine(512, 32), {});
    EXPECT_EQ(s.variants.back().record.loops[3].in_word, std::string(right) == "i8") << s.why;
  }
}

// Bytes in words: the weights' axis of 4 lies inside their panels.
constexpr const char* kByteDot = R"(group "dot"
  param p0: input LEFT[M, 20]
  param p1: input RIGHT[5, 4, N] const
  param p2: output i32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: i32 = i32(0)
    reduce i2: 5 { reduce i3: 4 { update t0 sum= cast.i32(p0[i0, i2 * 4 + i3]) * cast.i32(p1[i2, i3, i1]) } }
    store p2[i0, i1] = t0
  } })";

std::string typed(std::string text, bool left_unsigned) {
  text.replace(text.find("LEFT"), 4, left_unsigned ? "u8" : "i8");
  return text.replace(text.find("RIGHT"), 5, left_unsigned ? "i8" : "u8");
}

TEST(Lower, DotOfBytes) {
  for (const bool left_unsigned : {true, false}) {
    for (int m : {1, 3, 14, 40}) {
      for (int n : {1, 5, 32, 50}) check(replace(typed(kByteDot, left_unsigned), {{"M", m}, {"N", n}}).c_str());
    }
  }
  std::string dynamic = replace(typed(kByteDot, true), {{"N", 50}});
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 7}) check(dynamic.c_str(), {{"n", n}});
}

TEST(Lower, DotOfBytesTakesWords) {
  auto g = loop::parse(replace(typed(kByteDot, true), {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  const Record& r = s.variants.back().record;
  EXPECT_TRUE(r.loops[3].in_word) << s.why;
  EXPECT_EQ(r.maps[1].inner, 1) << s.why;
  const auto lowered = lower(*g, r);
  ASSERT_TRUE(lowered.ok());
  EXPECT_NE(ssa::print(lowered->function).find(": i8[4,"), std::string::npos) << ssa::print(lowered->function);
}

constexpr const char* kPairDot = R"(group "dot"
  param p0: input bf16[M, 10]
  param p1: input bf16[5, 2, N] const
  param p2: output f32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: f32 = f32(0)
    reduce i2: 5 { reduce i3: 2 { update t0 sum= cast.f32(p0[i0, i2 * 2 + i3]) * cast.f32(p1[i2, i3, i1]) } }
    store p2[i0, i1] = t0
  } })";

TEST(Lower, DotOfPairs) {
  for (int m : {1, 3, 14, 40}) {
    for (int n : {1, 5, 32, 50}) check(replace(kPairDot, {{"M", m}, {"N", n}}).c_str(), {}, 0, 0.001);
  }
  auto g = loop::parse(replace(kPairDot, {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  EXPECT_TRUE(s.variants.back().record.loops[3].in_word) << s.why;
  EXPECT_EQ(s.variants.back().record.maps[1].inner, 1) << s.why;
}

// What a matrix unit multiplies: as many words at a time as a row of its tiles has.
constexpr const char* kUnitDot = R"(group "dot"
  param p0: input u8[M, 128]
  param p1: input i8[32, 4, N] const
  param p2: input i32[N]
  param p3: output i32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: i32 = i32(0)
    reduce i2: 32 { reduce i3: 4 { update t0 sum= cast.i32(p0[i0, i2 * 4 + i3]) * cast.i32(p1[i2, i3, i1]) } }
    store p3[i0, i1] = max(t0 + p2[i1], i32(0))
  } })";

void check_unit(const std::string& text, const Bindings& bindings = {}) {
  auto g = loop::parse(text);
  ASSERT_TRUE(g.ok()) << g.error().what();
  Machine m = machine(512, 32);
  m.has_amx_int8 = true;
  DimFacts facts;
  for (const auto& [name, value] : bindings) facts.declare(name, {0, 1000, 1});
  int by_unit = 0;
  for (const auto& candidate : schedule::schedule(*g, m, facts, {true, ""}).candidates) {
    const auto deep = [](const schedule::LoopPlan& plan) { return plan.depth > 1; };
    if (std::none_of(candidate.record.loops.begin(), candidate.record.loops.end(), deep) || ++by_unit > 4) continue;
    compare({*g, bindings, {}, 0}, candidate.record, "by the unit", 0);
  }
  EXPECT_GT(by_unit, 0);
}

TEST(Lower, DotOfBytesByAMatrixUnit) {
  for (int m : {1, 15, 40}) {
    for (int n : {50, 64}) check_unit(replace(kUnitDot, {{"M", m}, {"N", n}}));
  }
  std::string dynamic = replace(kUnitDot, {{"N", 50}});
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 35}) check_unit(dynamic, {{"n", n}});
}

TEST(Lower, AMatrixUnitTakesLargeProducts) {
  auto g = loop::parse(replace(kUnitDot, {{"M", 200}, {"N", 128}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  Machine m = machine(512, 32);
  m.has_vnni = m.has_amx_int8 = true;
  const auto s = schedule::schedule(*g, m, {});
  EXPECT_EQ(s.variants.back().record.loops[2].depth, 16) << s.why;
  EXPECT_TRUE(s.variants.back().record.loops[0].apart) << s.why;
  const auto lowered = lower(*g, s.variants.back().record);
  ASSERT_TRUE(lowered.ok());
  EXPECT_NE(ssa::print(lowered->function).find(": i8[64,"), std::string::npos) << ssa::print(lowered->function);
  m.has_amx_int8 = false;
  EXPECT_EQ(schedule::schedule(*g, m, {}).variants.back().record.loops[2].depth, 1);
}

// A convolution whose rows read past the edge, and whose operand on the lanes is not constant.
TEST(Lower, ConvolutionOfBytes) {
  check(R"(group "conv"
  param p0: input u8[7, 9, 8]
  param p1: input i8[3, 3, 2, 4, 20] const
  param p2: output i32[7, 9, 20]
  parallel i0: 7 { parallel i1: 9 { parallel i2: 20 {
    local t0: i32 = i32(0)
    reduce i3: 3 { reduce i4: 3 { reduce i5: 2 { reduce i6: 4 {
      %0 = i0 + i3 - 1
      %1 = i1 + i4 - 1
      update t0 sum= cast.i32(load_if(and(and(ge(%0, 0), lt(%0, 7)), and(ge(%1, 0), lt(%1, 9))), p0[%0, %1, i5 * 4 + i6])) * cast.i32(p1[i3, i4, i5, i6, i2])
    } } } }
    store p2[i0, i1, i2] = t0
  } } })");
  check(R"(group "dot"
  param p0: input u8[9, 5, 4]
  param p1: input i8[5, 33, 4]
  param p2: output i32[9, 33]
  parallel i0: 9 { parallel i1: 33 {
    local t0: i32 = i32(0)
    reduce i2: 5 { reduce i3: 4 { update t0 sum= cast.i32(p0[i0, i2, i3]) * cast.i32(p1[i2, i1, i3]) } }
    store p2[i0, i1] = t0
  } })");
}

TEST(Lower, ConvolutionOfBytesByAMatrixUnit) {
  check_unit(R"(group "conv"
  param p0: input u8[7, 9, 64]
  param p1: input i8[3, 3, 16, 4, 32] const
  param p2: output i32[7, 9, 32]
  parallel i0: 7 { parallel i1: 9 { parallel i2: 32 {
    local t0: i32 = i32(0)
    reduce i3: 3 { reduce i4: 3 { reduce i5: 16 { reduce i6: 4 {
      %0 = i0 + i3 - 1
      %1 = i1 + i4 - 1
      update t0 sum= cast.i32(load_if(and(and(ge(%0, 0), lt(%0, 7)), and(ge(%1, 0), lt(%1, 9))), p0[%0, %1, i5 * 4 + i6])) * cast.i32(p1[i3, i4, i5, i6, i2])
    } } } }
    store p2[i0, i1, i2] = t0
  } } })");
}

TEST(Lower, DotTransposedOperands) {
  check(R"(group "dot"
  param p0: input f32[20, 9]
  param p1: input f32[33, 20]
  param p2: output f32[9, 33]
  parallel i0: 9 { parallel i1: 33 {
    local t0: f32 = f32(0)
    reduce i2: 20 { update t0 sum= p0[i2, i0] * p1[i1, i2] }
    store p2[i0, i1] = t0
  } })");
}

TEST(Lower, ConvolutionPadded) {
  const char* nhwc = R"(group "conv"
  param p0: input f32[1, 4, 9, 5]
  param p1: input f32[3, 3, 5, 18] const
  param p2: output f32[1, 4, 9, 18]
  parallel i0: 1 { parallel i1: 4 { parallel i2: 9 { parallel i3: 18 {
    local t0: f32 = f32(0)
    reduce i4: 3 { reduce i5: 3 { reduce i6: 5 {
      %0 = i1 + i4 - 1
      %1 = i2 + i5 - 1
      update t0 sum= load_if(and(and(ge(%0, 0), lt(%0, 4)), and(ge(%1, 0), lt(%1, 9))), p0[i0, %0, %1, i6]) * p1[i4, i5, i6, i3]
    } } }
    store p2[i0, i1, i2, i3] = t0
  } } } })";
  const char* nchw = R"(group "conv"
  param p0: input f32[1, 5, 4, 9]
  param p1: input f32[18, 5, 3, 3] const
  param p2: output f32[1, 18, 4, 9]
  parallel i0: 1 { parallel i3: 18 { parallel i1: 4 { parallel i2: 9 {
    local t0: f32 = f32(0)
    reduce i6: 5 { reduce i4: 3 { reduce i5: 3 {
      %0 = i1 + i4 - 1
      %1 = i2 + i5 - 1
      update t0 sum= load_if(and(and(ge(%0, 0), lt(%0, 4)), and(ge(%1, 0), lt(%1, 9))), p0[i0, i6, %0, %1]) * p1[i3, i6, i4, i5]
    } } }
    store p2[i0, i3, i1, i2] = t0
  } } } })";
  check(nhwc);
  check(nchw);
}

TEST(Lower, Depthwise) {
  check(R"(group "depthwise"
  param p0: input f32[6, 8, 20]
  param p1: input f32[3, 3, 20] const
  param p2: output f32[4, 6, 20]
  parallel i0: 4 { parallel i1: 6 { parallel i2: 20 {
    local t0: f32 = f32(0)
    reduce i3: 3 { reduce i4: 3 { update t0 sum= p0[i0 + i3, i1 + i4, i2] * p1[i3, i4, i2] } }
    store p2[i0, i1, i2] = t0
  } } })");
}

}  // namespace
}  // namespace weft::tile::testing
