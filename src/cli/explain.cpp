// weft explain: what became of a model's operators, step by step of the compiled plan.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/work.h"

namespace weft::cli {
namespace {

struct ExplainArguments : ModelArguments {
  bool json = false;
  int runs = 10;
};

// The median time of each step, in ms, after a run to warm up.
Result<std::vector<double>> measure(const Program& program, const std::vector<Tensor>& inputs, int threads, int runs) {
  std::vector<std::vector<double>> samples;
  std::vector<Tensor> outputs;
  for (int r = 0; r <= runs; ++r) {
    std::vector<double> seconds;
    runtime::RunOptions options;
    options.threads = threads;
    options.step_seconds = &seconds;
    WEFT_TRY(program.state->executable->run(inputs, outputs, options));
    samples.resize(seconds.size());
    for (std::size_t k = 0; k < seconds.size() && r > 0; ++k) samples[k].push_back(seconds[k]);
  }
  std::vector<double> medians;
  for (std::vector<double>& s : samples) {
    std::sort(s.begin(), s.end());
    medians.push_back(s.empty() ? 0 : 1e3 * s[s.size() / 2]);
  }
  return medians;
}

double intensity(const StepWork& step) { return step.bytes_compulsory > 0 ? step.flops / step.bytes_compulsory : 0; }

std::string known(double value, std::string (*text)(double)) { return value < 0 ? "?" : text(value); }

void print_text(const std::vector<StepWork>& steps, const std::vector<double>& ms) {
  Table table({"step", "ms", "kind", "FLOPs", "compulsory", "moved", "FLOP/B", "GFLOP/s", "nodes"});
  double total_ms = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const StepWork& s = steps[k];
    total_ms += ms[k];
    table.row({std::to_string(k), fmt::format("{:.3f}", ms[k]), s.kind, known(s.flops, count_text),
               known(s.bytes_compulsory, bytes_text), known(s.bytes_moved, bytes_text),
               s.flops < 0 ? "?" : fmt::format("{:.2f}", intensity(s)),
               s.flops < 0 || ms[k] <= 0 ? "?" : fmt::format("{:.1f}", s.flops / (ms[k] * 1e6)), joined(s.origins, " + ", 6)});
  }
  print(table);
  const StepWork total = total_of(steps);
  const auto kernels = std::count_if(steps.begin(), steps.end(), [](const StepWork& s) { return s.kind == "kernel"; });
  fmt::print("\n{} steps, {} of them kernels: {:.3f} ms, {} FLOPs, {} compulsory, {} moved\n", steps.size(), kernels, total_ms,
             count_text(total.flops), bytes_text(total.bytes_compulsory), bytes_text(total.bytes_moved));
  std::vector<std::string> said;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].kind == "kernel") continue;
    const std::string line = fmt::format("{} {}: {}", steps[k].kind, steps[k].name, steps[k].why);
    if (std::find(said.begin(), said.end(), line) != said.end()) continue;
    fmt::print("{}no kernel: {}\n", said.empty() ? "\n" : "", line);
    said.push_back(line);
  }
}

void print_json(const std::vector<StepWork>& steps, const std::vector<double>& ms) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const StepWork& s = steps[k];
    nlohmann::ordered_json j{{"kind", s.kind}, {"name", s.name}, {"nodes", s.origins}, {"why", s.why}, {"ms", ms[k]}};
    if (s.flops >= 0) {
      j["flops"] = s.flops;
      j["bytes_compulsory"] = s.bytes_compulsory;
      j["bytes_moved"] = s.bytes_moved;
      j["intensity"] = intensity(s);
    }
    all.push_back(std::move(j));
  }
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<int> explain(const ExplainArguments& arguments) {
  const Model model = WEFT_TRY(load_model(arguments));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  const Program program = WEFT_TRY(compile_model(model, arguments));
  const std::vector<StepWork> steps = WEFT_TRY(steps_of(program.state->executable->plan(), inputs));
  const std::vector<double> ms = WEFT_TRY(measure(program, inputs, arguments.threads, arguments.runs));
  if (ms.size() != steps.size()) return internal_error("the run timed another number of steps than the plan has");
  arguments.json ? print_json(steps, ms) : print_text(steps, ms);
  return kSuccess;
}

}  // namespace

Action add_explain(CLI::App& app) {
  auto a = std::make_shared<ExplainArguments>();
  add_run_options(app, *a);
  add_flag(app, "--json", a->json, "print JSON");
  add_option(app, "--runs", a->runs, "runs to take the median time of", {1, 1000000});
  return [a] { return explain(*a); };
}

}  // namespace weft::cli
