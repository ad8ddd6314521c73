// Code that is made quickly at first, and well once runs have asked for it often enough: nothing but its speed changes.
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/knobs.h"
#include "compile/code.h"
#include "compile/support.h"
#include "compile/worker.h"

namespace weft::compiler::testing {
namespace {

const char* kSmallHead = R"(graph @head(%0 "x": f32[n, 37], %1 "w": f32[37, 45], %2 "k": f32[1, 3, 3, 4]) -> (f32[n, 45], f32[n], i32[n, 45], f32[n, 4]) where n in 1..64 {
  %3 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 45]
  %4 = tanh %3 : f32[n, 45]
  %5 = exp %4 : f32[n, 45]
  %6 = reduce_sum %5 {axes=[1]} : f32[n]
  %7 = cast %3 {dtype=i32} : i32[n, 45]
  %8 = slice %0 {starts=[0, 0], sizes=[n, 4], steps=[1, 3]} : f32[n, 4]
  return %5, %6, %7, %8
})";

// Compiled under a value of the switch.
Compiled compiled_under(const char* first_code, const char* text, int jobs) {
  EXPECT_TRUE(set_knob(Knob::FirstCode, first_code));
  Options options;
  options.cache = false;
  options.jobs = jobs;
  auto compiled = compile(parsed(text), options);
  EXPECT_TRUE(set_knob(Knob::FirstCode, "sooner"));
  if (!compiled.ok()) ADD_FAILURE() << compiled.error().what();
  return compiled.ok() ? std::move(*compiled) : Compiled{};
}

Tensor sines(Sizes shape, double step) {
  Tensor t = Tensor::zeros(DType::F32, std::move(shape)).value();
  for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, std::sin(step * static_cast<double>(i)));
  return t;
}

std::vector<std::uint64_t> content_hashes(const Tensors& tensors) {
  std::vector<std::uint64_t> all;
  for (const Tensor& t : tensors) all.push_back(t.content_hash());
  return all;
}

TEST(FirstCode, GivesTheSameBits) {
  const Compiled best = compiled_under("best", kSmallHead, 1), quick = compiled_under("quick", kSmallHead, 1);
  ASSERT_TRUE(best.plan && quick.plan);
  const runtime::Executable well(best.plan), soon(quick.plan);
  for (std::int64_t n : {1, 5, 17}) {
    const Tensors inputs{sines({n, 37}, 0.37), sines({37, 45}, 0.11), sines({1, 3, 3, 4}, 1)};
    const auto wanted = content_hashes(run(well, inputs));
    for (int k = 0; k < 8; ++k) {
      EXPECT_EQ(content_hashes(run(soon, inputs)), wanted) << n << ", run " << k;
      if (k == 6) quick.code->settle();
    }
  }
}

TEST(FirstCode, IsMadeAnewWhenAskedForOften) {
  const Compiled quick = compiled_under("quick", kSmallHead, 1);
  ASSERT_TRUE(quick.plan && quick.code);
  const runtime::Executable exe(quick.plan);
  const Tensors inputs{sines({9, 37}, 0.37), sines({37, 45}, 0.11), sines({1, 3, 3, 4}, 1)};
  run(exe, inputs);
  std::vector<runtime::KernelFn> before, after;
  const auto functions = [&] {
    std::vector<runtime::KernelFn> all;
    for (std::size_t k = 0; k < quick.code->symbols().size(); ++k) {
      EXPECT_TRUE(quick.code->is_quick(static_cast<std::int32_t>(k)));
      all.push_back(quick.code->function(static_cast<std::int32_t>(k)));
    }
    return all;
  };
  before = functions();
  for (int k = 0; k < 8; ++k) run(exe, inputs);
  quick.code->settle();
  after = functions();
  int made = 0, anew = 0;
  for (std::size_t k = 0; k < before.size(); ++k) {
    made += before[k] != nullptr;
    anew += before[k] != nullptr && after[k] != before[k];
  }
  EXPECT_GT(made, 0);
  EXPECT_EQ(anew, made);
}

TEST(FirstCode, IsTheOnlyCodeOfOneThread) {
  const Compiled one = compiled_under("sooner", kSmallHead, 1), best = compiled_under("best", kSmallHead, 2), two = compiled_under("sooner", kSmallHead, 2);
  ASSERT_TRUE(one.code && best.code && two.code);
  int quick = 0;
  for (std::size_t k = 0; k < one.code->symbols().size(); ++k) {
    EXPECT_FALSE(one.code->is_quick(static_cast<std::int32_t>(k)));
    EXPECT_FALSE(best.code->is_quick(static_cast<std::int32_t>(k)));
    quick += two.code->is_quick(static_cast<std::int32_t>(k));
  }
  EXPECT_GT(quick, 0);  // these are small
}

TEST(FirstCode, SeveralRunsAtOnceChangeOverTogether) {
  const Compiled best = compiled_under("best", kSmallHead, 1), quick = compiled_under("quick", kSmallHead, 1);
  ASSERT_TRUE(best.plan && quick.plan);
  const runtime::Executable well(best.plan), soon(quick.plan);
  const Tensors inputs{sines({6, 37}, 0.37), sines({37, 45}, 0.11), sines({1, 3, 3, 4}, 1)};
  const auto wanted = content_hashes(run(well, inputs));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) wrong += content_hashes(run(soon, inputs)) != wanted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Worker, DoesAllInOrderAndLeavesTheRestWhenItEnds) {
  std::vector<std::int32_t> done;
  {
    Worker worker([&](std::int32_t k) { done.push_back(k); });
    worker.finish();  // nothing to do
    for (std::int32_t k = 0; k < 50; ++k) worker.add(k);
    worker.finish();
    EXPECT_EQ(done.size(), 50u);
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  }
  std::atomic<bool> go{false};
  std::atomic<int> begun{0};
  {
    Worker worker([&](std::int32_t) {
      ++begun;
      while (!go) std::this_thread::yield();
    });
    for (std::int32_t k = 0; k < 50; ++k) worker.add(k);
    while (begun == 0) std::this_thread::yield();
    std::thread later([&] { go = true; });
    later.join();
  }
  EXPECT_GE(begun, 1);
}

}  // namespace
}  // namespace weft::compiler::testing
