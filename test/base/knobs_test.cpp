#include "base/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Knobs, TableIsSound) {
  for (int i = 0; i < knob_count(); ++i) {
    const KnobInfo& k = info(static_cast<Knob>(i));
    EXPECT_EQ(std::string(k.variable).rfind("WEFT_", 0), 0u);
    EXPECT_STRNE(k.doc, "");
  }
}

TEST(Knobs, SetAndRead) {
  EXPECT_TRUE(set_knob(Knob::CacheBytes, "2M"));
  EXPECT_EQ(knob_integer(Knob::CacheBytes), 2 << 20);
  EXPECT_FALSE(set_knob(Knob::CacheBytes, "2T"));
  EXPECT_FALSE(set_knob(Knob::CacheBytes, "99999999999G"));
  EXPECT_FALSE(set_knob(Knob::Threads, "-1"));
  EXPECT_FALSE(set_knob(Knob::Threads, "2K"));
  EXPECT_EQ(knob_integer(Knob::CacheBytes), 2 << 20);
  EXPECT_EQ(knobs_cache_key(), "");
  EXPECT_TRUE(set_knob(Knob::PassesOff, "fold,,simplify"));
  EXPECT_THAT(knob_names(Knob::PassesOff), ElementsAre("fold", "simplify"));
  EXPECT_EQ(knobs_cache_key(), "WEFT_PASSES_OFF=fold,,simplify;");
  set_knob(Knob::PassesOff, "");
  set_knob(Knob::CacheBytes, info(Knob::CacheBytes).initial);
}

TEST(Knobs, EnvironmentWarnings) {
  EXPECT_TRUE(check_environment({"HOME=/", "WEFT_LOG=all", "WEFT_THREADS=3"}).empty());
  EXPECT_THAT(check_environment({"WEFT_THREAD=3"}),
              ElementsAre("unknown variable WEFT_THREAD; did you mean 'WEFT_THREADS'?"));
  EXPECT_THAT(check_environment({"WEFT_THREADS=many"}), ElementsAre(HasSubstr("WEFT_THREADS is ignored")));
}

TEST(Log, OnlyNamedComponents) {
  set_knob(Knob::Log, "fusion");
  EXPECT_TRUE(log_enabled("fusion"));
  EXPECT_FALSE(log_enabled("fus"));
  testing::internal::CaptureStderr();
  log("fusion", "one");
  log("cache", "two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "weft[fusion]: one\n");
  set_knob(Knob::Log, "all");
  EXPECT_TRUE(log_enabled("cache"));
  set_knob(Knob::Log, "");
}

}  // namespace
}  // namespace weft
