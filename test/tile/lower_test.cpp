// Every group runs through loop::interpret and, under several schedules, through tile::interpret:
// the outputs must agree and nothing outside the buffers may change.
#include "tile/lower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

#include "loop/group.h"
#include "schedule/schedule.h"

namespace weft::tile {
namespace {

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

std::int64_t element_bytes(DType t) { return bits(t) / 8; }

// Inputs by position, integers small and non-negative below `limit`.
Buffers make(const Case& c, const std::vector<loop::StorageMap>& maps, std::int64_t limit,
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

void expect_close(const Case& c, const Buffers& want, const Buffers& got, const std::string& how) {
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

Machine machine(int vector_bits, int registers) {
  Machine m;
  m.vector_bits = vector_bits;
  m.vector_registers = registers;
  m.cores = 2;
  m.has_fma = true;
  return m;
}

void compare(const Case& c, const Record& record, const std::string& how, std::int64_t limit, Buffers* out = nullptr) {
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
void compare_candidates(const Case& c, const Machine& m, const DimFacts& facts, std::int64_t limit) {
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

Record serial(const Group& g) {
  Record r;
  r.loops.resize(g.loops.size());
  return r;
}

void check(const char* text, const Bindings& bindings = {}, std::int64_t limit = 0,
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
void check_with(const char* text, const std::vector<Plan>& plans, const Bindings& bindings = {},
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

std::string replace(std::string text, const std::map<std::string, std::int64_t>& values) {
  for (const auto& [from, to] : values) {
    for (std::size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), std::to_string(to));
  }
  return text;
}

constexpr const char* kPointwise = R"(group "g"
  param p0: input f32[n, m]
  param p1: input f32[m]
  param p2: output f32[n, m]
  parallel i0: n { parallel i1: m { store p2[i0, i1] = max(p0[i0, i1] + p1[i1], f32(0)) } })";

TEST(Lower, Pointwise) {
  for (int n : {0, 1, 3, 17}) {
    for (int m : {0, 1, 5, 16, 33, 130}) check(kPointwise, {{"n", n}, {"m", m}}, 0, 0.1);
  }
}

TEST(Lower, PointwiseByHand) {
  for (int n : {1, 6, 9}) {
    for (int m : {3, 8, 21}) {
      for (std::int64_t block : {1, 2, 5}) {
        check_with(kPointwise, {{0, 0, 4, true, block}, {1, 1, 8, true, block}},
                   {{"n", n}, {"m", m}}, 0.1);
        check_with(kPointwise, {{0, 0, 4, true, 1}, {1, 1, 8, true, block}}, {{"n", n}, {"m", m}},
                   0.1);
        check_with(kPointwise, {{1, 1, 8, true, 1}, {0, 0, 4, true, block}}, {{"n", n}, {"m", m}},
                   0.1);
      }
      check_with(kPointwise, {{0, 1, 4, true, 1}}, {{"n", n}, {"m", m}}, 0.1);  // strided lanes
      check_with(kPointwise, {{0, 0, 4, false, 1}, {1, 1, 8, false, 1}}, {{"n", n}, {"m", m}}, 0.1);
    }
  }
}

TEST(Lower, TransposeAndBroadcast) {
  check(R"(group "g"
  param p0: input f32[19, 37]
  param p1: input i8[37]
  param p2: output f32[37, 19]
  parallel i0: 37 { parallel i1: 19 { store p2[i0, i1] = p0[i1, i0] * cast.f32(p1[i0]) } })");
}

TEST(Lower, NarrowTypes) {
  check(R"(group "g"
  param p0: input f16[50]
  param p1: input bf16[50]
  param p2: input bool[50]
  param p3: output f16[50]
  param p4: output bool[50]
  parallel i0: 50 {
    store p3[i0] = cast.f16(select(p2[i0], cast.f32(p0[i0]), cast.f32(p1[i0])))
    store p4[i0] = not(p2[i0])
  })");
}

constexpr const char* kSoftmax = R"(group "softmax"
  param p0: input f32[n, M]
  param p1: output f32[n, M]
  parallel i0: n {
    local t0: f32 = f32(-inf)
    reduce i1: M { update t0 max= p0[i0, i1] }
    local t1: f32 = f32(0)
    reduce i2: M { update t1 sum= exp(p0[i0, i2] - t0) }
    parallel i3: M { store p1[i0, i3] = exp(p0[i0, i3] - t0) / t1 }
  })";

TEST(Lower, RowSoftmax) {
  for (int m : {1, 5, 16, 50, 200}) {
    for (int n : {0, 1, 9}) check(replace(kSoftmax, {{"M", m}}).c_str(), {{"n", n}});
    check_with(replace(kSoftmax, {{"M", m}}).c_str(),
               {{0, 0, 4, true, 1}, {1, 1, 8, false, 1}, {2, 1, 8, false, 1}, {3, 1, 16, false, 1}},
               {{"n", 9}}, 0.05);
    check_with(replace(kSoftmax, {{"M", m}}).c_str(),
               {{0, 1, 4, true, 1}, {1, 0, 3, false, 1}, {2, 0, 3, false, 1}}, {{"n", 9}}, 0.05);
  }
}

TEST(Lower, ReductionsOverOneAxis) {
  const char* columns = R"(group "g"
  param p0: input f32[n, m]
  param p1: output f32[m]
  parallel i0: m {
    local t0: f32 = f32(0)
    reduce i1: n { update t0 sum= p0[i1, i0] }
    store p1[i0] = t0 * f32(0.5)
  })";
  const char* rows = R"(group "g"
  param p0: input i32[n, m]
  param p1: output i32[n]
  parallel i0: n {
    local t0: i32 = i32(-2147483648)
    reduce i1: m { update t0 max= p0[i0, i1] }
    store p1[i0] = t0
  })";
  for (int n : {0, 1, 7, 40}) {
    for (int m : {0, 1, 6, 65}) {
      check(columns, {{"n", n}, {"m", m}}, 0, 0.02);
      check(rows, {{"n", n}, {"m", m}});
      check_with(columns, {{0, 1, 8, true, 1}, {1, 0, 4, false, 1}}, {{"n", n}, {"m", m}}, 0.02);
    }
  }
}

TEST(Lower, FullReductionOverTwoLoops) {
  check(R"(group "g"
  param p0: input f32[5, 3, 7]
  param p1: output f32[3]
  parallel i0: 3 {
    local t0: f32 = f32(1)
    reduce i1: 5 { reduce i2: 7 { update t0 prod= p0[i1, i0, i2] } }
    store p1[i0] = t0
  })");
}

constexpr const char* kDot = R"(group "dot"
  param p0: input f32[M, 20]
  param p1: input f32[20, N] const
  param p2: input f32[N]
  param p3: output f32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: f32 = f32(0)
    reduce i2: 20 { update t0 sum= p0[i0, i2] * p1[i2, i1] }
    store p3[i0, i1] = max(t0 + p2[i1], f32(0))
  } })";

