// Floats of at most 8 bits and packed integers as kernels: every code, every conversion, arithmetic and movement.
#include <fmt/format.h>

#include <limits>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

const DType kFloats[] = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1};
const DType kPacked[] = {DType::I2, DType::I4, DType::U2, DType::U4};

void check_kernels(const std::string& text, const std::vector<Tensors>& runs) {
  auto exe = executable(text);
  ASSERT_TRUE(exe);
  for (const auto& step : exe->plan().steps) EXPECT_FALSE(std::holds_alternative<runtime::HostCall>(step)) << text;
  const graph::Graph graph = parsed(text);
  for (const Tensors& inputs : runs) {
    auto want = graph::interpret(graph, inputs);
    ASSERT_TRUE(want.ok()) << want.error().what();
    Tensors got = run(*exe, inputs);
    ASSERT_EQ(got.size(), want->size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(difference(got[i], (*want)[i], 1e-6), "") << "output " << i << "\n" << text;
  }
}

// All codes of a dtype, in bytes.
Tensor all_codes(DType t, std::int64_t n) {
  Tensor x = Tensor::zeros(t, {n}).value();
  auto* bytes = static_cast<std::uint8_t*>(x.mutable_data());
  for (std::size_t i = 0; i < x.byte_size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  if (bits(t) < 8 && n % (8 / bits(t)) != 0) bytes[x.byte_size() - 1] &= 3;  // what is beyond the end is 0
  return x;
}

// Every narrow value, the ties between neighbours, and a little to both sides; what overflows and underflows.
Tensor near_values(DType source, DType t) {
  std::vector<double> values{0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), 6e-39, 9e-39};
  double before = 0;
  for (int code = 0; code < (1 << (bits(t) - 1)); ++code) {
    const double v = decode_float(t, static_cast<std::uint64_t>(code));
    if (!std::isfinite(v)) continue;
    for (double x : {v, (v + before) / 2, v * 1.25}) {
      for (double at : {x, x * (1 + 1e-6), x * (1 - 1e-6), x * (1 + 1e-12), x * (1 - 1e-12)}) {
        values.push_back(at);
        values.push_back(-at);
      }
    }
    before = v;
  }
  Tensor x = Tensor::zeros(source, {static_cast<std::int64_t>(values.size())}).value();
  for (std::size_t i = 0; i < values.size(); ++i) x.set_f64(static_cast<std::int64_t>(i), values[i]);
  return x;
}

TEST(NarrowFloats, EveryCodeAndEveryRounding) {
  for (DType t : kFloats) {
    check_kernels(fmt::format(R"(graph @t(%0 "x": {0}[n], %1 "a": f32[m], %2 "b": f64[k], %3 "c": i64[l]) -> (f32[n], {0}[m], {0}[m], {0}[k], {0}[l], f16[n], i32[n], bool[n]) where n in 0.., m in 0.., k in 0.., l in 0.. {{
      %4 = cast %0 {{dtype=f32}} : f32[n]
      %5 = cast %1 {{dtype={0}, saturate=true}} : {0}[m]
      %6 = cast %1 {{dtype={0}, saturate=false}} : {0}[m]
      %7 = cast %2 {{dtype={0}, saturate=false}} : {0}[k]
      %8 = cast %3 {{dtype={0}, saturate=true}} : {0}[l]
      %9 = cast %0 {{dtype=f16}} : f16[n]
      %10 = cast %0 {{dtype=i32}} : i32[n]
      %11 = cast %0 {{dtype=bool}} : bool[n]
      return %4, %5, %6, %7, %8, %9, %10, %11
    }})",
                              name(t)),
                  {{all_codes(t, 256), near_values(DType::F32, t), near_values(DType::F64, t),
                    i64({10}, {0, 1, -1, 3, 5, 100, 460, 500, 1e18, 3458764513820540927.0})},
                   {all_codes(t, 5), f32({1}, {3}), tensor(DType::F64, {0}, {}), i64({3}, {6, 7, 8})}});
  }
}

TEST(NarrowFloats, ArithmeticRoundsAtEachOp) {
  std::mt19937 random(1);
  for (DType t : kFloats) {
    check_kernels(fmt::format(R"(graph @t(%0 "x": {0}[n, 6], %1 "y": {0}[n, 6]) -> ({0}[n, 6], {0}[n], {0}[6, n], {0}[n, 12], bool[n, 6], {0}[n, 2], i64[n, 2], {0}[n, 6]) where n in 0.. {{
      %2 = add %0, %1 : {0}[n, 6]
      %3 = mul %2, %1 : {0}[n, 6]
      %4 = reduce_sum %0 {{axes=[1]}} : {0}[n]
      %5 = transpose %0 {{axes=[1, 0]}} : {0}[6, n]
      %6 = concat %0, %3 {{axis=1}} : {0}[n, 12]
      %7 = lt %0, %1 : bool[n, 6]
      %8, %9 = top_k %0 {{axis=1, k=[2], descending=true}} : {0}[n, 2], i64[n, 2]
      %10 = cum_sum %0 {{axis=1, exclusive=false, reverse=false}} : {0}[n, 6]
      return %3, %4, %5, %6, %7, %8, %9, %10
    }})",
                              name(t)),
                  {{random_tensor(t, {4, 6}, random), random_tensor(t, {4, 6}, random)},
                   {random_tensor(t, {1, 6}, random), random_tensor(t, {1, 6}, random)},
                   {random_tensor(t, {0, 6}, random), random_tensor(t, {0, 6}, random)}});
  }
}

