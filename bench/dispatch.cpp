// What it costs to run a kernel, apart from the kernel: ninja weft_bench_dispatch && build/bench/weft_bench_dispatch
//   Region/T      a parallel region with nothing to do, on T threads that are awake
//   Rested/T      the same after the workers went to sleep; the caller's time only
//   Launches/T    a plan of 64 launches of an empty kernel, per launch
// Sleeping workers must cost nothing: idle_cpu_percent is the processor time of the whole process while nothing runs.
#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "runtime/execute.h"
#include "runtime/pool.h"

namespace weft::runtime {
namespace {

void nothing(void*, std::int64_t, std::int64_t, int) {}
void empty_kernel(void* const*, const std::int64_t*, std::int64_t, std::int64_t, void*, std::int64_t*) {}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void region(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  for (auto _ : state) parallel_for(threads, threads, nothing, nullptr);
}
BENCHMARK(region)->Name("Region")->Arg(1)->Arg(2)->UseRealTime();

void rested(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  double idle = 0;
  constexpr double kRest = 0.005;
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kRest));
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(kRest));
    idle += cpu_seconds() - before;
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads, threads, nothing, nullptr);
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["idle_cpu_percent"] = 100 * idle / (kRest * static_cast<double>(state.iterations()));
}
BENCHMARK(rested)->Name("Rested")->Arg(2)->UseManualTime()->Iterations(100);

std::shared_ptr<const Plan> plan_of_launches(int count) {
  auto plan = std::make_shared<Plan>();
  plan->slots.resize(2);
  for (auto& slot : plan->slots) slot.shape = {Dim(16)};
  plan->slots[0].kind = Slot::Kind::Input;
  plan->slots[1].kind = Slot::Kind::Output;
  plan->inputs = {0};
  plan->outputs = {1};
  plan->input_names = {"x"};
  plan->output_names = {"y"};
  KernelEntry kernel;
  kernel.symbol = "empty";
  kernel.fn = empty_kernel;
  kernel.written = {false, true};
  plan->kernels.push_back(kernel);
  Launch launch;
  LaunchVariant variant;
  variant.grid = Dim(2);
  launch.variants.push_back(variant);
  launch.buffers = {0, 1};
  for (int k = 0; k < count; ++k) plan->steps.push_back(launch);
  return plan;
}

// Without modelled work a launch is taken to be worth all threads.
void launches(benchmark::State& state) {
  constexpr int kLaunches = 64;
  const Executable executable(plan_of_launches(kLaunches));
  const std::vector<Tensor> inputs{Tensor::zeros(DType::F32, {16}).value()};
  std::vector<Tensor> outputs;
  RunOptions options;
  options.threads = static_cast<int>(state.range(0));
  for (auto _ : state) {
    if (!executable.run(inputs, outputs, options).ok()) state.SkipWithError("the run failed");
  }
  state.counters["per_launch"] = benchmark::Counter(static_cast<double>(state.iterations()) * kLaunches,
                                                    benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(launches)->Name("Launches")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace weft::runtime
