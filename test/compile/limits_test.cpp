// What the machine can do: measured, and remembered beside the cache.
#include "compile/limits.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/knobs.h"

namespace weft::compiler {
namespace {

TEST(Limits, AreMeasuredAndRemembered) {
  char folder[] = "/tmp/weft-limits-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string before = knob_text(Knob::CacheDir);
  ASSERT_TRUE(set_knob(Knob::CacheDir, folder));
  EXPECT_FALSE(known_limits(1).has_value());
  const auto measured = measure_limits(1);
  ASSERT_TRUE(measured.ok()) << measured.error().what();
  EXPECT_GT(measured->gflops, 0.1);
  EXPECT_GT(measured->gbytes, 0.1);
  const auto known = known_limits(1);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->gflops, measured->gflops);
  EXPECT_EQ(known->gbytes, measured->gbytes);
  EXPECT_FALSE(known_limits(7).has_value());
  ASSERT_TRUE(set_knob(Knob::CacheDir, before));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft::compiler
