// Attention as machine code: one kernel, equal to the interpreter, and as exact as plain f32 arithmetic.
#include "loop/attention_graphs.h"

#include <cmath>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

using weft::testing::AttentionCase;
using weft::testing::AttentionInputs;
using weft::testing::Mask;

std::unique_ptr<runtime::Executable> with_kernels(const graph::Graph& g, int kernels) {
  Options options;
  options.cache = false;
  options.jobs = 1;
  auto compiled = compile(g, options);
  if (!compiled.ok()) {
    ADD_FAILURE() << compiled.error().what();
    return nullptr;
  }
  EXPECT_EQ(compiled->report.kernels, kernels);
  EXPECT_EQ(compiled->plan->infos.at(kernels - 1).name, "attention");
  return std::make_unique<runtime::Executable>(compiled->plan);
}

std::unique_ptr<runtime::Executable> one_kernel(const graph::Graph& g) { return with_kernels(g, 1); }

void check_attention(const AttentionCase& c, const std::vector<AttentionInputs>& runs) {
  const graph::Graph g = weft::testing::attention_graph(c);
  const auto exe = one_kernel(g);
  ASSERT_NE(exe, nullptr);
  for (const AttentionInputs& in : runs) {
    const Tensors inputs = weft::testing::attention_inputs(c, in);
    auto want = graph::interpret(g, inputs);
    ASSERT_TRUE(want.ok()) << want.error().what();
    const Tensors got = run(*exe, inputs, 2);
    EXPECT_EQ(difference(got[0], (*want)[0], 1e-5), "")
        << "batch " << in.batch << " rows " << in.rows << " keys " << in.keys << "\n" << graph::print(g);
  }
}

std::vector<AttentionInputs> sizes(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, double special = 0) {
  std::vector<AttentionInputs> runs;
  for (const auto& [rows, keys] : pairs) {
    AttentionInputs in;
    in.rows = rows, in.keys = keys, in.special = special, in.seed = static_cast<unsigned>(runs.size() + 1);
    runs.push_back(in);
  }
  return runs;
}

TEST(CompiledAttention, SizesKnownWhenRunning) {
  AttentionCase c;
  c.size = 32, c.value_size = 40;
  auto runs = sizes({{1, 1}, {1, 300}, {33, 129}, {64, 128}, {7, 0}, {0, 7}, {100, 257}});
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].batch = static_cast<std::int64_t>(i % 3);
  c.batch = "b";
  check_attention(c, runs);
}

TEST(CompiledAttention, Masks) {
  for (const Mask mask : {Mask::Keys, Mask::Full, Mask::Causal}) {
    AttentionCase c;
    c.mask = mask, c.size = 16, c.value_size = 16, c.group = 2, c.nan_to_zero = mask != Mask::Causal, c.softcap = mask == Mask::Causal;
    check_attention(c, sizes({{1, 5}, {70, 150}, {33, 33}}));
  }
}

TEST(CompiledAttention, SpecialValues) {
  for (const bool zero : {false, true}) {
    AttentionCase c;
    c.mask = Mask::Full, c.nan_to_zero = zero, c.size = 16, c.value_size = 16;
    check_attention(c, sizes({{40, 150}, {17, 31}}, 0.0005));
    check_attention(c, sizes({{40, 150}, {17, 31}}, 0.05));
  }
}

// Which key a row sees; what a mask adds where it does not.
struct Pattern {
  const char* name;
  bool (*sees)(std::int64_t row, std::int64_t key);
  double hidden;
};
const Pattern kPatterns[] = {
    {"causal", [](std::int64_t i, std::int64_t j) { return j <= i; }, -INFINITY},
    {"causal, finite", [](std::int64_t i, std::int64_t j) { return j <= i; }, -1e9},
    {"causal, lowest", [](std::int64_t i, std::int64_t j) { return j <= i; }, -3.4028234663852886e38},
    {"causal, not far", [](std::int64_t i, std::int64_t j) { return j <= i; }, -40},
    {"window", [](std::int64_t i, std::int64_t j) { return j <= i && i - j < 60; }, -INFINITY},
    {"reversed, lowest", [](std::int64_t i, std::int64_t j) { return j >= i; }, -3.4028234663852886e38},
    {"few rows, nothing seen", [](std::int64_t i, std::int64_t) { return i % 7 == 0; }, -INFINITY},
    {"one key", [](std::int64_t, std::int64_t j) { return j == 333; }, -1e30},
};

