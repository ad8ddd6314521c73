// weft bench: how long a model takes, how much memory, and how much work it is.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/specialise.h"
#include "api/state.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/kernels.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/work.h"
#include "compile/code.h"
#include "runtime/pool.h"

namespace weft::cli {
namespace {

struct BenchArguments : ModelArguments {
  BenchArguments() { any_inputs = true; }
  bool json = false, time_report = false, kernels = false;
  double seconds = 3;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Figures {
  double first_ms = 0, first_end = 0;  // first_end: on the clock
  std::int64_t first_rss = 0;          // the most memory until then
  std::vector<double> runs_ms;  // sorted
  double quantile(double q) const { return runs_ms[static_cast<std::size_t>(q * static_cast<double>(runs_ms.size() - 1))]; }
};

// The most memory that this process had, weights mapped from files included.
std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

// Runs until the time is up, at least five times; outputs go into the same memory each time.
Result<Figures> measure(const Program& program, const std::vector<Tensor>& inputs, double seconds) {
  Figures figures;
  std::vector<Tensor> outputs;
  const double start = now_ms();
  WEFT_TRY(program.run_into(inputs, outputs));
  figures.first_end = now_ms();
  figures.first_ms = figures.first_end - start;
  figures.first_rss = peak_rss_bytes();
  if (const auto& code = program.state->compiled.code) code->settle();  // what runs again and again is of interest
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

// Of the processor, before main and the command line: the loader and static initialisers.
double start_ms() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

// Where the time until the first result went. Stages follow each other; their parts are listed under them.
class TimeReport {
 public:
  TimeReport(double start, double begin) : begin_(begin - start) { add("start", start); }
  void add(const char* stage, double ms) {
    stages_[stage] = ms;
    explained_ += ms;
  }
  void add_part(const char* stage, const char* part, double ms) { parts_[stage][part] = ms; }
  double all(double end) const { return end - begin_; }
  nlohmann::ordered_json json(double end) const {
    nlohmann::ordered_json j = stages_;
    j["other"] = all(end) - explained_;
    j["all"] = all(end);
    return {{"stages_ms", j}, {"parts_ms", parts_}};
  }

 private:
  nlohmann::ordered_json stages_, parts_ = nlohmann::ordered_json::object();
  double begin_ = 0, explained_ = 0;
};

void add_stages(TimeReport& report, const Model& model, const Program& program, double inputs_ms, double first_run_ms) {
  report.add("hash and look up", model.state->hash_ms);
  report.add("load", model.state->load_ms);
  report.add("import", model.state->import_ms);
  report.add("inputs", inputs_ms);
  report.add("find program", program.state->find_ms);
  for (const compiler::StageTime& t : compiler::stage_times(program.state->compiled.report)) {
    t.within ? report.add_part(t.within, t.stage, t.ms) : report.add(t.stage, t.ms);
  }
  report.add("store program", program.state->store_ms);
  report.add("first run", first_run_ms);
  if (!program.state->compiled.code) return;
  const compiler::CodeTimes code = program.state->compiled.code->times();
  const compiler::Report& r = program.state->compiled.report;
  report.add_part("first run", "kernels of these sizes", code.wall_ms);
  report.add_part("first run", "kernel", code.kernel_ms - r.kernel_ms);
  report.add_part("first run", "llvm ir", code.emit_ms - r.emit_ms);
  report.add_part("first run", "llvm code", code.codegen_ms - r.llvm_ms);
}

std::vector<std::vector<std::int64_t>> shapes_of(const std::vector<Tensor>& inputs) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  return shapes;
}

// A program whose own plan takes the inputs: where a size of 1 is spread, that is one for their sizes (api/specialise.h),
// and `model` becomes that.
Result<Program> program_for(Model& model, const std::vector<Tensor>& inputs, const ModelArguments& arguments) {
  Program program = WEFT_TRY(compile_model(model, arguments, inputs));
  if (!program.state->executable || program.state->executable->memory(shapes_of(inputs)).ok()) return program;
  const auto how = fixing(model, inputs);
  if (!how) return program;
  model = WEFT_TRY(import_again(model, *how));
  return compile_model(model, arguments, inputs);
}

Result<nlohmann::ordered_json> figures_of(const BenchArguments& arguments) {
  TimeReport report(start_ms(), now_ms());
  Model model = WEFT_TRY(load_model(arguments));
  const double before_inputs = now_ms();
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  const double inputs_ms = now_ms() - before_inputs;
  const Program program = WEFT_TRY(program_for(model, inputs, arguments));
  const Figures times = WEFT_TRY(measure(program, inputs, arguments.seconds));
  add_stages(report, model, program, inputs_ms, times.first_ms);
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
  j["start_to_first_result_ms"] = report.all(times.first_end);
  j["first_result_rss_bytes"] = times.first_rss;
  j["peak_rss_bytes"] = peak_rss_bytes();
  if (arguments.time_report) j.update(report.json(times.first_end));
  if (!program.state->executable) return j;
  const runtime::Plan& plan = program.state->executable->plan();
  const runtime::MemoryStats memory = WEFT_TRY(program.state->executable->memory(shapes_of(inputs)));
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

void print_times(const nlohmann::ordered_json& times, int indent) {
  for (const auto& [name, value] : times.items()) {
    fmt::print("{:{}}{:<{}}", "", indent, name, 28 - indent);
    value.is_object() ? fmt::print("\n") : fmt::print("{:>10.2f}\n", value.get<double>());
    if (value.is_object()) print_times(value, indent + 2);
  }
}

Result<int> bench_kernels(const BenchArguments& arguments) {
  Model model = WEFT_TRY(load_model(arguments));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  ModelArguments how_made = arguments;
  how_made.no_cache = true;  // a stored program has no graph
  const Program program = WEFT_TRY(program_for(model, inputs, how_made));
  const auto times = WEFT_TRY(time_kernels(program, inputs, arguments, arguments.seconds));
  if (arguments.json) {
    fmt::print("{}\n", kernel_times_json(times));
  } else {
    print_kernel_times(times);
  }
  return kSuccess;
}

Result<int> bench(const BenchArguments& arguments) {
  if (arguments.kernels) return bench_kernels(arguments);
  const nlohmann::ordered_json figures = WEFT_TRY(figures_of(arguments));
  if (arguments.json) {
    fmt::print("{}\n", figures.dump(2));
    return kSuccess;
  }
  constexpr int kKeyWidth = 26;  // start_to_first_result_ms and two blanks
  for (const auto& [key, value] : figures.items()) {
    if (!value.is_object()) {
      fmt::print("{:<{}}{}\n", key, kKeyWidth, value_text(key, value));
      continue;
    }
    fmt::print("{}\n", key);
    print_times(value, 2);
  }
  return kSuccess;
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto a = std::make_shared<BenchArguments>();
  add_run_options(app, *a);
  add_target_option(app, a->target, a->code);
  add_flag(app, "--json", a->json, "print JSON");
  add_flag(app, "--kernels", a->kernels, "what each kernel takes, beside what it should by the cost model");
  add_flag(app, "--time-report", a->time_report, "how long each stage took before the first run");
  add_option(app, "--seconds", a->seconds, "how long to measure", {0.0, 86400.0});
  return [a] { return bench(*a); };
}

}  // namespace weft::cli