TEST(PackedIntegers, ConversionsBothWays) {
  for (DType t : kPacked) {
    check_kernels(fmt::format(R"(graph @t(%0 "x": {0}[n], %1 "a": f32[m], %2 "b": i32[m]) -> (f32[n], {0}[m], {0}[m], i64[n], {0}[n]) where n in 0.., m in 0.. {{
      %3 = cast %0 {{dtype=f32}} : f32[n]
      %4 = cast %1 {{dtype={0}}} : {0}[m]
      %5 = cast %2 {{dtype={0}}} : {0}[m]
      %6 = cast %0 {{dtype=i64}} : i64[n]
      %7 = reverse %0 {{axes=[0]}} : {0}[n]
      return %3, %4, %5, %6, %7
    }})",
                              name(t)),
                  {{all_codes(t, 512), f32({9}, {-100, -8.5, -2, -1, 0.4, 1.9, 7.9, 300, std::nan("")}), tensor(DType::I32, {9}, {-100, -9, -8, -1, 0, 1, 7, 8, 300})},
                   {all_codes(t, 1), f32({1}, {1}), tensor(DType::I32, {1}, {3})},
                   {all_codes(t, 7), f32({0}, {}), tensor(DType::I32, {0}, {})}});
  }
}

TEST(PackedIntegers, ArithmeticAndMovement) {
  std::mt19937 random(2);
  for (DType t : {DType::I4, DType::U2}) {
    for (int width : bits(t) == 4 ? std::vector<int>{5, 8} : std::vector<int>{5}) {
      const std::string s = fmt::format("{}[n, {}]", name(t), width);
      const std::string text = fmt::format(R"(graph @t(%0 "x": {1}, %1 "y": {1}, %2 "at": i64[5]) -> ({1}, {1}, {1}, {0}[{2}, n], {0}[5, {2}], {0}[n], {1}, {1}, i64[n], bool[n, {2}], {0}[n, {3}]) where n in 0.. {{
        %3 = add %0, %1 : {1}
        %4 = mul %3, %1 : {1}
        %5 = div %0, %1 : {1}
        %6 = shr %0, %1 : {1}
        %7 = transpose %4 {{axes=[1, 0]}} : {0}[{2}, n]
        %8 = gather %0, %2 {{axis=0}} : {0}[5, {2}]
        %9 = reduce_sum %0 {{axes=[1]}} : {0}[n]
        %10, %11 = sort %0 {{axis=1, descending=false}} : {1}, i64[n, {2}]
        %12 = cum_sum %0 {{axis=0, exclusive=false, reverse=false}} : {1}
        %13 = arg_max %0 {{axis=1, last=false}} : i64[n]
        %14 = le %0, %1 : bool[n, {2}]
        %15 = slice %0 {{starts=[0, 1], sizes=[n, {3}], steps=[1, 1]}} : {0}[n, {3}]
        return %4, %5, %6, %7, %8, %9, %10, %12, %13, %14, %15
      }})",
                                           name(t), s, width, width - 1);
      check_kernels(text, {{random_tensor(t, {5, width}, random), random_tensor(t, {5, width}, random), i64({5}, {0, 4, -1, 2, 2})},
                           {random_tensor(t, {1, width}, random), random_tensor(t, {1, width}, random), i64({5}, {0, 0, -1, 0, 0})}});
    }
  }
}

// The end of the dtype's own range, not of the wider one that kernels compute with.
TEST(NarrowFloats, LargestAndLeastOfNothing) {
  for (DType t : {DType::F8E4M3FN, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0, DType::I4, DType::U4, DType::I2}) {
    check(fmt::format(R"(graph @t(%0 "x": {0}[n, m]) -> ({0}[n], {0}[n], {0}[n, m]) where n in 0.., m in 0.. {{
      %1 = reduce_max %0 {{axes=[1]}} : {0}[n]
      %2 = reduce_min %0 {{axes=[1]}} : {0}[n]
      %3 = cum_max %0 {{axis=1, exclusive=true, reverse=false}} : {0}[n, m]
      return %1, %2, %3
    }})", name(t)),
          {{Tensor::zeros(t, {3, 0}).value()}, {Tensor::zeros(t, {3, 2}).value()}});
  }
}

}  // namespace
}  // namespace weft::compiler::testing
