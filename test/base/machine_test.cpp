#include "base/machine.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft {
namespace {

TEST(Machine, HostIsPlausible) {
  const Machine m = host_machine();
  EXPECT_GE(m.cores, 1);
  EXPECT_GE(m.l1_bytes, 8 << 10);
  EXPECT_GE(m.l2_bytes, m.l1_bytes);
  EXPECT_EQ(m.f32_lanes() * 32, m.vector_bits);
  EXPECT_TRUE(std::is_sorted(m.features.begin(), m.features.end()));
#if defined(__x86_64__)
  __builtin_cpu_init();
  EXPECT_EQ(m.has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(m.has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(m.has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(m.has("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(m.has("sse4.2"), __builtin_cpu_supports("sse4.2") != 0);
#endif
}

TEST(Machine, LevelsCutDown) {
  Machine m;
  m.features = {"avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3",
                "sse4.1", "sse4.2", "ssse3"};
  Machine v3 = m, v2 = m, v4 = m;
  EXPECT_TRUE(restrict_to_level(v3, "x86-64-v3"));
  EXPECT_EQ(v3.vector_bits, 256);
  EXPECT_TRUE(v3.has_fma);
  EXPECT_TRUE(restrict_to_level(v2, "x86-64-v2"));
  EXPECT_EQ(v2.vector_bits, 128);
  EXPECT_FALSE(v2.has_fma);
  EXPECT_FALSE(restrict_to_level(v4, "x86-64-v4"));
  EXPECT_FALSE(restrict_to_level(m, "x86-64-v9"));
}

TEST(Machine, EveryNameIsAMachineThatRunsItsOwnCode) {
  for (const std::string& name : cpu_names()) {
    const Machine m = cpu_named(name).value();
    EXPECT_EQ(m.name, name);
    EXPECT_GE(m.vector_bits, 128) << name;
    EXPECT_GE(m.l2_bytes, m.l1_bytes) << name;
    EXPECT_TRUE(std::is_sorted(m.features.begin(), m.features.end())) << name;
    EXPECT_TRUE(check_runs_on(m, m).ok()) << name;
  }
  EXPECT_FALSE(cpu_named("native"));
  EXPECT_EQ(cpu_named("neoverse-v1")->vector_bits, 256);
  EXPECT_EQ(cpu_named("rv64gcv_zvl256b")->vector_bits, 256);
  EXPECT_EQ(cpu_named("cortex-a76")->vector_registers, 32);
  EXPECT_EQ(cpu_names("aarch64"), (std::vector<std::string>{"cortex-a76", "neoverse-v1"}));
}

TEST(Machine, WhatIsMissingIsNamed) {
  const auto refusal = [](const char* needed, Machine here) {
    const auto done = check_runs_on(cpu_named(needed).value(), here);
    return done.ok() ? std::string() : std::string(done.error().what());
  };
  const Machine v3 = cpu_named("x86-64-v3").value();
  EXPECT_EQ(refusal("x86-64-v2", v3), "");
  EXPECT_NE(refusal("x86-64-v4", v3).find("avx512bw"), std::string::npos);
  EXPECT_NE(refusal("cortex-a76", v3).find("aarch64"), std::string::npos);
  Machine wider = cpu_named("neoverse-v1").value();
  wider.vector_bits = 512;
  EXPECT_NE(refusal("neoverse-v1", wider).find("256 bits"), std::string::npos);
  EXPECT_EQ(refusal("cortex-a76", wider), "");
  EXPECT_NE(refusal("rv64gcv_zvl256b", cpu_named("rv64gcv").value()).find("zvl256b"), std::string::npos);
}

TEST(Machine, FeaturesAreTakenAwayWithWhatNeedsThem) {
  Machine m;
  m.features = {"amx-bf16", "amx-tile", "avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "avxvnni", "fma", "sse4.2"};
  remove_features(m, {"-amx"});
  EXPECT_FALSE(m.has("amx-tile"));
  EXPECT_EQ(m.vector_bits, 512);
  EXPECT_TRUE(m.has_vnni);
  remove_features(m, {"-avx512vnni", "avxvnni"});
  EXPECT_FALSE(m.has_vnni);
  EXPECT_TRUE(m.has_avx512);
  Machine no_avx2 = m;
  remove_features(no_avx2, {"-avx2"});
  EXPECT_EQ(no_avx2.vector_bits, 256);
  EXPECT_FALSE(no_avx2.has("avx512f"));
  remove_features(m, {"-avx"});
  EXPECT_EQ(m.features, std::vector<std::string>{"sse4.2"});
  EXPECT_EQ(m.vector_bits, 128);
}

}  // namespace
}  // namespace weft
