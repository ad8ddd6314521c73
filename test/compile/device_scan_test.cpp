// Scans whose bodies are launches on a device: values stay there from one iteration to the next, wherever their rows begin.
#include <gmock/gmock.h>

#include "compile/support.h"
#include "runtime/residency.h"
#include "target/target.h"

namespace weft::compiler::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is handed on is also a row of the first results; masks are rows of one byte; the last results are of odd rows.
const char* kScan = R"(graph @t(%0 "h": f32[b, 4], %1 "x": f32[n, b, 4], %2 "m": bool[n, b], %3 "w": f32[4, 4]) -> (f32[b, 4], f32[b], f32[n, b, 4], f32[n, b])
    where n in 0.., b in 1..9 {
  %4 = reduce_sum %0 {axes=[1]} : f32[b]
  %5, %6, %7, %8 = scan %0, %4, %1, %2, %3 {carried=2, xs=2} : f32[b, 4], f32[b], f32[n, b, 4], f32[n, b] regions {
    graph @step(%0: f32[b, 4], %1: f32[b], %2: f32[b, 4], %3: bool[b], %4: f32[4, 4]) {
      %5 = dot %0, %4 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[b, 4]
      %6 = add %5, %2 : f32[b, 4]
      %7 = tanh %6 : f32[b, 4]
      %8 = reduce_sum %7 {axes=[1]} : f32[b]
      %9 = add %8, %1 : f32[b]
      %10 = select %3, %9, %1 : f32[b]
      return %7, %10, %7, %9
    }
  }
  %11 = add %7, %1 : f32[n, b, 4]
  return %5, %6, %11, %8
})";

Tensors inputs(std::int64_t n, std::int64_t b, std::mt19937& random) {
  return {random_tensor(DType::F32, {b, 4}, random), random_tensor(DType::F32, {n, b, 4}, random), random_tensor(DType::Bool, {n, b}, random),
          random_tensor(DType::F32, {4, 4}, random)};
}

// Of the plan's only scan.
std::optional<std::vector<int>> staying(const runtime::Plan& plan) {
  for (const auto& step : plan.steps) {
    if (const auto* scan = std::get_if<runtime::ScanStep>(&step)) return runtime::staying(*scan);
  }
  ADD_FAILURE() << "there is no scan in\n" << runtime::print(plan);
  return std::nullopt;
}

TEST(DeviceScan, ValuesStay) {
  for (const char* name : {"sim:opencl", "sim:sm_80"}) {
    const auto exe = executable(parsed(kScan), target::open(name).value());
    const auto copies = staying(exe->plan());
    ASSERT_TRUE(copies.has_value()) << runtime::print(exe->plan());
    EXPECT_EQ(*copies, (std::vector<int>{0, -1}));
    EXPECT_THAT(runtime::print(exe->plan()), Not(HasSubstr("      upload")));  // inside the scan
    std::mt19937 random(1);
    for (const std::int64_t n : {3, 0, 1, 2, 17}) {
      for (const std::int64_t b : {1, 4, 9}) {
        const Tensors in = inputs(n, b, random);
        expect_same(run(*exe, in), graph::interpret(parsed(kScan), in).value());
      }
    }
  }
}

TEST(DeviceScan, AFailedCheckOfAnyIterationIsSeen) {
  const graph::Graph graph = parsed(R"(graph @t(%0 "h": f32[4], %1 "at": i64[n], %2 "table": f32[5, 4]) -> (f32[4]) where n in 0.. {
    %3 = scan %0, %1, %2 {carried=1, xs=1} : f32[4] regions {
      graph @step(%0: f32[4], %1: i64[], %2: f32[5, 4]) {
        %3 = reshape %1 {shape=[1]} : i64[1]
        %4 = gather_nd %2, %3 {batch=0} : f32[4]
        %5 = add %0, %4 : f32[4]
        return %5
      }
    }
    return %3
  })");
  const auto exe = executable(graph, target::open("sim:opencl").value());
  ASSERT_TRUE(staying(exe->plan()).has_value()) << runtime::print(exe->plan());
  std::mt19937 random(1);
  const Tensor h = random_tensor(DType::F32, {4}, random), table = random_tensor(DType::F32, {5, 4}, random);
  for (const double wrong : {7.0, 1.0}) {  // and the next run is as if nothing had been
    Tensors outputs;
    const Tensors in{h, i64({4}, {0, wrong, 4, 2}), table};
    const auto status = exe->run(in, outputs);
    if (wrong == 1.0) {
      ASSERT_TRUE(status.ok()) << status.error().what();
      expect_same(outputs, graph::interpret(graph, in).value());
    } else {
      ASSERT_FALSE(status.ok());
      EXPECT_THAT(status.error().what(), HasSubstr("index-out-of-range"));
    }
  }
}

// What comes out as it came in is copied by the host.
TEST(DeviceScan, OthersGoByTheHost) {
  const graph::Graph graph = parsed(R"(graph @t(%0 "a": f32[4], %1 "b": f32[4], %2 "x": f32[n, 4]) -> (f32[4], f32[4], f32[n, 4]) where n in 0.. {
    %3, %4, %5 = scan %0, %1, %2 {carried=2, xs=1} : f32[4], f32[4], f32[n, 4] regions {
      graph @step(%0: f32[4], %1: f32[4], %2: f32[4]) {
        %3 = add %0, %2 : f32[4]
        return %1, %3, %3
      }
    }
    return %3, %4, %5
  })");
  const auto exe = executable(graph, target::open("sim:opencl").value());
  EXPECT_FALSE(staying(exe->plan()).has_value());
  std::mt19937 random(1);
  for (const std::int64_t n : {0, 1, 5}) {
    const Tensors in{random_tensor(DType::F32, {4}, random), random_tensor(DType::F32, {4}, random), random_tensor(DType::F32, {n, 4}, random)};
    expect_same(run(*exe, in), graph::interpret(graph, in).value());
  }
}

}  // namespace
}  // namespace weft::compiler::testing
