// Every group runs through loop::interpret and, under several schedules, through tile::interpret:
// the outputs must agree and nothing outside the buffers may change.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "loop/group.h"
#include "schedule/schedule.h"
#include "tile/lower.h"

namespace weft::tile::testing {

using loop::Group;
using loop::Role;
using schedule::Record;

constexpr std::int64_t kGuard = 64;  // elements around each buffer

struct Buffers {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<loop::BufferView> views;
};

struct Case {
  Group group;
  Bindings bindings;
  std::vector<std::int64_t> counts;  // elements by param
  double special = 0;                // share of NaN and infinities in the inputs
};

inline std::int64_t element_bytes(DType t) { return bits(t) / 8; }

// Inputs by position, integers small and non-negative below `limit`.
inline Buffers make(const Case& c, const std::vector<loop::StorageMap>& maps, std::int64_t limit,
             unsigned seed) {
  Buffers b;
  for (std::size_t i = 0; i < c.group.params.size(); ++i) {
    loop::Param p = c.group.params[i];
    std::mt19937 random(seed + static_cast<unsigned>(i));
    const std::int64_t n = storage_elements(p.shape, p.map).evaluate(c.bindings).value();
    const loop::StorageMap map = maps.empty() || maps[i] == loop::StorageMap{} ? p.map : maps[i];
    const std::int64_t stored = storage_elements(p.shape, map).evaluate(c.bindings).value();
    const std::int64_t size = element_bytes(p.dtype);
    std::vector<std::uint8_t> plain(n * size), bytes((stored + 2 * kGuard) * size, 0xa5);
    for (std::int64_t k = 0; k < n; ++k) {
      const int r = static_cast<int>(random() % 1000);
      Scalar v{(r - 500) / 250.0, limit > 0 ? r % limit : r - 500};
      if (p.role == Role::Input && r < c.special * 1000) {
        v.f = r % 3 == 0 ? std::nan("") : r % 3 == 1 ? INFINITY : -INFINITY;
      }
      if (is_bool(p.dtype)) v.i = r & 1;
      store_scalar(p.dtype, plain.data(), k, v);
    }
    if (map == p.map) {
      std::memcpy(bytes.data() + kGuard * size, plain.data(), plain.size());
    } else {  // row-major to panels, by definition
      std::memset(bytes.data() + kGuard * size, 0, stored * size);
      const auto shape = evaluate(p.shape, c.bindings).value();
      std::vector<std::int64_t> at(shape.size(), 0);
      for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t rest = k, address = 0;
        for (std::size_t d = shape.size(); d-- > 0;) at[d] = rest % shape[d], rest /= shape[d];
        if (map.panel > 0) address = at[map.panel_axis] / map.panel;
        for (std::size_t d = 0; d < shape.size(); ++d) {
          const int axis = map.order.empty() ? static_cast<int>(d) : map.order[d];
          if (map.panel > 0 && (axis == map.panel_axis || axis == map.inner)) continue;
          address = address * shape[axis] + at[axis];
        }
        if (map.panel > 0) address = address * map.panel + at[map.panel_axis] % map.panel;
        if (map.inner >= 0) address = address * shape[map.inner] + at[map.inner];
        std::memcpy(bytes.data() + (kGuard + address) * size, plain.data() + k * size, size);
      }
    }
    b.bytes.push_back(std::move(bytes));
    b.views.push_back({b.bytes.back().data() + kGuard * size, stored});
  }
  for (std::size_t i = 0; i < b.bytes.size(); ++i) {
    b.views[i].data = b.bytes[i].data() + kGuard * element_bytes(c.group.params[i].dtype);
  }
  return b;
}

inline void expect_close(const Case& c, const Buffers& want, const Buffers& got, const std::string& how) {
  for (std::size_t i = 0; i < c.group.params.size(); ++i) {
    const auto& p = c.group.params[i];
    if (p.role == Role::OnChip || p.role == Role::Input) continue;
    ASSERT_EQ(want.bytes[i].size(), got.bytes[i].size());
    const auto total = static_cast<std::int64_t>(want.bytes[i].size()) / element_bytes(p.dtype);
    for (std::int64_t k = 0; k < total; ++k) {
      const Scalar x = load_scalar(p.dtype, want.bytes[i].data(), k),
                   y = load_scalar(p.dtype, got.bytes[i].data(), k);
      if (!is_float(p.dtype)) {
        ASSERT_EQ(x.i, y.i) << how << " p" << i << " element " << k - kGuard;
      } else if (std::isnan(x.f) || std::isinf(x.f)) {
        ASSERT_TRUE((std::isnan(x.f) && std::isnan(y.f)) || x.f == y.f)
            << how << " p" << i << " element " << k - kGuard << ": " << x.f << " " << y.f;
      } else {
        ASSERT_NEAR(x.f, y.f, 1e-4 * (1 + std::abs(x.f)))
            << how << " p" << i << " element " << k - kGuard;
      }
    }
  }
}

