// Ops whose results are as long as the data say: kernels, and a host step that binds the size.
#include <fmt/format.h>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

// Host steps that do more than bind a size.
int host_steps(const runtime::Plan& plan) {
  int count = 0;
  for (const auto& step : plan.steps) {
    if (const auto* call = std::get_if<runtime::HostCall>(&step)) count += call->op != "bind";
  }
  return count;
}

void check_no_host_steps(const std::string& text, const std::vector<Tensors>& runs) {
  auto exe = executable(text);
  ASSERT_TRUE(exe);
  EXPECT_EQ(host_steps(exe->plan()), 0) << text;
  check(text, runs);
}

TEST(NonZero, AnyRankAndDType) {
  std::mt19937 random(1);
  for (DType t : {DType::Bool, DType::F32, DType::I64, DType::U8, DType::F16, DType::I4, DType::F8E4M3FN}) {
    check_no_host_steps(fmt::format(R"(graph @t(%0 "x": {0}[n, 3, 2], %1 "y": {0}[n]) -> (i64[3, k], i64[1, l]) where n in 0.., k in 0.., l in 0.. {{
      %2 = non_zero %0 {{symbol=[k]}} : i64[3, k]
      %3 = non_zero %1 {{symbol=[l]}} : i64[1, l]
      return %2, %3
    }})",
                              name(t)),
                  {{random_tensor(t, {5, 3, 2}, random), random_tensor(t, {5}, random)},
                   {random_tensor(t, {1, 3, 2}, random), random_tensor(t, {1}, random)},
                   {random_tensor(t, {0, 3, 2}, random), random_tensor(t, {0}, random)},
                   {Tensor::zeros(t, {4, 3, 2}).value(), random_tensor(t, {4}, random)},
                   {random_tensor(t, {700, 3, 2}, random), random_tensor(t, {700}, random)}});
  }
}

TEST(NonZero, WhatFollowsKnowsTheSize) {
  std::mt19937 random(2);
  check_no_host_steps(R"(graph @t(%0 "x": f32[n]) -> (f32[k], f32[]) where n in 0.., k in 0.. {
    %1 = non_zero %0 {symbol=[k]} : i64[1, k]
    %2 = reshape %1 {shape=[k]} : i64[k]
    %3 = gather %0, %2 {axis=0} : f32[k]
    %4 = exp %3 : f32[k]
    %5 = reduce_sum %4 {axes=[0]} : f32[]
    return %4, %5
  })",
                {{random_tensor(DType::F32, {50}, random)}, {random_tensor(DType::F32, {0}, random)}, {random_tensor(DType::F32, {9}, random)}});
}

TEST(Unique, ListsSortedAndNot) {
  std::mt19937 random(3);
  for (DType t : {DType::Bool, DType::F32, DType::I64, DType::U8, DType::F64}) {
    for (bool sorted : {false, true}) {
      const std::string text = fmt::format(R"(graph @t(%0 "x": {0}[n, 2], %1 "y": {0}[n]) -> ({0}[k], i64[k], i64[n*2], i64[k], {0}[l], i64[n]) where n in 0.., k in 0.., l in 0.. {{
        %2, %3, %4, %5 = unique %0 {{symbol=[k], sorted={1}}} : {0}[k], i64[k], i64[n*2], i64[k]
        %6, %7, %8, %9 = unique %1 {{symbol=[l], sorted={1}, axis=0}} : {0}[l], i64[l], i64[n], i64[l]
        return %2, %3, %4, %5, %6, %8
      }})",
                                           name(t), sorted);
      Tensor nans = random_tensor(t, {6, 2}, random);
      if (is_float(t)) {
        for (int i : {1, 4, 5}) nans.set_f64(i, i == 4 ? -std::nan("") : std::nan(""));
      }
      check_no_host_steps(text, {{random_tensor(t, {40, 2}, random), random_tensor(t, {40}, random)},
                           {random_tensor(t, {0, 2}, random), random_tensor(t, {0}, random)},
                           {nans, random_tensor(t, {6}, random)},
                           {random_tensor(t, {1, 2}, random), random_tensor(t, {1}, random)}});
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing
