// Linear layouts against brute force over all positions.
#include "kernel/simt/layout.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace weft::kernel::simt {
namespace {

using testing::Eq;
using Through = Conversion::Through;

Bits random_bits(std::mt19937& random, int bits) { return bits == 0 ? 0 : static_cast<Bits>(random() % (1u << bits)); }

LinearMap random_map(std::mt19937& random, int inputs, int outputs) {
  std::vector<Bits> columns;
  for (int i = 0; i < inputs; ++i) columns.push_back(random_bits(random, outputs));
  return {outputs, columns};
}

LinearMap random_invertible(std::mt19937& random, int n) {
  while (true) {
    LinearMap m = random_map(random, n, n);
    if (m.rank() == n) return m;
  }
}

// Onto: the bits of the tile in random order and mixture, over registers, lanes and warps, with some broadcast.
Layout random_layout(std::mt19937& random, int rows, int cols, int lanes, int warps, bool mixed) {
  const int n = rows + cols;
  LinearMap m = mixed ? random_invertible(random, n) : LinearMap::identity(n);
  std::vector<Bits> columns;
  for (int i = 0; i < n; ++i) columns.push_back(m.column(i));
  while (static_cast<int>(columns.size()) < lanes + warps) columns.push_back(0);
  std::shuffle(columns.begin(), columns.end(), random);
  const auto take = [&](std::size_t count) {
    std::vector<Bits> taken(columns.end() - static_cast<std::ptrdiff_t>(count), columns.end());
    columns.resize(columns.size() - count);
    return taken;
  };
  auto l = take(static_cast<std::size_t>(lanes)), w = take(static_cast<std::size_t>(warps));
  return {{rows, cols}, {columns, l, w}};
}

// The example of the header.
TEST(Layout, PairsOfNeighboursInALane) {
  const Layout l({0, 3}, {{{1}, {2, 4}, {}}});
  EXPECT_EQ(l.coordinate(1, 3, 0), 7u);
  EXPECT_EQ(l.coordinate(0, 1, 0), 2u);
  EXPECT_EQ(str(l), "register (0,1); lane (0,2) (0,4); warp");
}

TEST(LinearMap, ComposeTransposeAndInverse) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int a = 1 + static_cast<int>(random() % 7), b = 1 + static_cast<int>(random() % 7), c = 1 + static_cast<int>(random() % 7);
    const LinearMap g = random_map(random, a, b), f = random_map(random, b, c), fg = compose(f, g);
    for (Bits x = 0; x < 1u << a; ++x) ASSERT_EQ(fg(x), f(g(x)));
    EXPECT_EQ(g.transposed().transposed(), g);
    EXPECT_EQ(fg.transposed(), compose(g.transposed(), f.transposed()));
    EXPECT_EQ(g.transposed().rank(), g.rank());

    const LinearMap m = random_invertible(random, a);
    const auto inverse = m.right_inverse();
    ASSERT_TRUE(inverse);
    EXPECT_EQ(compose(m, *inverse), LinearMap::identity(a));
    EXPECT_EQ(compose(*inverse, m), LinearMap::identity(a));
  }
}

TEST(LinearMap, RightInverseWhereMapsAreOnto) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const LinearMap m = random_map(random, 5, 1 + static_cast<int>(random() % 5));
    std::set<Bits> image;
    for (Bits x = 0; x < 32; ++x) image.insert(m(x));
    EXPECT_EQ(image.size(), std::size_t{1} << m.rank());
    const auto inverse = m.right_inverse();
    ASSERT_EQ(inverse.has_value(), image.size() == std::size_t{1} << m.outputs());
    if (inverse) {
      EXPECT_EQ(compose(m, *inverse), LinearMap::identity(m.outputs()));
    }
    for (Bits y = 0; y < 1u << m.outputs(); ++y) {
      const auto x = m.solve(y);
      ASSERT_EQ(x.has_value(), image.count(y) == 1);
      if (x) {
        EXPECT_EQ(m(*x), y);
      }
    }
  }
}