inline Machine machine(int vector_bits, int registers) {
  Machine m;
  m.vector_bits = vector_bits;
  m.vector_registers = registers;
  m.cores = 2;
  m.has_fma = true;
  return m;
}

inline void compare(const Case& c, const Record& record, const std::string& how, std::int64_t limit, Buffers* out = nullptr) {
  SCOPED_TRACE(how + ": " + schedule::print(record));
  for (unsigned seed : {1u}) {
    Buffers want = make(c, {}, limit, seed);
    const auto reference = loop::interpret(c.group, want.views, c.bindings);
    ASSERT_TRUE(reference.ok()) << reference.error().what();
    Buffers got = make(c, record.maps, limit, seed);
    const auto lowered = lower(c.group, record);
    ASSERT_TRUE(lowered.ok()) << lowered.error().what();
    const auto valid = verify(lowered->function);
    ASSERT_TRUE(valid.ok()) << valid.error().what() << "\n" << ssa::print(lowered->function);
    std::vector<BufferView> views;
    for (loop::ParamId p : lowered->buffers)
      views.push_back({got.views[p].data, got.views[p].elements});
    std::vector<std::int64_t> sizes;
    for (const Dim& d : lowered->sizes) sizes.push_back(d.evaluate(c.bindings).value());
    const auto run =
        interpret(lowered->function, views, sizes, lowered->grid.evaluate(c.bindings).value());
    ASSERT_TRUE(run.ok()) << run.error().what() << "\n" << ssa::print(lowered->function);
    // Maps only change inputs, which are not compared.
    expect_close(c, want, got, how);
    if (::testing::Test::HasFailure()) FAIL() << ssa::print(lowered->function);
    if (out) *out = std::move(got);
  }
}

// All that a schedule considers gives the same bits: what is chosen, by model or by measuring, never shows in a result.
inline void compare_candidates(const Case& c, const Machine& m, const DimFacts& facts, std::int64_t limit) {
  std::optional<Buffers> first;
  for (const auto& candidate : schedule::schedule(c.group, m, facts, {true, ""}).candidates) {
    Buffers got;
    compare(c, candidate.record, "candidate", limit, &got);
    if (::testing::Test::HasFailure()) return;
    if (!first) first = got;
    for (std::size_t i = 0; i < c.group.params.size(); ++i) {
      if (c.group.params[i].role == Role::Input) continue;
      ASSERT_EQ(first->bytes[i], got.bytes[i]) << "p" << i << " under " << schedule::print(candidate.record);
    }
  }
}

inline Record serial(const Group& g) {
  Record r;
  r.loops.resize(g.loops.size());
  return r;
}

inline void check(const char* text, const Bindings& bindings = {}, std::int64_t limit = 0,
           double special = 0) {
  auto g = loop::parse(text);
  ASSERT_TRUE(g.ok()) << g.error().what();
  Case c{*g, bindings, {}, special};
  compare(c, serial(*g), "serial", limit);
  DimFacts facts;
  for (const auto& [name, value] : bindings) facts.declare(name, {0, 1000, 1});
  for (const auto& [bits, registers] : {std::pair{512, 32}, {256, 16}, {128, 16}}) {
    const auto s = schedule::schedule(*g, machine(bits, registers), facts);
    for (const auto& v : s.variants) {
      if (v.guard) {
        const auto size = v.guard->size.evaluate(bindings).value();
        if (size < v.guard->lo || size > v.guard->hi) continue;
      }
      compare(c, v.record, "scheduled for " + std::to_string(bits), limit);
      Record other = v.record;
      for (auto& plan : other.loops) plan.apart = plan.axis == 0 && !plan.apart;
      if (!(other == v.record)) compare(c, other, "finished the other way for " + std::to_string(bits), limit);
    }
  }
  compare_candidates(c, machine(512, 32), facts, limit);
}

// A record by hand: rows, lanes (loop, tile), blocks on the grid.
struct Plan {
  int loop, axis, tile;
  bool grid;
  std::int64_t block;
};
inline void check_with(const char* text, const std::vector<Plan>& plans, const Bindings& bindings = {},
                double special = 0) {
  auto g = loop::parse(text);
  ASSERT_TRUE(g.ok()) << g.error().what();
  Record r = serial(*g);
  for (const Plan& p : plans) {
    r.loops[p.loop] = {p.axis, p.tile, p.grid, p.block};
    if (p.grid) r.grid_order.push_back(p.loop);
  }
  compare({*g, bindings, {}, special}, r, "by hand", 0);
}

inline std::string replace(std::string text, const std::map<std::string, std::int64_t>& values) {
  for (const auto& [from, to] : values) {
    for (std::size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), std::to_string(to));
  }
  return text;
}

}  // namespace weft::tile::testing
