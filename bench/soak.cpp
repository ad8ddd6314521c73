// Many runs in one process:  weft_bench_soak MODEL.onnx [--runs 10000] [--copies 4] [--seconds 2]
//   memory   runs over random sizes of the model's free dimensions; the resident set after a tenth of them and at the end
//   copies   the model compiled so many times, each run from a thread of its own: runs per second of all of them together
//            against one alone (both with all threads of the machine allowed)
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "weft/weft.h"

namespace {

using weft::Tensor;
using Tensors = std::vector<Tensor>;

double resident_mib() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Zeros, which every model takes; `largest` or random sizes of the free dimensions.
Tensors inputs_of(const weft::Model& model, std::mt19937* random, std::int64_t most) {
  weft::Bindings sizes;
  Tensors inputs;
  for (const weft::Port& port : model.inputs()) {
    std::set<std::string> symbols;
    for (const weft::Dim& d : port.shape) d.collect_symbols(symbols);
    for (const std::string& s : symbols) {
      if (!sizes.count(s)) sizes[s] = random ? 1 + static_cast<std::int64_t>((*random)()) % most : most;
    }
    std::vector<std::int64_t> shape;
    for (const weft::Dim& d : port.shape) shape.push_back(d.evaluate(sizes).value());
    inputs.push_back(Tensor::zeros(port.dtype, shape).value());
  }
  return inputs;
}

void soak(const weft::Model& model, const weft::Program& program, int runs, std::int64_t most) {
  std::mt19937 random(1);
  Tensors outputs = program.run(inputs_of(model, nullptr, most)).value();
  double early = 0;
  for (int k = 0; k < runs; ++k) {
    outputs.clear();
    outputs = program.run(inputs_of(model, &random, most)).value();
    if (k == runs / 10) early = resident_mib();
  }
  const double late = resident_mib();
  std::printf("%d runs over random sizes up to %ld: %.1f MiB after a tenth, %.1f MiB at the end (%+.2f %%)\n", runs,
              static_cast<long>(most), early, late, 100 * (late / early - 1));
}

double runs_per_second(const weft::Model& model, int copies, double seconds) {
  std::vector<weft::Program> programs;
  for (int c = 0; c < copies; ++c) programs.push_back(weft::compile(model).value());
  const Tensors inputs = inputs_of(model, nullptr, 8);
  std::atomic<bool> stop{false};
  std::atomic<long> total{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < copies; ++c) {
    threads.emplace_back([&, c] {
      Tensors outputs;
      for (int k = 0; k < 3; ++k) (void)programs[c].run_into(inputs, outputs);
      for (; !stop; ++total) (void)programs[c].run_into(inputs, outputs);
    });
  }
  const double start = now();
  const long before = total;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate = static_cast<double>(total - before) / (now() - start);
  stop = true;
  for (auto& t : threads) t.join();
  return rate;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: weft_bench_soak MODEL.onnx [--runs N] [--copies N] [--seconds S] [--most N]\n"), 2;
  int runs = 10000, copies = 4, most = 64;
  double seconds = 2;
  for (int k = 2; k + 1 < argc; k += 2) {
    const std::string option = argv[k];
    if (option == "--runs") runs = std::atoi(argv[k + 1]);
    if (option == "--copies") copies = std::atoi(argv[k + 1]);
    if (option == "--most") most = std::atoi(argv[k + 1]);
    if (option == "--seconds") seconds = std::atof(argv[k + 1]);
  }
  try {
    const weft::Model model = weft::load(argv[1]).value();
    if (runs > 0) soak(model, weft::compile(model).value(), runs, most);
    if (seconds <= 0) return 0;
    const double one = runs_per_second(model, 1, seconds), all = runs_per_second(model, copies, seconds);
    std::printf("one program: %.1f runs/s; %d in one process: %.1f runs/s in all (%.2f x)\n", one, copies, all, all / one);
  } catch (const weft::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
