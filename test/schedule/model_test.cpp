// What the cost model says, held against what must be so whatever its constants are.
#include <gtest/gtest.h>

#include <set>

#include "schedule/schedule.h"
#include "schedule/support.h"

namespace weft::schedule {
namespace {

loop::Group copy(std::int64_t n) {
  const std::string size = std::to_string(n);
  return group("param p0: input f32[" + size + "]\nparam p1: output f32[" + size + "]\nparallel i0: " + size + " { store p1[i0] = p0[i0] }");
}

Schedule all(const loop::Group& g, const Machine& m, const DimFacts& facts = {}) { return schedule(g, m, facts, {true, ""}); }

TEST(Model, BytesComeFromTheLevelThatHoldsThem) {
  const Cost small = schedule(copy(4096), avx512(), {}).cost, medium = schedule(copy(1 << 19), avx512(), {}).cost,
             large = schedule(copy(1 << 24), avx512(), {}).cost;
  EXPECT_EQ(small.l3, 0);
  EXPECT_EQ(small.memory, 0);
  EXPECT_GT(medium.l3, 0);
  EXPECT_EQ(medium.memory, 0);
  EXPECT_GT(large.memory, large.compute);
}

TEST(Model, APlainCopyIsBoundByTheRatesOfTheMachine) {
  Machine m = avx512();
  m.rates.memory_gbytes = 10;
  m.rates.all_gbytes = 20;
  const double bytes = 3 * 4.0 * (1 << 24);  // what is stored is fetched before
  EXPECT_NEAR(schedule(copy(1 << 24), m, {}).cost.memory, bytes / 20e3, 0.01 * bytes / 20e3);
}

TEST(Model, AProductInCacheIsBoundByArithmetic) {
  Machine m = avx512();
  m.cores = 1;
  const Cost c = schedule(dot("224", "256", "256"), m, {}).cost;
  const double least = 224.0 * 256 * 256 / 16 / m.rates.fmas / m.rates.ghz * 1e-3;
  EXPECT_GE(c.compute, least);
  EXPECT_LT(c.compute, 1.2 * least);
  EXPECT_GT(c.compute, c.l2);
}

TEST(Model, TilesThatAreCutOffAreWaste) {
  Machine m = avx512();
  m.cores = 1;
  Record r = schedule(dot("56", "64", "64"), m, {}).variants.back().record;
  const Cost even = cost(dot("56", "64", "64"), m, {}, r), odd = cost(dot("57", "64", "64"), m, {}, r);
  EXPECT_GT(odd.waste, even.waste);
  EXPECT_NEAR(odd.compute / even.compute, 57.0 / 56, 0.01);
}

TEST(Model, MoreCoresTakeLessTime) {
  Machine one = avx512(), four = avx512();
  one.cores = 1;
  const auto g = dot("1024", "1024", "1024");
  EXPECT_GT(schedule(g, one, {}).cost.total(), 3 * schedule(g, four, {}).cost.total());
}

TEST(Model, TheCheapestCandidateIsTaken) {
  DimFacts facts;
  facts.declare("n", {1, 512, 1});
  for (const auto& g : {dot("100", "768", "1000"), dot("n", "768", "1000"), dot("3", "5", "7"), copy(1000)}) {
    const Schedule s = all(g, avx512(), facts);
    ASSERT_FALSE(s.candidates.empty());
    EXPECT_EQ(s.candidates.front().record, s.variants.back().record);
    EXPECT_FALSE(s.tuned);
    std::set<std::string> seen;
    for (const Candidate& c : s.candidates) {
      EXPECT_TRUE(seen.insert(print(c.record)).second) << print(c.record);
      EXPECT_GT(c.score() * 1.12, s.candidates.front().score()) << print(c.record);
      EXPECT_GE(c.cost.total(), c.cost.compute);
      EXPECT_EQ(c.record.loops.size(), g.loops.size());
    }
  }
}

TEST(Model, ARequestedCandidateIsTakenAndAnyOtherTextIsNot) {
  const auto g = dot("n", "768", "1000");
  DimFacts facts;
  facts.declare("n", {1, 512, 1});
  const Schedule s = all(g, avx512(), facts);
  ASSERT_GE(s.candidates.size(), 3u);
  const Schedule asked = schedule(g, avx512(), facts, {false, print(s.candidates[2].record)});
  EXPECT_TRUE(asked.tuned);
  EXPECT_EQ(asked.variants.back().record, s.candidates[2].record);
  for (const Variant& v : asked.variants) EXPECT_EQ(v.record.maps, s.candidates[2].record.maps);
  EXPECT_TRUE(asked.candidates.empty());
  for (const char* text : {"i0 rows 1000000", "", "serial", "\xff\x01"}) {
    const Schedule other = schedule(g, avx512(), facts, {false, text});
    EXPECT_FALSE(other.tuned) << text;
    EXPECT_EQ(other.variants.back().record, s.variants.back().record);
  }
}

}  // namespace
}  // namespace weft::schedule