TEST(Lower, DotWithEpilogue) {
  for (int m : {1, 3, 14, 15, 40}) {
    for (int n : {1, 5, 32, 50}) check(replace(kDot, {{"M", m}, {"N", n}}).c_str(), {}, 0, 0.001);
  }
}

constexpr const char* kActivated = R"(group "dot"
  param p0: input f32[M, 20]
  param p1: input f32[20, N] const
  param p2: input f32[N]
  param p3: input f32[M, N]
  param p4: output f32[M, N]
  param p5: output f32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: f32 = f32(0)
    reduce i2: 20 { update t0 sum= p0[i0, i2] * p1[i2, i1] }
    local t1: f32 = t0 + p2[i1]
    store p4[i0, i1] = t1 * sigmoid(t1) + p3[i0, i1]
    store p5[i0, i1] = exp(t0)
  } })";

TEST(Lower, DotFinishedRowByRow) {
  auto g = loop::parse(replace(kActivated, {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  EXPECT_TRUE(s.variants.back().record.loops[0].apart) << s.why;
  for (int m : {1, 3, 14, 15, 40}) {
    for (int n : {1, 5, 32, 50}) check(replace(kActivated, {{"M", m}, {"N", n}}).c_str(), {}, 0, 0.001);
  }
  std::string dynamic = replace(kActivated, {{"N", 50}});
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 2, 6, 7, 29}) check(dynamic.c_str(), {{"n", n}});
}

TEST(Lower, DotWithDynamicRows) {
  const std::string text = replace(kDot, {{"N", 50}});
  std::string dynamic = text;
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 2, 6, 7, 29}) check(dynamic.c_str(), {{"n", n}});
}

