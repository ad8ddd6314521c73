// Random damage to three small models, and on request to a real one. HOSTILE_MUTATIONS=N sets how much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "hostile/judge.h"

namespace weft::hostile {
namespace {

std::size_t count_of(std::size_t fallback) {
  const char* set = std::getenv("HOSTILE_MUTATIONS");
  return set ? std::strtoul(set, nullptr, 10) : fallback;
}

// One to four edits. Each file is a function of its number, so that a fault can be made again.
std::string mutated(std::string bytes, std::size_t number) {
  std::mt19937_64 random(20261130 + number);
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  for (std::size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = below(bytes.size());
    switch (below(8)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes.insert(at, 1 + below(4), static_cast<char>(random())); break;
      case 3: bytes.erase(at, 1 + below(8)); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), below(64))); break;
      case 5: bytes.replace(at, std::min<std::size_t>(9, bytes.size() - at), "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); break;
      case 6: bytes[at] = static_cast<char>(bytes[at] + 1); break;
      default: bytes[at] = bytes[below(bytes.size())]; break;
    }
  }
  return bytes;
}

TEST(Mutation, ModelsAreRefusedOrCompiled) {
  const std::size_t count = count_of(300);
  std::vector<std::string> models;
  for (const char* name : {"mlp", "attention", "control"}) {
    models.push_back(slurp(std::string(WEFT_SOURCE_DIR "/test/models/") + name + ".onnx"));
    ASSERT_GT(models.back().size(), 500u);
    EXPECT_EQ(judge(models.back()).accepted, 1u) << name << ": " << judge(models.back()).text;
  }
  Limits limits;
  limits.code_every = 16;
  const Judged judged = judge(count, [&](std::size_t i) { return mutated(models[i % models.size()], i); }, limits);
  EXPECT_THAT(judged.faults, testing::IsEmpty());
  EXPECT_GT(judged.accepted, count / 20);
  EXPECT_GT(judged.refused, count / 20);
}

}  // namespace
}  // namespace weft::hostile
