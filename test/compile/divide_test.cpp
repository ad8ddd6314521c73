// Plans whose kernels are divided between a device and this process.
#include <gmock/gmock.h>

#include "compile/support.h"
#include "kernel/kernel.h"
#include "runtime/residency.h"
#include "target/target.h"

namespace weft::compiler::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using runtime::Launch;
using OnDevice = std::function<bool(const loop::Group&)>;

// A product, a softmax and a sum, none of which fuses into another.
const char* kChain = R"(graph @chain(%0 "x": f32[n, 40], %1 "w": f32[40, 24]) -> (f32[n, 24], f32[24]) where n in 0.. {
  %2 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 24]
  %3 = cum_sum %2 {axis=0, exclusive=false, reverse=false} : f32[n, 24]
  %4 = cum_sum %3 {axis=1, exclusive=false, reverse=false} : f32[n, 24]
  %5 = reduce_sum %4 {axes=[0]} : f32[24]
  return %4, %5
})";

Compiled compiled(const std::string& text, std::shared_ptr<const target::Target> device, OnDevice on_device) {
  Options options;
  options.target = std::move(device);
  options.cpu_too = true;
  options.on_device = std::move(on_device);
  options.cache = false;
  options.jobs = 1;
  auto made = compile(parsed(text), options);
  EXPECT_TRUE(made.ok()) << made.error().what();
  return std::move(*made);
}

std::vector<bool> places(const runtime::Plan& plan) {
  std::vector<bool> on_device;
  for (const auto& step : plan.steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) on_device.push_back(launch->on_device);
  }
  return on_device;
}

Tensors inputs(std::int64_t n, std::mt19937& random) {
  return {random_tensor(DType::F32, {n, 40}, random), random_tensor(DType::F32, {40, 24}, random)};
}

// One way of dividing for each set of kernels.
TEST(Divide, AnyDivisionGivesTheSame) {
  const auto sim = target::open("sim:opencl").value();
  const std::size_t kernels = places(*compiled(kChain, sim, [](const loop::Group&) { return true; }).plan).size();
  ASSERT_GE(kernels, 3u);
  for (unsigned choice = 0; choice < 1u << kernels; ++choice) {
    unsigned next = 0;
    const Compiled made = compiled(kChain, sim, [&](const loop::Group&) { return (choice >> next++ & 1u) != 0; });
    const std::vector<bool> at = places(*made.plan);
    for (std::size_t k = 0; k < kernels; ++k) EXPECT_EQ(at[k], (choice >> k & 1u) != 0);
    const runtime::Executable exe(made.plan);
    std::mt19937 random(1);
    for (const std::int64_t n : {3, 0, 1, 70, 3}) {
      const Tensors given = inputs(n, random);
      expect_same(run(exe, given), graph::interpret(parsed(kChain), given).value());
    }
  }
}

TEST(Divide, CopiesStandInThePlan) {
  int number = 0;
  const Compiled made = compiled(kChain, target::open("sim:opencl").value(), [&](const loop::Group&) { return number++ == 1; });
  const auto copies = runtime::transfers(*made.plan);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_TRUE(copies[0].to_device);
  EXPECT_EQ(copies[0].step, 1u);
  EXPECT_FALSE(copies[1].to_device);
  EXPECT_EQ(copies[1].step, 2u);
  EXPECT_THAT(runtime::print(*made.plan), AllOf(HasSubstr("upload s"), HasSubstr("launch on device (s"), HasSubstr("download s"),
                                                HasSubstr("# device: modelled "), HasSubstr("1 of ")));
}

// A device that takes no products.
class Picky final : public target::Target {
 public:
  const Machine& machine() const override { return sim_->machine(); }
  std::shared_ptr<runtime::Device> device() const override { return sim_->device(); }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return sim_->print(kernels); }
  Result<void> takes(const kernel::Function& f) const override {
    if (f.name.find("dot") == std::string::npos) return {};
    return unsupported("op", "products on this device");
  }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    for (const kernel::Function& f : kernels) WEFT_TRY(takes(f));
    return sim_->build(kernels);
  }

 private:
  std::shared_ptr<const target::Target> sim_ = target::open("sim:opencl").value();
};

TEST(Divide, WhatTheDeviceDoesNotTakeRunsHere) {
  const Compiled made = compiled(kChain, std::make_shared<Picky>(), [](const loop::Group&) { return true; });
  const std::vector<bool> at = places(*made.plan);
  EXPECT_FALSE(at[0]);
  EXPECT_TRUE(at[1]);
  EXPECT_THAT(made.plan->infos[0].place_why, HasSubstr("products on this device"));
  std::mt19937 random(2);
  const Tensors given = inputs(9, random);
  expect_same(run(runtime::Executable(made.plan), given), graph::interpret(parsed(kChain), given).value());
}