TEST(Lower, DotEmitsDot) {
  auto g = loop::parse(replace(kDot, {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  const auto lowered = lower(*g, s.variants.back().record);
  ASSERT_TRUE(lowered.ok());
  EXPECT_NE(ssa::print(lowered->function).find("dot"), std::string::npos) << s.why;
  EXPECT_EQ(s.variants.back().record.maps[1].panel, s.variants.back().record.loops[1].tile);
}

// Bytes in words: the weights' axis of 4 lies inside their panels.
constexpr const char* kByteDot = R"(group "dot"
  param p0: input LEFT[M, 20]
  param p1: input RIGHT[5, 4, N] const
  param p2: output i32[M, N]
  parallel i0: M { parallel i1: N {
    local t0: i32 = i32(0)
    reduce i2: 5 { reduce i3: 4 { update t0 sum= cast.i32(p0[i0, i2 * 4 + i3]) * cast.i32(p1[i2, i3, i1]) } }
    store p2[i0, i1] = t0
  } })";

std::string typed(std::string text, bool left_unsigned) {
  text.replace(text.find("LEFT"), 4, left_unsigned ? "u8" : "i8");
  return text.replace(text.find("RIGHT"), 5, left_unsigned ? "i8" : "u8");
}

TEST(Lower, DotOfBytes) {
  for (const bool left_unsigned : {true, false}) {
    for (int m : {1, 3, 14, 40}) {
      for (int n : {1, 5, 32, 50}) check(replace(typed(kByteDot, left_unsigned), {{"M", m}, {"N", n}}).c_str());
    }
  }
  std::string dynamic = replace(typed(kByteDot, true), {{"N", 50}});
  for (std::size_t at; (at = dynamic.find('M')) != std::string::npos;) dynamic.replace(at, 1, "n");
  for (int n : {0, 1, 7}) check(dynamic.c_str(), {{"n", n}});
}

TEST(Lower, DotOfBytesTakesWords) {
  auto g = loop::parse(replace(typed(kByteDot, true), {{"M", 40}, {"N", 64}}));
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto s = schedule::schedule(*g, machine(512, 32), {});
  const Record& r = s.variants.back().record;
  EXPECT_TRUE(r.loops[3].in_word) << s.why;
  EXPECT_EQ(r.maps[1].inner, 1) << s.why;
  const auto lowered = lower(*g, r);
  ASSERT_TRUE(lowered.ok());
  EXPECT_NE(ssa::print(lowered->function).find(": i8[4,"), std::string::npos) << ssa::print(lowered->function);
}

// A convolution whose rows read past the edge, and whose operand on the lanes is not constant.
TEST(Lower, ConvolutionOfBytes) {
  check(R"(group "conv"
  param p0: input u8[7, 9, 8]
  param p1: input i8[3, 3, 2, 4, 20] const
  param p2: output i32[7, 9, 20]
  parallel i0: 7 { parallel i1: 9 { parallel i2: 20 {
    local t0: i32 = i32(0)
    reduce i3: 3 { reduce i4: 3 { reduce i5: 2 { reduce i6: 4 {
      %0 = i0 + i3 - 1
      %1 = i1 + i4 - 1
      update t0 sum= cast.i32(load_if(and(and(ge(%0, 0), lt(%0, 7)), and(ge(%1, 0), lt(%1, 9))), p0[%0, %1, i5 * 4 + i6])) * cast.i32(p1[i3, i4, i5, i6, i2])
    } } } }
    store p2[i0, i1, i2] = t0
  } } })");
  check(R"(group "dot"
  param p0: input u8[9, 5, 4]
  param p1: input i8[5, 33, 4]
  param p2: output i32[9, 33]
  parallel i0: 9 { parallel i1: 33 {
    local t0: i32 = i32(0)
    reduce i2: 5 { reduce i3: 4 { update t0 sum= cast.i32(p0[i0, i2, i3]) * cast.i32(p1[i2, i1, i3]) } }
    store p2[i0, i1] = t0
  } })");
}

TEST(Lower, DotTransposedOperands) {
  check(R"(group "dot"
  param p0: input f32[20, 9]
  param p1: input f32[33, 20]
  param p2: output f32[9, 33]
  parallel i0: 9 { parallel i1: 33 {
    local t0: f32 = f32(0)
    reduce i2: 20 { update t0 sum= p0[i2, i0] * p1[i1, i2] }
    store p2[i0, i1] = t0
  } })");
}

TEST(Lower, ConvolutionPadded) {
  const char* nhwc = R"(group "conv"
  param p0: input f32[1, 4, 9, 5]
  param p1: input f32[3, 3, 5, 18] const
  param p2: output f32[1, 4, 9, 18]
  parallel i0: 1 { parallel i1: 4 { parallel i2: 9 { parallel i3: 18 {
    local t0: f32 = f32(0)
    reduce i4: 3 { reduce i5: 3 { reduce i6: 5 {
      %0 = i1 + i4 - 1
      %1 = i2 + i5 - 1
      update t0 sum= load_if(and(and(ge(%0, 0), lt(%0, 4)), and(ge(%1, 0), lt(%1, 9))), p0[i0, %0, %1, i6]) * p1[i4, i5, i6, i3]
    } } }
    store p2[i0, i1, i2, i3] = t0
  } } } })";
  const char* nchw = R"(group "conv"
  param p0: input f32[1, 5, 4, 9]
  param p1: input f32[18, 5, 3, 3] const
  param p2: output f32[1, 18, 4, 9]
  parallel i0: 1 { parallel i3: 18 { parallel i1: 4 { parallel i2: 9 {
    local t0: f32 = f32(0)
    reduce i6: 5 { reduce i4: 3 { reduce i5: 3 {
      %0 = i1 + i4 - 1
      %1 = i2 + i5 - 1
      update t0 sum= load_if(and(and(ge(%0, 0), lt(%0, 4)), and(ge(%1, 0), lt(%1, 9))), p0[i0, i6, %0, %1]) * p1[i3, i6, i4, i5]
    } } }
    store p2[i0, i3, i1, i2] = t0
  } } } })";
  check(nhwc);
  check(nchw);
}

