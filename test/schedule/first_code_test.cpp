// Which code is made quickly at first.
#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "schedule/support.h"

namespace weft::schedule {
namespace {

TEST(FirstCode, IsQuickWhereARunLosesLessThanCompilingSaves) {
  EXPECT_TRUE(first_code(1, 300, 1).quick());
  EXPECT_FALSE(first_code(1e6, 300, 1).quick());
  const FirstCode one = first_code(10, 300, 1), two = first_code(10, 300, 2);
  EXPECT_EQ(one.lost, two.lost);
  EXPECT_DOUBLE_EQ(one.saved, 2 * two.saved);  // threads compile side by side
}

TEST(FirstCode, TakesSizesThatAreNotKnownToBeSmall) {
  const Schedule known = schedule(dot("512", "512", "512"), avx512(), {});
  EXPECT_EQ(known.few.total(), known.cost.total());
  EXPECT_GT(known.instructions, 0);
  EXPECT_FALSE(first_code(known.few.total(), known.instructions, 2).quick());
  DimFacts facts;
  facts.declare("n", {1, 4096, 1});
  const Schedule open = schedule(dot("n", "64", "64"), avx512(), facts);
  EXPECT_LT(open.few.total(), open.cost.total());
}

}  // namespace
}  // namespace weft::schedule