TEST(Divide, WhatADeviceAloneLacksIsListedAtOnce) {
  Options options;
  options.target = std::make_shared<Picky>();
  options.cache = false;
  const std::string text = R"(graph @t(%0 "x": f32[8, 8], %1 "y": f32[8, 4]) -> (f32[8, 8], f32[8, 4]) {
    %2 = dot %0, %0 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[8, 8]
    %3 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[8, 4]
    return %2, %3
  })";
  for (const bool code : {true, false}) {
    options.code = code;
    const auto made = compile(parsed(text), options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().kind(), ErrorKind::Unsupported);
    EXPECT_THAT(made.error().what(), AllOf(HasSubstr("unsupported-by-target"), HasSubstr("products on this device: 2 kernels"), HasSubstr("'+cpu'")));
  }
}

// The fault comes first, though what is here finds one too.
TEST(Divide, AFailedCheckOnTheDeviceIsToldFirst) {
  const std::string text = R"(graph @t(%0 "x": f32[6], %1 "i": i64[2], %2 "j": i64[2]) -> (f32[2]) {
    %3 = gather %0, %1 {axis=0} : f32[2]
    %4 = cum_sum %3 {axis=0, exclusive=false, reverse=false} : f32[2]
    %5 = gather %4, %2 {axis=0} : f32[2]
    %6 = cum_sum %5 {axis=0, exclusive=true, reverse=true} : f32[2]
    return %6
  })";
  int number = 0;
  const Compiled made = compiled(text, target::open("sim:opencl").value(), [&](const loop::Group&) { return number++ == 0; });
  const runtime::Executable exe(made.plan);
  Tensors outputs;
  const auto bad = [&](std::int64_t i, std::int64_t j) {
    const auto status = exe.run({f32({6}, {1, 2, 3, 4, 5, 6}), i64({2}, {0, static_cast<double>(i)}), i64({2}, {1, static_cast<double>(j)})}, outputs);
    return status.ok() ? std::string() : std::string(status.error().what());
  };
  EXPECT_EQ(bad(5, 1), "");
  EXPECT_THAT(bad(6, 1), HasSubstr("index-out-of-range"));
  EXPECT_THAT(bad(5, 2), HasSubstr("index-out-of-range"));
  EXPECT_EQ(bad(6, 2), bad(6, 1));
}

TEST(Divide, BodiesOfLoopsAreDividedToo) {
  const std::string text = R"(graph @t(%0 "x": f32[n], %1 "go": bool[]) -> (f32[n]) where n in 0.. {
    %2 = exp %0 : f32[n]
    %3 = if %1, %2 : f32[n] regions {
      graph @then(%0: f32[n]) -> (f32[n]) { return %0 }
      graph @else(%0: f32[n]) -> (f32[n]) {
        %1 = cum_sum %0 {axis=0, exclusive=false, reverse=false} : f32[n]
        %2 = cum_sum %1 {axis=0, exclusive=false, reverse=true} : f32[n]
        return %2
      }
    }
    %4 = add %3, %2 : f32[n]
    return %4
  })";
  for (unsigned odd : {0u, 1u}) {
    unsigned number = odd;
    const Compiled made = compiled(text, target::open("sim:opencl").value(), [&](const loop::Group&) { return number++ % 2 == 0; });
    const runtime::Executable exe(made.plan);
    for (const double go : {0.0, 1.0}) {
      const Tensors given{f32({5}, {1, 2, 3, 0, -1}), tensor(DType::Bool, {}, {go})};
      expect_same(run(exe, given), graph::interpret(parsed(text), given).value());
    }
  }
}

TEST(Divide, TheCostModelChoosesByItself) {
  const Compiled made = compiled(kChain, target::open("sim:sm_90a").value(), nullptr);
  EXPECT_THAT(made.plan->placement, AllOf(HasSubstr(" kernels on sm_90a, "), HasSubstr("; all there "), HasSubstr("; all on the CPU ")));
  std::mt19937 random(3);
  const Tensors given = inputs(5, random);
  expect_same(run(runtime::Executable(made.plan), given), graph::interpret(parsed(kChain), given).value());
}

TEST(Places, AreADeviceAndTheCpu) {
  EXPECT_TRUE(target::open_places("cpu")->cpu);
  EXPECT_EQ(target::open_places("cpu")->device, nullptr);
  for (const char* both : {"sim:opencl+cpu", "cpu+sim:opencl"}) {
    EXPECT_TRUE(target::open_places(both)->cpu);
    EXPECT_NE(target::open_places(both)->device, nullptr);
  }
  EXPECT_FALSE(target::open_places("sim:opencl")->cpu);
  for (const char* wrong : {"", "+", "cpu+", "cpu+cpu", "sim:opencl+sim:sm_90a", "sim:opencl+cpu+cpu", "gpu+cpu"}) {
    EXPECT_FALSE(target::open_places(wrong).ok()) << wrong;
  }
  EXPECT_THAT(target::open_places("sim:opencl+sim:sm_90a").error().what(), HasSubstr("one device, or on it and the CPU"));
}

}  // namespace
}  // namespace weft::compiler::testing