TEST(Lower, Depthwise) {
  check(R"(group "depthwise"
  param p0: input f32[6, 8, 20]
  param p1: input f32[3, 3, 20] const
  param p2: output f32[4, 6, 20]
  parallel i0: 4 { parallel i1: 6 { parallel i2: 20 {
    local t0: f32 = f32(0)
    reduce i3: 3 { reduce i4: 3 { update t0 sum= p0[i0 + i3, i1 + i4, i2] * p1[i3, i4, i2] } }
    store p2[i0, i1, i2] = t0
  } } })");
}

TEST(Lower, GatherWraps) {
  const char* rows = R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[e, 21]
  param p1: input i64[n]
  param p2: output f32[n, 21]
  parallel i0: n { parallel i1: 21 { store p2[i0, i1] = p0[wrap(p1[i0], size(e), 1), i1] } })";
  const char* lanes = R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[8]
  param p1: input i32[n]
  param p2: output f32[n]
  parallel i0: n { store p2[i0] = p0[wrap(cast.i64(p1[i0]) - 3, 8, 1)] })";
  for (int n : {0, 1, 5, 37}) {
    check(rows, {{"n", n}, {"e", 6}}, 6);
    check(lanes, {{"n", n}}, 6);
  }
}

TEST(Lower, BadIndexFailsWithoutLeavingTheBuffer) {
  auto g = loop::parse(R"(group "gather"
  check 1 "index out of range"
  param p0: input f32[e]
  param p1: input i64[5]
  param p2: output f32[5]
  parallel i0: 5 { store p2[i0] = p0[wrap(p1[i0], size(e), 1)] })");
  ASSERT_TRUE(g.ok());
  for (int extent : {0, 3}) {
    const auto s = schedule::schedule(*g, machine(256, 16), {});
    const auto lowered = lower(*g, s.variants[0].record);
    ASSERT_TRUE(lowered.ok());
    std::vector<float> x(3), y(5);
    std::vector<std::int64_t> at{0, 1, INT64_MIN, 2, INT64_MAX};
    std::vector<BufferView> views{{x.data(), extent}, {at.data(), 5}, {y.data(), 5}};
    std::vector<std::int64_t> sizes;
    for (const Dim& d : lowered->sizes) sizes.push_back(d.evaluate({{"e", extent}}).value());
    const auto run = interpret(lowered->function, views, sizes, 1);
    ASSERT_FALSE(run.ok());
    EXPECT_NE(std::string(run.error().what()).find("check"), std::string::npos)
        << run.error().what();
  }
}