TEST(Layout, ProductRepeatsAndDivideUndoesIt) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Layout a = random_layout(random, 1, 2, 1, 1, true), b = random_layout(random, 2, 1, 1, 1, true);
    const Layout ab = product(a, b);
    for (Bits p = 0; p < 64; ++p) {
      const Bits reg = p & 3, lane = p >> 2 & 3, warp = p >> 4;
      const Bits x = a.coordinate(reg & 1, lane & 1, warp & 1), y = b.coordinate(reg >> 1, lane >> 1, warp >> 1);
      const Bits xy = ab.coordinate(reg, lane, warp);
      EXPECT_EQ(ab.row(xy), a.row(x) + (b.row(y) << 1));
      EXPECT_EQ(ab.column(xy), a.column(x) + (b.column(y) << 2));
    }
    EXPECT_EQ(divide(ab, a), b);
    const Layout other = random_layout(random, 1, 2, 1, 1, true);
    if (!(other == a)) {
      EXPECT_EQ(divide(ab, other), std::nullopt);
    }
  }
}

TEST(Layout, TransposeAndProject) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const Layout l = random_layout(random, 2, 3, 3, 1, true);
    EXPECT_EQ(l.transposed().transposed(), l);
    for (Bits p = 0; p < 32; ++p) {
      const Bits reg = p & 1, lane = p >> 1 & 7, warp = p >> 4, x = l.coordinate(reg, lane, warp);
      const Layout t = l.transposed(), rows = l.projected(Axis::Column), cols = l.projected(Axis::Row);
      EXPECT_EQ(t.row(t.coordinate(reg, lane, warp)), l.column(x));
      EXPECT_EQ(rows.coordinate(reg, lane, warp), l.row(x));
      EXPECT_EQ(cols.coordinate(reg, lane, warp), l.column(x));
    }
  }
}

// The least that serves, by trying: does every element that a thread wants lie in it, or in its warp?
bool reachable(const Layout& from, const Layout& to, bool lanes_too) {
  const Bits lanes = 1u << to.bits(Part::Lane), warps = 1u << to.bits(Part::Warp);
  for (Bits w = 0; w < warps; ++w) {
    for (Bits l = 0; l < lanes; ++l) {
      std::set<Bits> held;
      for (Bits k = 0; k < (lanes_too ? lanes : 1); ++k) {
        for (Bits r = 0; r < 1u << from.bits(Part::Register); ++r) held.insert(from.coordinate(r, lanes_too ? k : l, w));
      }
      for (Bits r = 0; r < 1u << to.bits(Part::Register); ++r) {
        if (held.count(to.coordinate(r, l, w)) == 0) return false;
      }
    }
  }
  return true;
}

void check_conversion(const Layout& from, const Layout& to) {
  const Conversion c = conversion(from, to);
  if (c.through == Through::Nothing) {
    EXPECT_EQ(from, to);
  }
  if (c.through == Through::Registers) {
    EXPECT_TRUE(reachable(from, to, false));
  }
  if (c.through == Through::Lanes) {
    EXPECT_TRUE(reachable(from, to, true));
  }
  if (!reachable(from, to, true)) {
    EXPECT_EQ(c.through, Through::Shared);
  }
  if (c.through == Through::Shared) return;
  EXPECT_EQ(compose(from.map(), c.source), to.map());
  const int registers = to.bits(Part::Register), lanes = to.bits(Part::Lane);
  const int from_registers = from.bits(Part::Register);
  for (Bits p = 0; p < 1u << to.map().inputs(); ++p) {
    const Bits s = c.source(p), lane = p >> registers & ((1u << lanes) - 1), warp = p >> (registers + lanes);
    EXPECT_EQ(s >> (from_registers + lanes), warp);
    if (c.through != Through::Lanes) {
      EXPECT_EQ(s >> from_registers & ((1u << lanes) - 1), lane);
    }
    EXPECT_EQ(s & ((1u << from_registers) - 1), c.source(p & ((1u << registers) - 1)) & ((1u << from_registers) - 1));
  }
}

