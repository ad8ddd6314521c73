// Runs a tile program under both interpreters, tile by tile and lowered to vectors of several
// widths and to groups of threads, and compares the buffers with guard bytes around them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/machine.h"
#include "kernel/kernel.h"
#include "kernel/simd/lower.h"
#include "kernel/simt/lower.h"
#include "tile/tile.h"

namespace weft::kernel::simd_test {

using tile::Builder;
using tile::ValueId;

inline constexpr ssa::Buffer in_buffer(DType t) { return {t, ssa::Space::Memory, true, false, 0}; }
inline constexpr ssa::Buffer out_buffer(DType t) { return {t, ssa::Space::Memory, true, true, 0}; }

inline constexpr ssa::Buffer kIn = in_buffer(DType::F32), kOut = out_buffer(DType::F32);

inline constexpr std::size_t kGuard = 64;

struct Bytes {
  DType dtype;
  std::int64_t elements;
  std::vector<unsigned char> data;  // guard, elements, guard
  void* payload() { return data.data() + kGuard; }
  const void* payload() const { return data.data() + kGuard; }
};

inline Bytes random_bytes(DType t, std::int64_t elements, std::mt19937& random, bool special) {
  Bytes b{t, elements, std::vector<unsigned char>(2 * kGuard + *storage_bytes(t, elements), 0xa5)};
  for (std::int64_t i = 0; i < elements; ++i) {
    if (!is_float(t)) {
      store_i64(t, b.payload(), i,
                static_cast<std::int64_t>(random() % 200) - (is_signed_int(t) ? 100 : 0));
      continue;
    }
    double x = std::uniform_real_distribution<double>(-4, 4)(random);
    if (special && random() % 16 == 0) x = NAN;
    if (special && random() % 16 == 0) x = random() % 2 == 0 ? INFINITY : -INFINITY;
    store_f64(t, b.payload(), i, x);
  }
  return b;
}

// f must have as many Memory buffers as `elements` names; written ones start with random contents
// too.
struct Case {
  std::vector<std::int64_t> elements;
  std::vector<std::int64_t> sizes = {};
  std::int64_t grid = 1;
  double tolerance = 0;  // relative
  bool vectors = true;   // of all widths, beside a matrix unit
  bool groups = true;    // by groups of threads too: no store writes an element twice
  bool special = true;   // NaN and infinities among the inputs
  // Fills buffers that are not just data (indices).
  std::function<void(std::vector<Bytes>&)> fill = {};
};

inline bool near(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

inline void compare(const std::vector<Bytes>& expected, const std::vector<Bytes>& found,
                    double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Bytes &e = expected[i], &f = found[i];
    for (std::int64_t k = 0; k < e.elements; ++k) {
      if (is_float(e.dtype)) {
        const double x = load_f64(e.dtype, e.payload(), k), y = load_f64(f.dtype, f.payload(), k);
        ASSERT_TRUE(near(x, y, tolerance))
            << "buffer " << i << " element " << k << ": " << x << " and " << y;
      } else {
        ASSERT_EQ(load_i64(e.dtype, e.payload(), k), load_i64(f.dtype, f.payload(), k))
            << "buffer " << i << " element " << k;
      }
    }
    const std::size_t end = e.data.size() - kGuard;
    ASSERT_EQ(std::memcmp(e.data.data(), f.data.data(), kGuard), 0) << "guard before buffer " << i;
    ASSERT_EQ(std::memcmp(e.data.data() + end, f.data.data() + end, kGuard), 0)
        << "guard after buffer " << i;
  }
}

template <class View>
std::vector<View> views(std::vector<Bytes>& buffers) {
  std::vector<View> v;
  for (Bytes& b : buffers) v.push_back({b.payload(), b.elements});
  return v;
}

inline Machine machine_of(int vector_bytes) {
  Machine m;
  m.has_fma = true;
  m.vector_bits = vector_bytes * 8;
  m.has_avx512_bf16 = vector_bytes == 64;
  return m;
}

inline Machine matrix_machine() {
  Machine m = machine_of(64);
  m.has_amx_bf16 = m.has_amx_int8 = true;
  return m;
}

inline Machine group_machine(int threads, int warp, bool shuffle) {
  Machine m;
  m.has_fma = true;
  m.group_threads = threads;
  m.warp_threads = warp;
  m.has_shuffle = shuffle;
  m.shared_bytes = 96 << 10;
  return m;
}

struct Way {
  std::string name;
  Result<Function> kernel;
};

inline std::vector<Way> ways(const tile::Function& f, bool vectors, bool groups) {
  std::vector<Way> all;
  for (const int bytes : vectors ? std::vector<int>{16, 32, 64} : std::vector<int>{}) all.push_back({std::to_string(bytes) + " byte vectors", lower_simd(f, machine_of(bytes))});
  all.push_back({"tiles of a matrix unit", lower_simd(f, matrix_machine())});
  if (!groups) return all;
  all.push_back({"128 threads that shuffle", lower_simt(f, group_machine(128, 32, true))});
  all.push_back({"64 threads", lower_simt(f, group_machine(64, 32, false))});
  all.push_back({"8 threads, warps of 4", lower_simt(f, group_machine(8, 4, true))});
  return all;
}

inline void differential(const tile::Function& f, const Case& c) {
  const std::vector<Way> lowerings = ways(f, c.vectors, c.groups);
  const auto verified = tile::verify(f);
  ASSERT_TRUE(verified.ok()) << verified.error().what() << "\n" << ssa::print(f);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937 random(seed);
    std::vector<Bytes> start;
    for (std::size_t i = 0; i < c.elements.size(); ++i) {
      start.push_back(
          random_bytes(f.buffers[i].dtype, c.elements[i], random, c.special && seed > 1));
    }
    if (c.fill) c.fill(start);
    std::vector<Bytes> expected = start;
    const auto reference = tile::interpret(f, views<tile::BufferView>(expected), c.sizes, c.grid);
    ASSERT_TRUE(reference.ok()) << reference.error().what();
    for (const Way& way : lowerings) {
      const auto& lowered = way.kernel;
      if (!lowered.ok() && lowered.error().code() == "op") continue;  // groups of threads have no such op
      ASSERT_TRUE(lowered.ok()) << way.name << ": " << lowered.error().what();
      const std::string text = seed == 1 ? ssa::print(*lowered) : "";
      const auto well_formed = verify(*lowered);
      ASSERT_TRUE(well_formed.ok()) << way.name << ": " << well_formed.error().what() << "\n" << text;
      std::vector<Bytes> found = start;
      const auto run = interpret(*lowered, views<BufferView>(found), c.sizes, c.grid);
      ASSERT_TRUE(run.ok()) << way.name << ": " << run.error().what() << "\n" << ssa::print(f) << text;
      compare(expected, found, c.tolerance);
      if (testing::Test::HasFatalFailure()) {
        ADD_FAILURE() << way.name << ", seed " << seed << "\n"
                      << ssa::print(f) << text;
        return;
      }
    }
  }
}

inline int count(const ssa::Block& block, Op op) {
  int n = 0;
  for (const ssa::Inst& inst : block.insts) {
    n += inst.op == static_cast<std::uint16_t>(op) ? 1 : 0;
    for (const ssa::Block& region : inst.regions) n += count(region, op);
  }
  return n;
}

}  // namespace weft::kernel::simd_test
