// Sort and top-k as kernels: every method, dtype and axis against the interpreter, with ties, NaN, infinities and both
// zeros.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

// Few different values, so that there are ties, with those that are hard to order among them.
Tensor hard_values(DType t, Sizes shape, std::mt19937& random, int different = 40) {
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, inf, -inf, std::nan(""), -std::nan(""), 1e-40, -1e-40, 65504, -65504};
  Tensor x = Tensor::zeros(t, std::move(shape)).value();
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const int v = static_cast<int>(random() % different) - different / 2;
    if (is_float(t)) {
      x.set_f64(i, random() % 8 == 0 ? special[random() % 10] : v * 0.37);
    } else if (random() % 8 == 0 && !is_bool(t)) {
      const std::int64_t edge[] = {0, -1, INT64_MIN, INT64_MAX, 128, 255};
      x.set_i64(i, edge[random() % 6]);
    } else {
      x.set_i64(i, is_bool(t) ? v & 1 : v);
    }
  }
  return x;
}

// Bits, so that the sign of zeros counts; NaNs are alike.
void expect_identical(const Tensors& got, const Tensors& want, const std::string& about) {
  expect_same(got, want, about);
  for (std::size_t i = 0; i < want.size() && got.size() == want.size(); ++i) {
    if (!is_float(want[i].dtype())) continue;
    for (std::int64_t e = 0; e < want[i].size(); ++e) {
      ASSERT_EQ(std::signbit(got[i].f64(e)) && !std::isnan(got[i].f64(e)), std::signbit(want[i].f64(e)) && !std::isnan(want[i].f64(e))) << about;
    }
  }
}

void check_identical(const std::string& text, const std::vector<Tensors>& runs, int threads = 1) {
  auto exe = executable(text);
  ASSERT_TRUE(exe);
  for (const auto& step : exe->plan().steps) EXPECT_FALSE(std::holds_alternative<runtime::HostCall>(step)) << text;
  const graph::Graph graph = parsed(text);
  for (const Tensors& inputs : runs) {
    auto want = graph::interpret(graph, inputs);
    ASSERT_TRUE(want.ok()) << want.error().what();
    expect_identical(run(*exe, inputs, threads), *want, text);
  }
}

std::string sort_text(DType t, bool descending) {
  return fmt::format(R"(graph @t(%0 "x": {0}[a, b]) -> ({0}[a, b], i64[a, b], {0}[a, b], i64[a, b]) where a in 0.., b in 0.. {{
    %1, %2 = sort %0 {{axis=1, descending={1}}} : {0}[a, b], i64[a, b]
    %3, %4 = sort %0 {{axis=0, descending={1}}} : {0}[a, b], i64[a, b]
    return %1, %2, %3, %4
  }})",
                     name(t), descending);
}

const DType kTypes[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16, DType::U16,  DType::I32, DType::U32,
                        DType::I64,  DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64};

TEST(Sort, EveryDTypeAndAxisAtAnyLength) {
  std::mt19937 random(1);
  for (DType t : kTypes) {
    for (bool descending : {false, true}) {
      std::vector<Tensors> runs;
      for (Sizes shape : {Sizes{3, 50}, {1, 1}, {0, 4}, {4, 0}, {2, 300}, {301, 2}}) {
        runs.push_back({hard_values(t, shape, random)});
      }
      check_identical(sort_text(t, descending), runs);
    }
  }
}

TEST(Sort, ShortRowsAreCounted) {
  std::mt19937 random(2);
  for (DType t : {DType::F32, DType::I64, DType::F16, DType::Bool}) {
    for (int n : {1, 2, 7, 8, 33, 100}) {
      check_identical(fmt::format(R"(graph @t(%0 "x": {0}[a, {1}]) -> ({0}[a, {1}], i64[a, {1}]) where a in 0.. {{
        %1, %2 = sort %0 {{axis=1, descending=true}} : {0}[a, {1}], i64[a, {1}]
        return %1, %2
      }})",
                                  name(t), n),
                      {{hard_values(t, {5, n}, random)}, {hard_values(t, {1, n}, random)}, {hard_values(t, {0, n}, random)}});
    }
  }
}

TEST(Sort, LongRowsAreCutIntoBlocks) {
  std::mt19937 random(3);
  for (DType t : {DType::F32, DType::I64, DType::U8}) {
    for (const char* n : {"100003", "n"}) {
      const std::string text = fmt::format(R"(graph @t(%0 "x": {0}[{1}]) -> ({0}[{1}], i64[{1}]) {2} {{
        %1, %2 = sort %0 {{axis=0, descending=false}} : {0}[{1}], i64[{1}]
        return %1, %2
      }})",
                                           name(t), n, std::string(n) == "n" ? "where n in 0.." : "");
      std::vector<Tensors> runs{{hard_values(t, {100003}, random, 100000)}};
      if (std::string(n) == "n") {
        for (int size : {0, 1, 7, 1000}) runs.push_back({hard_values(t, {size}, random)});
      }
      check_identical(text, runs, 3);
    }
  }
}

TEST(TopK, FewOfManyAreSelected) {
  std::mt19937 random(4);
  for (DType t : kTypes) {
    for (int k : {0, 1, 5, 300}) {
      for (bool descending : {false, true}) {
        check_identical(fmt::format(R"(graph @t(%0 "x": {0}[a, 8400, 2]) -> ({0}[a, {1}, 2], i64[a, {1}, 2]) where a in 0.. {{
          %1, %2 = top_k %0 {{axis=1, k=[{1}], descending={2}}} : {0}[a, {1}, 2], i64[a, {1}, 2]
          return %1, %2
        }})",
                                    name(t), k, descending),
                        {{hard_values(t, {2, 8400, 2}, random, k == 5 ? 5 : 5000)}});
      }
    }
  }
}

TEST(Sort, OfNothing) {
  check_identical(R"(graph @t(%0 "x": f32[2, 0, 5]) -> (f32[2, 0, 5], i64[2, 0, 5]) {
    %1, %2 = sort %0 {axis=2, descending=false} : f32[2, 0, 5], i64[2, 0, 5]
    return %1, %2
  })",
                  {{f32({2, 0, 5}, {})}});
}

TEST(TopK, SymbolicSizes) {
  std::mt19937 random(5);
  const char* text = R"(graph @t(%0 "x": f32[a, n]) -> (f32[a, 3], i64[a, 3]) where a in 0.., n in 0.. {
    %1 = tanh %0 : f32[a, n]
    %2, %3 = top_k %1 {axis=1, k=[3], descending=true} : f32[a, 3], i64[a, 3]  # node "/top" op "TopK"
    return %2, %3
  })";
  check_identical(text, {{hard_values(DType::F32, {4, 3}, random)},
                         {hard_values(DType::F32, {1, 10}, random)},
                         {hard_values(DType::F32, {6, 1000}, random)},
                         {hard_values(DType::F32, {0, 5}, random)}});
  auto exe = executable(text);
  for (int n : {0, 1, 2}) {
    Tensors outputs;
    auto status = exe->run({hard_values(DType::F32, {2, n}, random)}, outputs);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(std::string(status.error().what()).find("/top"), std::string::npos) << status.error().what();
  }
}

}  // namespace
}  // namespace weft::compiler::testing