TEST(Lower, CumulativeSum) {
  check(R"(group "scan"
  param p0: input f32[6, n]
  param p1: output f32[6, n]
  parallel i0: n {
    local t0: f32 = f32(0)
    serial i1: 6 {
      set t0 = t0 + p0[i1, i0]
      store p1[i1, i0] = t0
    }
  })",
        {{"n", 19}});
}

TEST(Lower, ScatterAdd) {
  check(R"(group "scatter"
  param p0: input f32[9, 21]
  param p1: input i64[9]
  param p2: inout f32[4, 21]
  serial i0: 9 { parallel i1: 21 { store p2[p1[i0], i1] sum= p0[i0, i1] } })",
        {}, 4);
  check(R"(group "scatter"
  param p0: input i64[30]
  param p1: inout i64[4]
  serial i0: 30 { store p1[p0[i0]] sum= p0[i0] })",
        {}, 4);
}

TEST(Lower, OnChipIntermediate) {
  check(R"(group "g"
  param p0: input f32[n, 40]
  param p1: onchip f32[40]
  param p2: output f32[n, 40]
  parallel i0: n {
    local t0: f32 = f32(0)
    parallel i1: 40 { store p1[i1] = exp(p0[i0, i1]) }
    reduce i2: 40 { update t0 sum= p1[i2] }
    parallel i3: 40 { store p2[i0, i3] = p1[i3] / t0 }
  })",
        {{"n", 5}});
}

TEST(Lower, Arange) {
  check(R"(group "g"
  param p0: output i64[n, 50]
  parallel i0: n { parallel i1: 50 { store p0[i0, i1] = i1 * size(n) + i0 } })",
        {{"n", 5}});
}

TEST(Lower, ReshapedViews) {
  check(R"(group "g"
  param p0: input f32[6, 8, 4]
  param p1: output f32[192]
  parallel i0: 192 { store p1[i0] = p0[floor_div(i0, 32), mod(floor_div(i0, 4), 8), mod(i0, 4)] })");
  check(R"(group "g"
  param p0: input f32[3, 64]
  param p1: output f32[192]
  parallel i0: 192 { store p1[i0] = p0[floor_div(i0, 64), mod(i0, 64)] })");
}

TEST(Lower, RefusesPackedTypes) {
  auto g = loop::parse(R"(group "g"
  param p0: input i4[8]
  param p1: output i8[8]
  parallel i0: 8 { store p1[i0] = cast.i8(p0[i0]) })");
  ASSERT_TRUE(g.ok()) << g.error().what();
  const auto lowered = lower(*g, serial(*g));
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().kind(), ErrorKind::Unsupported);
}

}  // namespace
}  // namespace weft::tile
