#include "schedule/tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace weft::schedule {
namespace {

constexpr double kLoadsPerCycle = 2;
constexpr double kRowVector = 0.25, kColumnScalar = 0.02;  // cycles that do not overlap
constexpr std::int64_t kWayBytes = 4096;  // of a first-level cache indexed by the page offset

int vector_lanes(const Machine& m, int element_bits) {
  return std::max(1, m.vector_bits / std::max(element_bits, 8));
}

double padded(double extent, int tile) { return std::ceil(extent / tile) * tile; }

struct Rated {
  double rate;
  RegisterTile tile;
};

// The best first, those of other widths before others of a width.
std::vector<RegisterTile> best_of(std::vector<Rated> rated, std::size_t most) {
  std::stable_sort(rated.begin(), rated.end(), [](const Rated& a, const Rated& b) { return a.rate > b.rate * 1.001; });
  std::vector<RegisterTile> best;
  for (const bool first : {true, false}) {
    for (const Rated& r : rated) {
      const auto same = [&](const RegisterTile& t) { return t.lanes == r.tile.lanes && (first || t.rows == r.tile.rows); };
      if (best.size() < most && std::none_of(best.begin(), best.end(), same)) best.push_back(r.tile);
    }
  }
  return best;
}

// Of a group: powers of two, as layouts of threads are. A step reads a row and a column for all of the tile.
std::vector<RegisterTile> group_tiles(const Machine& m, int element_bits, double rows, double lanes, int fixed_lanes, int most_rows, std::size_t most) {
  constexpr int kRows = 128, kLeastLanes = 8;
  const bool units = m.has_matrix && (element_bits <= 16 || m.cuts_f32);
  const int thread_elements = units ? 64 : 16;  // accumulators, at most: partial sums take as many
  const int most_lanes = units ? 128 : 256;     // a warp has 16 rows of them
  std::vector<Rated> rated;
  const auto next_power = [](double n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(n, 1.0)))); };
  for (int c = kLeastLanes; c <= std::min(most_lanes, std::max(kLeastLanes, next_power(lanes))); c *= 2) {
    if (fixed_lanes > 0 && c != fixed_lanes) continue;
    for (int r = 1; r <= std::min({kRows, most_rows, next_power(rows)}) && r * c <= m.group_threads * thread_elements; r *= 2) {
      const double useful = (rows / padded(rows, r)) * (lanes / padded(lanes, c));
      const double busy = std::min(1.0, 1.0 * r * c / (4 * m.warp_threads));
      rated.push_back({useful * busy * r * c / (r + c), {r, c}});
    }
  }
  std::vector<RegisterTile> best = best_of(std::move(rated), most);
  if (best.empty()) best.push_back({1, fixed_lanes > 0 ? fixed_lanes : kLeastLanes});
  return best;
}

}  // namespace

Machine core_of_groups(Machine m) {
  constexpr int kRegisters = 512;
  m.rates.fmas = 1.0 * m.group_lanes / kGroupVector;
  m.vector_bits = 32 * kGroupVector;
  m.vector_registers = kRegisters;
  return m;
}

int balanced(double extent, int most) {
  if (extent <= most) return std::max(1, static_cast<int>(extent));
  const auto n = static_cast<std::int64_t>(extent);
  for (int t = most; t * 5 >= most * 4; --t) {
    if (n % t == 0) return t;
  }
  return static_cast<int>(std::ceil(extent / std::ceil(extent / most)));
}

int lane_tile(const Machine& m, int element_bits, double extent, int vectors) {
  const int v = vector_lanes(m, element_bits);
  if (extent <= v)
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(extent, 1.0))));
  return v * static_cast<int>(std::min<double>(vectors, std::ceil(extent / v)));
}

std::vector<RegisterTile> product_tiles(const Machine& m, int element_bits, double rows, double lanes, int fixed_lanes,
                                        int most_rows, std::size_t most) {
  if (m.has_groups()) return group_tiles(m, element_bits, rows, lanes, fixed_lanes, most_rows, most);
  const int v = vector_lanes(m, element_bits);
  std::vector<Rated> rated;
  for (const int vectors : {2, 1, 3, 4, 6, 8}) {
    const int c = lanes <= v ? lane_tile(m, element_bits, lanes, 1) : v * vectors;
    if (fixed_lanes > 0 && c != fixed_lanes) continue;
    if (vectors > 1 && c >= v && lanes <= (vectors - 1) * v) continue;
    const int used = std::max(1, c / v);
    for (int wanted = 1; wanted <= most_rows; ++wanted) {
      const int r = balanced(rows, wanted);
      if (r * used + used + 1 > m.vector_registers) break;
      if (!rated.empty() && rated.back().tile.rows == r && rated.back().tile.lanes == c) continue;
      const double fma = r * used;
      const double cycles = std::max({fma / m.rates.fmas, (r + used) / kLoadsPerCycle, kFmaLatency});
      // A step reads one row of the panel from the second-level cache, and a column of scalars from
      // the first.
      const double traffic = kRowVector * used + kColumnScalar * r;
      const double useful = (rows / padded(rows, r)) * (lanes / padded(lanes, c));
      rated.push_back({fma * useful / (cycles + traffic), {r, c}});
    }
    if (lanes <= v) break;
  }
  std::vector<RegisterTile> best = best_of(std::move(rated), most);
  if (best.empty()) best.push_back({1, fixed_lanes > 0 ? fixed_lanes : lane_tile(m, element_bits, lanes, 2)});
  return best;
}

int cached_rows(const Machine& m, std::int64_t stride) {
  const std::int64_t ways = std::max<std::int64_t>(m.l1_bytes / kWayBytes, 4);
  const std::int64_t step = std::gcd(stride, kWayBytes);
  const std::int64_t sets = kWayBytes / std::max(step, m.cache_line);
  return static_cast<int>(std::min<std::int64_t>((ways - 2) * sets, 1 << 16));
}

}  // namespace weft::schedule