// Eight heads share a mask, so that blocks of keys which it excludes are left out: what is in them makes no difference but
// where it is no number.
TEST(CompiledAttention, LeavesOutWhatAMaskExcludes) {
  for (const bool softcap : {false, true}) {
    AttentionCase c;
    c.heads = 4, c.group = 2, c.mask = Mask::Full, c.size = 16, c.value_size = 24, c.softcap = softcap;
    const graph::Graph g = weft::testing::attention_graph(c);
    const auto exe = with_kernels(g, 3);
    ASSERT_NE(exe, nullptr);
    for (const Pattern& pattern : kPatterns) {
      for (int odd = 0; odd < (softcap ? 1 : 4); ++odd) {  // nothing, then a value, a key, a query that is no number
        AttentionInputs in;
        in.rows = 150, in.keys = 390, in.scale = odd == 3 ? 10 : 1;
        Tensors inputs = weft::testing::attention_inputs(c, in);
        for (std::int64_t i = 0; i < in.rows * in.keys; ++i) {
          if (!pattern.sees(i / in.keys, i % in.keys)) inputs[3].set_f64(i, pattern.hidden);
          else if (odd == 0) inputs[3].set_f64(i, 0);  // parts that no mask changes
          else if (!std::isfinite(inputs[3].f64(i))) inputs[3].set_f64(i, 0.5);
        }
        if (odd == 1) inputs[2].set_f64(380 * c.value_size + 3, std::nan(""));
        if (odd == 2) inputs[1].set_f64(370 * c.size + 5, INFINITY);
        if (odd == 3) inputs[0].set_f64(17 * c.size + 2, -INFINITY);
        auto want = graph::interpret(g, inputs);
        ASSERT_TRUE(want.ok()) << want.error().what();
        EXPECT_EQ(difference(run(*exe, inputs, 2)[0], (*want)[0], 1e-5), "") << pattern.name << " " << odd << " " << softcap;
      }
    }
  }
  AttentionCase c;
  c.heads = 8, c.mask = Mask::Causal, c.size = 16, c.value_size = 16;
  const auto exe = with_kernels(weft::testing::attention_graph(c), 3);
  ASSERT_NE(exe, nullptr);
  for (const auto& [rows, keys] : {std::pair{1, 5}, {130, 390}, {390, 130}, {257, 257}, {0, 300}, {300, 0}}) {
    AttentionInputs in;
    in.rows = rows, in.keys = keys;
    const Tensors inputs = weft::testing::attention_inputs(c, in);
    auto want = graph::interpret(weft::testing::attention_graph(c), inputs);
    ASSERT_TRUE(want.ok()) << want.error().what();
    EXPECT_EQ(difference(run(*exe, inputs, 2)[0], (*want)[0], 1e-5), "") << rows << " x " << keys;
  }
}

// Blocks of as many keys each, in parts: with and without parts that no mask changes.
TEST(CompiledAttention, LeavesOutPartsOfBlocks) {
  for (const Mask mask : {Mask::Causal, Mask::Full}) {
    for (const auto& [rows, keys] : {std::pair{150, 512}, {512, 384}, {17, 640}, {1, 512}}) {
      AttentionCase c;
      c.rows = std::to_string(rows), c.keys = std::to_string(keys), c.heads = 8, c.mask = mask, c.size = 16, c.value_size = 16;
      const graph::Graph g = weft::testing::attention_graph(c);
      const auto exe = with_kernels(g, 3);
      ASSERT_NE(exe, nullptr);
      for (const bool ahead : {false, true}) {
        AttentionInputs in;
        in.rows = rows, in.keys = keys;
        Tensors inputs = weft::testing::attention_inputs(c, in);
        for (std::int64_t i = 0; mask == Mask::Full && i < in.rows * in.keys; ++i) {
          const bool sees = ahead ? i % keys >= i / keys : i % keys <= i / keys;
          inputs[3].set_f64(i, sees ? i % 1000 == 77 : ahead ? -1e9 : -INFINITY);
        }
        auto want = graph::interpret(g, inputs);
        ASSERT_TRUE(want.ok()) << want.error().what();
        EXPECT_EQ(difference(run(*exe, inputs, 2)[0], (*want)[0], 1e-5), "") << rows << " x " << keys << " " << ahead;
      }
    }
  }
}

