#include "graph/interpret/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::graph::interpreter {
namespace {

constexpr std::int64_t kTile = 4;  // rows of a and of b that meet in registers

template <class W>
struct Lanes {
  typedef W type __attribute__((vector_size(kTile * sizeof(W))));
};

// Sums run over k in order. `panel` holds kTile rows of b with k slowest.
template <int Rows, class W>
void tile(const W* a, const W* panel, std::int64_t k, W (&sums)[kTile][kTile]) {
  using V = typename Lanes<W>::type;
  V acc[Rows] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    V b;
    std::memcpy(&b, panel + p * kTile, sizeof b);
    for (int r = 0; r < Rows; ++r) acc[r] += b * a[r * k + p];
  }
  std::memcpy(&sums, &acc, sizeof acc);
}

template <class W>
void tile_rows(std::int64_t rows, const W* a, const W* panel, std::int64_t k, W (&sums)[kTile][kTile]) {
  switch (rows) {
    case 1: return tile<1>(a, panel, k, sums);
    case 2: return tile<2>(a, panel, k, sums);
    case 3: return tile<3>(a, panel, k, sums);
    default: return tile<4>(a, panel, k, sums);
  }
}

template <class W>
void multiply(const W* a, const std::function<void(std::int64_t, W*)>& row, std::int64_t m, std::int64_t n,
              std::int64_t k, W* c) {
  std::vector<W> panel(static_cast<std::size_t>(k * kTile)), b(static_cast<std::size_t>(k));
  W sums[kTile][kTile];
  for (std::int64_t j0 = 0; j0 < n; j0 += kTile) {
    const std::int64_t columns = std::min(kTile, n - j0);
    for (std::int64_t j = 0; j < columns; ++j) {
      row(j0 + j, b.data());
      for (std::int64_t p = 0; p < k; ++p) panel[p * kTile + j] = b[p];
    }
    for (std::int64_t i0 = 0; i0 < m; i0 += kTile) {
      const std::int64_t rows = std::min(kTile, m - i0);
      tile_rows(rows, a + i0 * k, panel.data(), k, sums);
      for (std::int64_t i = 0; i < rows; ++i) std::copy_n(sums[i], columns, c + (i0 + i) * n + j0);
    }
  }
}

}  // namespace

void gemm(const double* a, const std::function<void(std::int64_t, double*)>& row, std::int64_t m, std::int64_t n,
          std::int64_t k, double* c) {
  multiply(a, row, m, n, k, c);
}

void gemm(const std::uint64_t* a, const std::function<void(std::int64_t, std::uint64_t*)>& row, std::int64_t m,
          std::int64_t n, std::int64_t k, std::uint64_t* c) {
  multiply(a, row, m, n, k, c);
}

}  // namespace weft::graph::interpreter
