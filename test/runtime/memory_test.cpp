#include "runtime/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::runtime {
namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Every promise that the header makes; the bound is counted anew, step by step.
void expect_valid(const std::vector<LiveBlock>& blocks, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  std::int64_t bound = 0;
  int steps = 0;
  for (const LiveBlock& b : blocks) steps = std::max(steps, b.last + 1);
  for (int s = 0; s < steps; ++s) {
    std::int64_t live = 0;
    for (const LiveBlock& b : blocks) live += b.first <= s && s <= b.last ? aligned(b.bytes) : 0;
    bound = std::max(bound, live);
  }
  EXPECT_EQ(plan.bound, bound);
  EXPECT_GE(plan.total, bound);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kAlignment, 0);
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_LE(plan.offsets[i] + blocks[i].bytes, plan.total);
    for (std::size_t j = 0; j < i; ++j) {
      bool together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      bool apart = plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] || plan.offsets[j] + blocks[j].bytes <= plan.offsets[i];
      ASSERT_TRUE(!together || apart || blocks[i].bytes == 0 || blocks[j].bytes == 0) << i << " and " << j << " overlap";
    }
  }
}

void expect_close(const std::vector<LiveBlock>& blocks) {
  MemoryPlan plan = plan_memory(blocks);
  expect_valid(blocks, plan);
  EXPECT_LE(static_cast<double>(plan.total), 1.01 * static_cast<double>(plan.bound) + 4096);
}

TEST(Memory, NothingAndNextToNothing) {
  MemoryPlan none = plan_memory({});
  EXPECT_EQ(none.total, 0);
  EXPECT_EQ(none.bound, 0);
  expect_close({{0, 0, 0}});
  expect_close({{1, 0, 0}, {0, 0, 3}, {65, 2, 3}});
}

TEST(Memory, SameTextSamePlan) {
  std::vector<LiveBlock> blocks{{100, 0, 4}, {100, 1, 2}, {300, 3, 5}, {100, 2, 3}};
  EXPECT_EQ(plan_memory(blocks).offsets, plan_memory(blocks).offsets);
}

TEST(Memory, ChainOfLayers) {
  std::vector<LiveBlock> blocks;
  for (int k = 0; k < 200; ++k) blocks.push_back({(1 + k % 7) * 4096, k, k + 1});
  expect_close(blocks);
}

TEST(Memory, ResidualBlocks) {
  std::vector<LiveBlock> blocks;
  int step = 0;
  for (int block = 0; block < 50; ++block) {
    std::int64_t wide = (256 << 10) >> (block / 16), narrow = wide / 4;
    blocks.push_back({wide, step, step + 4});
    blocks.push_back({narrow, step + 1, step + 2});
    blocks.push_back({narrow, step + 2, step + 3});
    blocks.push_back({wide, step + 3, step + 4});
    step += 4;
  }
  expect_close(blocks);
}

TEST(Memory, TransformerLayers) {
  std::vector<LiveBlock> blocks;
  const std::int64_t hidden = 128 * 768 * 4, scores = 12 * 128 * 128 * 4;
  blocks.push_back({hidden, 0, 1000});  // a mask that all layers read
  for (int layer = 0; layer < 24; ++layer) {
    int s = 1 + layer * 9;
    blocks.push_back({hidden, s - 1, s + 5});
    for (int q = 0; q < 3; ++q) blocks.push_back({hidden, s + q, s + 4 - (q < 2)});
    blocks.push_back({scores, s + 3, s + 4});
    blocks.push_back({hidden, s + 4, s + 5});
    blocks.push_back({hidden, s + 5, s + 8});
    blocks.push_back({4 * hidden, s + 6, s + 7});
    blocks.push_back({hidden, s + 7, s + 8});
  }
  expect_close(blocks);
}

TEST(Memory, DenseConnections) {
  std::vector<LiveBlock> blocks;
  for (int k = 0; k < 60; ++k) blocks.push_back({(16 + k) * 1000, k, std::min(60, k + 1 + k % 12)});
  expect_close(blocks);
}

TEST(Memory, EncoderDecoderSkips) {
  std::vector<LiveBlock> blocks;
  const int depth = 8;
  for (int k = 0; k < depth; ++k) {
    std::int64_t bytes = std::int64_t{1 << 20} >> k;
    blocks.push_back({bytes, 2 * k, 6 * depth - 2 * k});
    blocks.push_back({bytes, 2 * k + 1, 2 * k + 2});
    blocks.push_back({bytes, 6 * depth - 2 * k - 1, 6 * depth - 2 * k});
  }
  expect_close(blocks);
}

// Flows of a speech model: each part has a peak near the bound and begins before the last one ends, so one order of placing
// must get each of them right.
TEST(Memory, ManyPeaksInARow) {
  const std::vector<LiveBlock> part{{300, 0, 21},  {324, 1, 3},   {1296, 2, 4},   {300, 6, 13},   {300, 7, 9},   {300, 8, 18}, {300, 9, 13},
                                    {588, 11, 12}, {154, 12, 13}, {79, 13, 18}, {157, 15, 17}, {294, 16, 17}, {300, 17, 19}};
  std::vector<LiveBlock> blocks;
  for (int k = 0; k < 7; ++k) {
    for (const LiveBlock& b : part) blocks.push_back({b.bytes * 1024, b.first + 20 * k, b.last + 20 * k});
  }
  expect_close(blocks);
}

TEST(Memory, RandomBlocksNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<LiveBlock> blocks;
    int count = static_cast<int>(random() % 60), steps = 1 + static_cast<int>(random() % 40);
    for (int k = 0; k < count; ++k) {
      int a = static_cast<int>(random() % static_cast<unsigned>(steps)), b = static_cast<int>(random() % static_cast<unsigned>(steps));
      std::int64_t bytes = random() % 10 == 0 ? 0 : static_cast<std::int64_t>(random() % (1u << (4 + random() % 14)));
      blocks.push_back({bytes, std::min(a, b), std::max(a, b)});
    }
    MemoryPlan plan = plan_memory(blocks);
    expect_valid(blocks, plan);
    EXPECT_LE(static_cast<double>(plan.total), 1.4 * static_cast<double>(plan.bound) + 4096) << "round " << round;
  }
}

}  // namespace
}  // namespace weft::runtime
