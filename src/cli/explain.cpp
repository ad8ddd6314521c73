// weft explain: what became of a model's operators, step by step of the compiled plan.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/machine.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/schedules.h"
#include "cli/table.h"
#include "cli/work.h"
#include "compile/limits.h"
#include "runtime/pool.h"

namespace weft::cli {
namespace {

struct ExplainArguments : ModelArguments {
  bool json = false, schedule = false;
  int runs = 10;
};

double intensity(const StepWork& step) { return step.bytes_compulsory > 0 ? step.flops / step.bytes_compulsory : 0; }

std::string figure(const StepWork& step, double value, std::string (*text)(double)) {
  return step.is_kernel() && step.runs > 0 ? text(value) : "-";
}

std::string two_digits(double value) { return fmt::format("{:.2f}", value); }

// How near a kernel is to what the machine can do at most; memory is no limit for what a cache holds.
struct Share {
  double part = 0;         // of the limit that binds; 0: unknown
  const char* of = "";
};

using KnownLimits = std::optional<compiler::Limits>;

Share share_of(const StepWork& s, const KnownLimits& limits) {
  if (!limits || !s.is_kernel() || s.ms <= 0 || (!s.place.empty() && s.place != "cpu")) return {};
  const double multiplications = s.flops / (limits->gflops * 1e6);  // ms at least
  const bool beyond_caches = s.bytes_compulsory > static_cast<double>(host_machine().l3_bytes) * static_cast<double>(s.runs);
  const double memory = beyond_caches ? s.bytes_compulsory / (limits->gbytes * 1e6) : 0;
  return {std::max(multiplications, memory) / s.ms, memory > multiplications ? "memory" : "FMA"};
}

void print_steps(const std::vector<StepWork>& steps, const KnownLimits& limits) {
  Table table({"step", "us", "runs", "kind", "what", "FLOPs", "compulsory", "moved", "FLOP/B", "GFLOP/s", "limit", "nodes"});
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const StepWork& s = steps[k];
    const Share share = share_of(s, limits);
    const std::string indent(2 * static_cast<std::size_t>(s.depth), ' ');
    if (!s.body.empty()) table.row({"", "", "", indent.substr(2) + s.body + ":"});
    table.row({std::to_string(k), s.runs > 0 ? fmt::format("{:.1f}", 1e3 * s.ms) : "-", std::to_string(s.runs), indent + s.kind + (s.place.empty() ? "" : " on " + s.place), s.name,
               figure(s, s.flops, count_text), figure(s, s.bytes_compulsory, bytes_text),
               figure(s, s.bytes_moved, bytes_text), figure(s, intensity(s), two_digits),
               figure(s, s.ms > 0 ? s.flops / (s.ms * 1e6) : 0, two_digits),
               share.part > 0 ? fmt::format("{:.0f}% {}", 100 * share.part, share.of) : "-", joined(s.origins, " + ", 6)});
  }
  print(table);
}

// What does not run as generated code, each reason once.
void print_host_steps(const std::vector<StepWork>& steps) {
  std::vector<std::string> said;
  for (const StepWork& s : steps) {
    if (s.is_kernel() || s.is_transfer()) continue;
    const std::string line = fmt::format("{}{}{}: {}", s.kind, s.name.empty() ? "" : " ", s.name, s.why);
    if (std::find(said.begin(), said.end(), line) != said.end()) continue;
    fmt::print("{}no kernel: {}\n", said.empty() ? "\n" : "", line);
    said.push_back(line);
  }
}

void print_text(const runtime::Plan& plan, const std::vector<StepWork>& steps, const KnownLimits& limits) {
  print_steps(steps, limits);
  const StepWork total = total_of(steps);
  const auto kernels = std::count_if(steps.begin(), steps.end(), [](const StepWork& s) { return s.is_kernel(); });
  const auto host = std::count_if(steps.begin(), steps.end(), [](const StepWork& s) { return s.kind == "host"; });
  fmt::print("\n{} steps, {} of them kernels, {} host steps: {:.3f} ms, {} FLOPs, {} compulsory, {} moved\n", steps.size(),
             kernels, host, total.ms, count_text(total.flops), bytes_text(total.bytes_compulsory),
             bytes_text(total.bytes_moved));
  if (!plan.placement.empty()) fmt::print("placement: {}\n", plan.placement);
  if (!limits && !plan.device) fmt::print("'weft doctor --measure' once, and each kernel is held against what this machine can do\n");
  print_host_steps(steps);
}

void print_json(const std::vector<StepWork>& steps, const KnownLimits& limits) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const StepWork& s : steps) {
    nlohmann::ordered_json j{{"kind", s.kind}, {"name", s.name}, {"nodes", s.origins}, {"why", s.why},
                             {"depth", s.depth}, {"runs", s.runs}, {"ms", s.ms}};
    if (!s.body.empty()) j["body"] = s.body;
    if (s.is_kernel()) {
      if (!s.place.empty()) j["place"] = {{"at", s.place}, {"why", s.place_why}};
      j["flops"] = s.flops;
      j["bytes_compulsory"] = s.bytes_compulsory;
      j["bytes_moved"] = s.bytes_moved;
      j["intensity"] = intensity(s);
      if (const Share share = share_of(s, limits); share.part > 0) j["limit"] = {{"share", share.part}, {"of", share.of}};
    }
    all.push_back(std::move(j));
  }
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<int> explain(const ExplainArguments& arguments) {
  if (arguments.target == "ref") return user_error("usage", "the reference interpreter makes no plan").at("--target");
  const Model model = WEFT_TRY(load_model(arguments));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  const Program program = WEFT_TRY(compile_model(model, arguments));
  if (arguments.schedule) {
    const compiler::Options how = WEFT_TRY(compiler_options(compile_options(arguments)));
    const auto kernels = unique_kernels(WEFT_TRY(schedules_of(*WEFT_TRY(compiled_graph(program, how)), how)));
    arguments.json ? fmt::print("{}\n", schedules_json(kernels)) : print_schedules(kernels);
    return kSuccess;
  }
  auto progress = std::make_unique<Progress>("running");
  const auto steps = WEFT_TRY(profile(*program.state->executable, inputs, arguments.threads, arguments.runs));
  progress.reset();
  const runtime::Plan& plan = program.state->executable->plan();
  KnownLimits limits;  // of this process's cores
  if (!plan.device || !plan.kernels.empty()) {
    limits = compiler::known_limits(arguments.threads > 0 ? arguments.threads : runtime::decide_threads().threads);
  }
  arguments.json ? print_json(steps, limits) : print_text(plan, steps, limits);
  return kSuccess;
}

}  // namespace

Action add_explain(CLI::App& app) {
  auto a = std::make_shared<ExplainArguments>();
  add_run_options(app, *a);
  add_target_option(app, a->target, a->code);
  add_flag(app, "--json", a->json, "print JSON");
  add_flag(app, "--schedule", a->schedule, "how each kernel is scheduled, and what that should cost");
  add_option(app, "--runs", a->runs, "runs to take the median time of", {1, 1000000});
  return [a] { return explain(*a); };
}

}  // namespace weft::cli
