#include "compile/placement.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace weft::compiler {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double least_of_all(const std::vector<KernelTimes>& kernels, const std::vector<Handed>& values) {
  double least = kNever;
  for (unsigned choice = 0; choice < 1u << kernels.size(); ++choice) {
    std::vector<bool> on_device;
    for (std::size_t k = 0; k < kernels.size(); ++k) on_device.push_back((choice >> k & 1u) != 0);
    least = std::min(least, priced(on_device, kernels, values).us);
  }
  return least;
}

TEST(Placement, IsTheBestOfAll) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int trial = 0; trial < 400; ++trial) {
    const int count = 1 + below(10);
    std::vector<KernelTimes> kernels;
    for (int k = 0; k < count; ++k) {
      kernels.push_back({1.0 + below(50), 1.0 + below(50)});
      if (below(10) == 0) (below(2) == 0 ? kernels.back().here : kernels.back().device) = kNever;
    }
    std::vector<Handed> values;
    for (int v = below(16); v > 0; --v) {
      Handed& value = values.emplace_back();
      value.copy_us = below(30);
      value.written_here = below(4) == 0;
      value.read_here = below(4) == 0;
      for (int k = 0; k < count; ++k) {
        if (below(4) == 0) value.writers.push_back(k);
        if (below(3) == 0) value.readers.push_back(k);
      }
    }
    EXPECT_DOUBLE_EQ(place(kernels, values).us, least_of_all(kernels, values)) << "trial " << trial;
  }
}

TEST(Placement, WorthACopyOnlyWhereEnoughIsSaved) {
  const std::vector<Handed> values{{{}, {0}, true, false, 10}, {{0}, {1}, false, false, 10}, {{1}, {}, false, true, 10}};
  EXPECT_EQ(place({{30, 1}, {30, 1}}, values).on_device, (std::vector<bool>{true, true}));
  EXPECT_EQ(place({{5, 1}, {5, 1}}, values).on_device, (std::vector<bool>{false, false}));
  EXPECT_EQ(place({{1, 40}, {60, 1}}, values).on_device, (std::vector<bool>{false, true}));
  const Placement forced = place({{kNever, 1}, {5, kNever}}, values);
  EXPECT_EQ(forced.on_device, (std::vector<bool>{true, false}));
  EXPECT_EQ(forced.copies, 2);
  EXPECT_DOUBLE_EQ(forced.us, 26);
}

TEST(Placement, OfNothing) { EXPECT_EQ(place({}, {}).us, 0); }

// As deep as a model of many layers.
TEST(Placement, OfManyKernels) {
  std::vector<KernelTimes> kernels;
  std::vector<Handed> values;
  for (int k = 0; k < 4000; ++k) {
    kernels.push_back({1.0 + k % 7, 1.0 + k % 5});
    values.push_back({{k}, {k + 1}, false, false, 0.5 * (k % 3)});
  }
  values.back().readers.clear();
  values.back().read_here = true;
  const Placement best = place(kernels, values);
  EXPECT_LE(best.us, priced(std::vector<bool>(4000, true), kernels, values).us);
  EXPECT_LE(best.us, priced(std::vector<bool>(4000, false), kernels, values).us);
}

}  // namespace
}  // namespace weft::compiler
