#include <algorithm>

#include "loop/lower/sort.h"

namespace weft::loop {

namespace {

// Nanoseconds per element of one core, measured: what matters is their proportion.
constexpr double kComparison = 0.12;      // of a rank, eight at a time
constexpr double kRadixPass = 3;          // count, then move
constexpr double kRadixTable = 500;       // clearing and summing 256 counters
constexpr double kThresholdBit = 0.05;    // one bit of the k-th key: a count of the keys below
constexpr double kKeep = 2;               // copying what comes before the k-th key
constexpr double kManyRows = 8;           // rows that keep threads busy without being cut
constexpr std::int64_t kBlock = 16384;    // elements that are worth a thread
constexpr std::int64_t kMostBlocks = 64;
constexpr int kBlocksOfUnknown = 8;       // of a row whose length is only known at run time

double counting_cost(double n) { return n * n * kComparison + 2 * n; }
double radix_cost(double n, int bits) { return bits / 8 * (n * kRadixPass + kRadixTable) + 2 * n; }
double sort_cost(double n, int bits) { return std::min(counting_cost(n), radix_cost(n, bits)); }

}  // namespace

int key_bits(DType t) { return is_bool(t) ? 8 : bits(t); }

SortPlan plan_sort(const Dim& rows, const Dim& n, const Dim& k, int bits, const DimFacts& facts) {
  SortPlan plan;
  const auto most = [&](const Dim& d) { return static_cast<double>(facts.range(d).hi); };
  const double all = most(n), wanted = std::min(most(k), all);
  plan.select = all * (kKeep + bits * kThresholdBit) + sort_cost(wanted, bits) < sort_cost(all, bits);
  const double sorted = plan.select ? wanted : all;
  plan.counting = counting_cost(sorted) < radix_cost(sorted, bits);
  const bool cut = !plan.counting && sorted >= 4 * kBlock && static_cast<double>(facts.range(rows).lo) < kManyRows;
  if (cut && n.is_const()) plan.blocks = static_cast<int>(std::clamp<std::int64_t>(n.value() / kBlock, 2, kMostBlocks));
  if (cut && !n.is_const()) plan.blocks = kBlocksOfUnknown;
  if (plan.select) plan.blocks = 1;
  return plan;
}

}  // namespace weft::loop