TEST(CompiledAttention, SizesKnownWhenCompiling) {
  for (const auto& [rows, keys] : {std::pair{49, 49}, {1, 300}, {20, 600}, {197, 197}}) {
    AttentionCase c;
    c.rows = std::to_string(rows), c.keys = std::to_string(keys), c.size = 32, c.value_size = 32;
    check_attention(c, sizes({{rows, keys}}));
  }
}

struct Errors {
  double most = 0, squares = 0;
  void add(double error) { most = std::max(most, error), squares += error * error; }
};

// Of one head, relative to the sum of |p v|: by plain arithmetic in T.
template <class T>
std::vector<T> plain(const Tensors& in, std::int64_t rows, std::int64_t keys, int size, std::vector<double>* magnitude) {
  std::vector<T> y(rows * size);
  std::vector<T> s(keys);
  for (std::int64_t i = 0; i < rows; ++i) {
    T most = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      s[j] = 0;
      for (int e = 0; e < size; ++e) s[j] += static_cast<T>(in[0].f64(i * size + e)) * static_cast<T>(in[1].f64(j * size + e) * 0.5);
      most = std::max(most, s[j]);
    }
    for (std::int64_t j = 0; j < keys; ++j) sum += s[j] = std::exp(s[j] - most);
    for (int c = 0; c < size; ++c) {
      T total = 0;
      double all = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        total += s[j] / sum * static_cast<T>(in[2].f64(j * size + c));
        all += std::fabs(static_cast<double>(s[j] / sum) * in[2].f64(j * size + c));
      }
      y[i * size + c] = total;
      if (magnitude) magnitude->push_back(all);
    }
  }
  return y;
}

// The precision that `highest` promises: errors at most twice those of plain f32 arithmetic.
TEST(CompiledAttention, AsExactAsPlainArithmetic) {
  AttentionCase c;
  c.heads = 1, c.size = 64, c.value_size = 64;
  const graph::Graph g = weft::testing::attention_graph(c);
  const auto exe = one_kernel(g);
  ASSERT_NE(exe, nullptr);
  const std::int64_t rows = 40, keys = 700;
  for (const double scale : {0.01, 1.0, 10.0}) {
    for (const int values : {0, 1, 2}) {  // normal, of a wide range, large
      AttentionInputs in;
      in.rows = rows, in.keys = keys, in.scale = scale, in.seed = static_cast<unsigned>(scale * 100) + values;
      Tensors inputs = weft::testing::attention_inputs(c, in);
      for (std::int64_t i = 0; values > 0 && i < inputs[2].size(); ++i) {
        const double x = inputs[2].f64(i);
        inputs[2].set_f64(i, values == 1 ? std::copysign(std::exp(6 * x), std::sin(1e3 * x)) : x * 1e30);
      }
      const Tensors got = run(*exe, inputs, 2);
      std::vector<double> magnitude;
      const auto exact = plain<double>(inputs, rows, keys, c.size, &magnitude);
      const auto usual = plain<float>(inputs, rows, keys, c.size, nullptr);
      Errors ours, theirs;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        ours.add(std::fabs(got[0].f64(static_cast<std::int64_t>(i)) - exact[i]) / magnitude[i]);
        theirs.add(std::fabs(usual[i] - exact[i]) / magnitude[i]);
      }
      EXPECT_LE(ours.most, 2 * theirs.most) << "scale " << scale << " values " << values;
      EXPECT_LE(ours.squares, 4 * theirs.squares) << "scale " << scale << " values " << values;
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing
