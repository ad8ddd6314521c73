// Complex numbers as kernels: what moves them, what computes with them, what stays on the host.
#include <complex>

#include <fmt/format.h>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

template <class R>
Tensor random_complex(DType t, Sizes shape, std::mt19937& random) {
  Tensor x = Tensor::zeros(t, std::move(shape)).value();
  auto* parts = static_cast<R*>(x.mutable_data());
  for (std::int64_t i = 0; i < 2 * x.size(); ++i) parts[i] = static_cast<R>(static_cast<int>(random() % 17) - 8) / 4;
  return x;
}

template <class R>
std::string complex_difference(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) return "another type";
  const auto *a = static_cast<const R*>(got.data()), *b = static_cast<const R*>(want.data());
  for (std::int64_t i = 0; i < 2 * want.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || std::fabs(a[i] - b[i]) <= 1e-5 * std::fabs(b[i]);
    if (!same) return fmt::format("part {} is {} instead of {}", i, a[i], b[i]);
  }
  return "";
}

template <class R>
void check_complex(const std::string& text, const std::vector<Tensors>& runs, int host) {
  auto exe = executable(text);
  ASSERT_TRUE(exe);
  int found = 0;
  for (const auto& step : exe->plan().steps) found += std::holds_alternative<runtime::HostCall>(step);
  EXPECT_EQ(found, host) << text;
  const graph::Graph graph = parsed(text);
  for (const Tensors& inputs : runs) {
    auto want = graph::interpret(graph, inputs);
    ASSERT_TRUE(want.ok()) << want.error().what();
    Tensors got = run(*exe, inputs);
    for (std::size_t i = 0; i < want->size(); ++i) {
      const bool pairs = is_complex((*want)[i].dtype());
      EXPECT_EQ(pairs ? complex_difference<R>(got[i], (*want)[i]) : difference(got[i], (*want)[i]), "") << "output " << i << "\n" << text;
    }
  }
}

template <class R>
void check_all(DType t) {
  std::mt19937 random(1);
  const std::string text = fmt::format(R"(graph @t(%0 "x": {0}[n, 3], %1 "y": {0}[n, 3], %2 "r": f32[n, 3], %3 "at": i64[2]) -> ({0}[n, 3], {0}[n, 3], {0}[n, 3], {0}[n, 3], bool[n, 3], {0}[3, n], {0}[2, 3], {0}[n, 6], {0}[n, 3], {0}[n, 5], {0}[n]) where n in 1.. {{
    %4 = add %0, %1 : {0}[n, 3]
    %5 = mul %4, %1 : {0}[n, 3]
    %6 = div %0, %1 : {0}[n, 3]
    %7 = abs %6 : {0}[n, 3]
    %8 = cast %2 {{dtype={0}}} : {0}[n, 3]
    %9 = sub %8, %0 : {0}[n, 3]
    %10 = ne %0, %1 : bool[n, 3]
    %11 = transpose %5 {{axes=[1, 0]}} : {0}[3, n]
    %12 = gather %0, %3 {{axis=0}} : {0}[2, 3]
    %13 = concat %0, %1 {{axis=1}} : {0}[n, 6]
    %14 = select %10, %0, %9 : {0}[n, 3]
    %15 = slice %0 {{starts=[0, 0], sizes=[1, 1], steps=[1, 1]}} : {0}[1, 1]
    %16 = reshape %15 {{shape=[]}} : {0}[]
    %17 = pad %0, %16 {{lo=[0, 1], hi=[0, 1], mode="constant"}} : {0}[n, 5]
    %18 = reduce_sum %0 {{axes=[1]}} : {0}[n]
    return %5, %6, %7, %9, %10, %11, %12, %13, %14, %17, %18
  }})",
                                       name(t));
  std::vector<Tensors> runs;
  for (std::int64_t n : {1, 6, 40}) {
    Tensor y = random_complex<R>(t, {n, 3}, random);
    for (std::int64_t i = 0; i < y.size(); ++i) static_cast<R*>(y.mutable_data())[2 * i] += R(0.1);  // no zeros
    runs.push_back({random_complex<R>(t, {n, 3}, random), y, random_tensor(DType::F32, {n, 3}, random), i64({2}, {0, -1})});
  }
  check_complex<R>(text, runs, 1);  // the sum
}

TEST(Complex, C64) { check_all<float>(DType::C64); }
TEST(Complex, C128) { check_all<double>(DType::C128); }

TEST(Complex, DividesByZeroAsC) {
  Tensor x = Tensor::zeros(DType::C64, {4}).value(), y = Tensor::zeros(DType::C64, {4}).value();
  const float tops[] = {1, 2, -1, 0, 0, 0, 3, -4}, zeros[] = {0, 0, -0.0F, 0, 0, -0.0F, -0.0F, -0.0F};
  for (int i = 0; i < 8; ++i) static_cast<float*>(x.mutable_data())[i] = tops[i], static_cast<float*>(y.mutable_data())[i] = zeros[i];
  check_complex<float>("graph @t(%0 \"x\": c64[n], %1 \"y\": c64[n]) -> (c64[n]) where n in 0.. {\n  %2 = div %0, %1 : c64[n]\n  return %2\n}",
                       {{x, y}}, 0);
}

}  // namespace
}  // namespace weft::compiler::testing
