// OpenCL C as it reads, for devices that have more than 1.2.
#include <gmock/gmock.h>

#include "codegen/text/text.h"

namespace weft::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string printed(std::string_view kernel, const OpenClFeatures& features) {
  const auto f = ssa::parse(kernel, kernel::op_table());
  if (!f.ok()) return f.error().what();
  const auto text = print_opencl(std::span(&*f, 1), features);
  return text.ok() ? *text : text.error().what();
}

const char* kShuffled = R"(kernel @k {
  buffer f32 memory read
  buffer f32 memory written
  threads 32 warp 16
  %0 = thread_id : i64
  %1 = const(5) : i64
  %2 = load(0) %0 : f32
  %3 = shuffle %2, %1 : f32
  store(1) %3, %0
}
)";

TEST(OpenClText, SubgroupsShuffleWhereTheyCan) {
  const std::string text = printed(kShuffled, {true, false});
  EXPECT_THAT(text, HasSubstr("__attribute__((reqd_work_group_size(32, 1, 1))) __attribute__((intel_reqd_sub_group_size(16))) void"));
  EXPECT_THAT(text, HasSubstr("sub_group_shuffle("));
  EXPECT_THAT(printed(kShuffled, {}), HasSubstr("shuffles in this kernel language"));
}

TEST(OpenClText, BytesAreMultipliedByTheUnitWhereThereIsOne) {
  const char* kernel = R"(kernel @k {
  buffer i32 memory read
  buffer i32 memory written
  %0 = program_id : i64
  %1 = load(0) %0 : i32[4]
  %2 = dot4 %1, %1, %1 : i32[4]
  store(1) %2, %0
}
)";
  EXPECT_THAT(printed(kernel, {false, true}), HasSubstr("dot_4x8packed_us_int"));
  EXPECT_THAT(printed(kernel, {false, true}), HasSubstr(" = weft_dot4("));
  EXPECT_THAT(printed(kernel, {}), Not(HasSubstr("weft_dot4")));
}

TEST(OpenClText, ReadsLikeCode) {
  const std::string text = printed(R"(kernel @k {
  buffer f32 memory read
  buffer f32 memory written
  sizes 1
  %0 = const(0) : i64
  %1 = const(4) : i64
  %2 = const(-2.5) : f32
  %3 = size(0) : i64
  %4 = for %0, %3, %1, %2 : f32 { %5: i64, %6: f32
    %7 = load(0) %5 : f32
    %8 = mul %7, %6 : f32
    yield %8
  }
  store(1) %4, %0
}
)", {});
  EXPECT_THAT(text, HasSubstr(R"(
  long v0 = n0;
  float v1 = -2.5f;
  for (long v2 = 0L; v2 < v0; v2 += 4L) {
    float v3 = b0[v2];
    float v4 = v1 * v3;
    v1 = v4;
  }
  b1[0L] = v1;
}
)"));
}

}  // namespace
}  // namespace weft::codegen