TEST(Conversion, IsTheLeastThatServes) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const bool mixed = round % 2 == 0;
    const Layout from = random_layout(random, 2, 3, 2, 1, mixed), to = random_layout(random, 2, 3, 2, 1, mixed);
    check_conversion(from, to);
    check_conversion(from, from);
  }
}

TEST(Conversion, NamesItsParts) {
  const Layout a({0, 3}, {{{1}, {2, 4}, {}}});
  EXPECT_EQ(conversion(a, a).through, Through::Nothing);
  const Layout swapped_lanes({0, 3}, {{{1}, {4, 2}, {}}});
  EXPECT_EQ(conversion(a, swapped_lanes).through, Through::Lanes);
  const Layout two({0, 3}, {{{1, 2}, {4}, {}}}), exchanged({0, 3}, {{{2, 1}, {4}, {}}});
  EXPECT_EQ(conversion(two, exchanged).through, Through::Registers);
  const Layout warps({0, 3}, {{{1}, {2}, {4}}}), other({0, 3}, {{{1}, {4}, {2}}});
  EXPECT_EQ(conversion(warps, other).through, Through::Shared);
}

// Lanes of a warp that access different runs in one bank at once.
int conflicts(const Layout& l, const LinearMap& offsets, int vector_bits, int bank_bits) {
  int most = 0;
  for (Bits r = 0; r < 1u << l.bits(Part::Register); ++r) {
    std::vector<std::set<Bits>> runs(1u << bank_bits);
    for (Bits lane = 0; lane < 1u << l.bits(Part::Lane); ++lane) {
      const Bits run = offsets(l.coordinate(r, lane, 0)) >> vector_bits;
      runs[run & ((1u << bank_bits) - 1)].insert(run);
    }
    for (const auto& bank : runs) most = std::max(most, static_cast<int>(bank.size()));
  }
  return most;
}

TEST(Swizzle, NoConflictsForWritersAndReaders) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    const Layout writer = random_layout(random, 5, 5, 5, 1, round % 3 == 0), reader = random_layout(random, 5, 5, 5, 1, round % 3 == 0);
    const LinearMap offsets = swizzle(writer, reader, 0, 5);
    EXPECT_EQ(offsets.rank(), 10);
    EXPECT_EQ(conflicts(writer, offsets, 0, 5), 1);
    EXPECT_EQ(conflicts(reader, offsets, 0, 5), 1);
  }
}

// Rows written, columns read: what padding by a column cures elsewhere.
TEST(Swizzle, TransposeOfThirtyTwoByThirtyTwo) {
  const Layout rows({5, 5}, {{{32, 64, 128}, {1, 2, 4, 8, 16}, {256, 512}}}), columns = rows.transposed();
  EXPECT_EQ(conflicts(columns, LinearMap::identity(10), 0, 5), 32);
  const LinearMap offsets = swizzle(rows, columns, 0, 5);
  EXPECT_EQ(conflicts(rows, offsets, 0, 5), 1);
  EXPECT_EQ(conflicts(columns, offsets, 0, 5), 1);
  EXPECT_EQ(offsets(33), offsets(32) ^ offsets(1));
}

TEST(Swizzle, RunsStayTogether) {
  const Layout rows({5, 5}, {{{1, 2}, {4, 8, 16, 32, 64}, {128, 256, 512}}}), columns({5, 5}, {{{1, 2, 4, 8, 16}, {32, 64, 128, 256, 512}, {}}});
  const LinearMap offsets = swizzle(rows, columns, 2, 3);
  EXPECT_EQ(offsets(3), 3u);
  EXPECT_EQ(offsets(33), offsets(32) | 1);
  EXPECT_EQ(offsets.rank(), 10);
}

}  // namespace
}  // namespace weft::kernel::simt
