// weft bench: how long a model takes, how much memory, and how much work it is.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/work.h"
#include "runtime/pool.h"

namespace weft::cli {
namespace {

struct BenchArguments : ModelArguments {
  bool json = false, time_report = false;
  double seconds = 3;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Figures {
  double first_ms = 0;
  std::vector<double> runs_ms;  // sorted
  double quantile(double q) const { return runs_ms[static_cast<std::size_t>(q * static_cast<double>(runs_ms.size() - 1))]; }
};

// Runs until the time is up, at least five times; outputs go into the same memory each time.
Result<Figures> measure(const Program& program, const std::vector<Tensor>& inputs, double seconds) {
  Figures figures;
  std::vector<Tensor> outputs;
  const double start = now_ms();
  WEFT_TRY(program.run_into(inputs, outputs));
  figures.first_ms = now_ms() - start;
  Progress progress;
  const double begin = now_ms(), end = begin + 1000 * seconds;
  for (double t = begin; t < end || figures.runs_ms.size() < 5;) {
    WEFT_TRY(program.run_into(inputs, outputs));
    const double after = now_ms();
    figures.runs_ms.push_back(after - t);
    t = after;
    if (progress.due()) {
      progress.say(fmt::format("{} runs, {:.0f} %", figures.runs_ms.size(), 100 * (after - begin) / (end - begin)));
    }
  }
  std::sort(figures.runs_ms.begin(), figures.runs_ms.end());
  return figures;
}

// The most memory that this process had, weights mapped from files included.
std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

// Where the time before the first run went.
nlohmann::ordered_json stages_of(const Model& model, const Program& program) {
  nlohmann::ordered_json stages;
  stages["load"] = model.state->load_ms;
  stages["import"] = model.state->import_ms;
  for (const auto& [stage, ms] : compiler::stage_times(program.state->compiled.report)) stages[stage] = ms;
  return stages;
}

Result<nlohmann::ordered_json> figures_of(const BenchArguments& arguments) {
  const Model model = WEFT_TRY(load_model(arguments));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  const Program program = WEFT_TRY(compile_model(model, arguments));
  const Figures times = WEFT_TRY(measure(program, inputs, arguments.seconds));
  nlohmann::ordered_json j;
  j["model"] = arguments.path;
  j["target"] = arguments.target;
  j["threads"] = arguments.threads > 0 ? arguments.threads : runtime::decide_threads().threads;
  j["runs"] = times.runs_ms.size();
  j["median_ms"] = times.quantile(0.5);
  j["p10_ms"] = times.quantile(0.1);
  j["p90_ms"] = times.quantile(0.9);
  j["load_ms"] = model.state->load_ms + model.state->import_ms;
  j["compile_ms"] = program.stats().compile_ms;
  j["from_cache"] = program.stats().from_cache;
  j["first_run_ms"] = times.first_ms;
  j["peak_rss_bytes"] = peak_rss_bytes();
  if (!program.state->executable) return j;
  const runtime::Plan& plan = program.state->executable->plan();
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const runtime::MemoryStats memory = WEFT_TRY(program.state->executable->memory(shapes));
  const StepWork work = total_of(WEFT_TRY(profile(*program.state->executable, inputs, arguments.threads, 1)));
  j["nodes"] = program.stats().nodes;
  j["prims"] = program.stats().prims;
  j["loops"] = program.stats().loops;
  j["kernels"] = program.stats().kernels;
  j["unique_kernels"] = program.stats().unique_kernels;
  j["host_steps"] = program.stats().host_steps;
  j["arena_bytes"] = memory.arena;
  j["max_live_bytes"] = memory.bound;
  j["weight_bytes"] = weight_bytes(plan);
  j["flops"] = work.flops;
  j["bytes_compulsory"] = work.bytes_compulsory;
  j["bytes_moved"] = work.bytes_moved;
  if (arguments.time_report) j["stages_ms"] = stages_of(model, program);
  j["gflops_per_s"] = work.flops / (times.quantile(0.5) * 1e6);
  return j;
}

std::string value_text(const std::string& key, const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  const double number = value.get<double>();
  if (key.find("_ms") != std::string::npos) return fmt::format("{:.3f}", number);
  if (key.find("bytes") != std::string::npos) return bytes_text(number);
  if (key == "flops") return count_text(number);
  return value.is_number_integer() ? fmt::format("{}", value.get<std::int64_t>()) : fmt::format("{:.2f}", number);
}

Result<int> bench(const BenchArguments& arguments) {
  const nlohmann::ordered_json figures = WEFT_TRY(figures_of(arguments));
  if (arguments.json) {
    fmt::print("{}\n", figures.dump(2));
    return kSuccess;
  }
  for (const auto& [key, value] : figures.items()) {
    if (!value.is_object()) {
      fmt::print("{:<18}{}\n", key, value_text(key, value));
      continue;
    }
    fmt::print("{}\n", key);
    for (const auto& [part, ms] : value.items()) fmt::print("  {:<24}{:>10.2f}\n", part, ms.get<double>());
  }
  return kSuccess;
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto a = std::make_shared<BenchArguments>();
  add_run_options(app, *a);
  add_target_option(app, a->target);
  add_flag(app, "--json", a->json, "print JSON");
  add_flag(app, "--time-report", a->time_report, "how long each stage took before the first run");
  add_option(app, "--seconds", a->seconds, "how long to measure", {0.0, 86400.0});
  return [a] { return bench(*a); };
}

}  // namespace weft::cli
