#include "cli/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/errors.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/work.h"
#include "runtime/pool.h"

namespace weft::cli {
namespace {

// The facts of a graph with the sizes of one run.
DimFacts at_sizes(const DimFacts& facts, const Bindings& bindings) {
  DimFacts exact = facts;
  for (const auto& [symbol, value] : bindings) exact.declare(symbol, {value, value, 1});
  return exact;
}

const schedule::Record& record_of(const schedule::Schedule& schedule, const Bindings& bindings) {
  for (const schedule::Variant& v : schedule.variants) {
    if (!v.guard) continue;
    const auto size = v.guard->size.evaluate(bindings);
    if (size.ok() && v.guard->lo <= *size && *size <= v.guard->hi) return v.record;
  }
  return schedule.variants.back().record;
}

struct Sum {
  double runs = 0, best_us = 0, median_us = 0;
};

}  // namespace

Result<std::vector<KernelTime>> time_kernels(const Program& program, const std::vector<Tensor>& inputs,
                                             const ModelArguments& arguments, double seconds) {
  if (!program.state->executable) return usage_error("only targets that have kernels can be asked for them").at(arguments.target);
  const compiler::Options how = WEFT_TRY(compiler_options(compile_options(arguments)));
  const std::vector<KernelSchedule> kernels = WEFT_TRY(schedules_of(*WEFT_TRY(compiled_graph(program, how)), how));
  const auto steps = [&] {
    Progress progress("running");
    return profile_for(*program.state->executable, inputs, arguments.threads, seconds);
  }();
  if (!steps.ok()) return steps.error();
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const Bindings bindings = WEFT_TRY(runtime::bind_shapes(program.state->executable->plan(), shapes));
  Machine machine = how.target ? how.target->machine() : how.machine;
  machine.cores = arguments.threads > 0 ? arguments.threads : runtime::decide_threads().threads;
  std::map<std::string, Sum> sums;  // by the group's text
  std::size_t k = 0;
  double all = 0;
  for (const StepWork& step : *steps) {
    if (!step.is_kernel()) continue;
    if (k == kernels.size()) return internal_error("a plan has more kernels than its graph");
    Sum& sum = sums[kernels[k++].text];
    sum.runs += static_cast<double>(step.runs);
    sum.best_us += 1e3 * step.best_ms;
    sum.median_us += 1e3 * step.ms;
    all += step.ms;
  }
  std::vector<KernelTime> times;
  for (KernelSchedule& kernel : unique_kernels(kernels)) {
    const Sum& sum = sums[kernel.text];
    if (sum.runs == 0) continue;
    KernelTime time;
    const schedule::Record& record = record_of(kernel.schedule, bindings);
    time.record = schedule::print(record);
    time.modelled = schedule::cost(kernel.group, machine, at_sizes(kernel.facts, bindings), record);
    for (const loop::Loop& l : kernel.group.loops) {
      for (const std::string& symbol : l.extent.symbols()) time.sizes_known &= bindings.count(symbol) != 0;
    }
    time.runs = sum.runs;
    time.best_us = sum.best_us / sum.runs;
    time.median_us = sum.median_us / sum.runs;
    time.share = all > 0 ? 1e-3 * sum.median_us / all : 0;
    time.kernel = std::move(kernel);
    times.push_back(std::move(time));
  }
  std::stable_sort(times.begin(), times.end(), [](const KernelTime& a, const KernelTime& b) { return a.share > b.share; });
  return times;
}

std::string kernel_times_json(const std::vector<KernelTime>& times) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const KernelTime& t : times) {
    nlohmann::ordered_json j{{"kind", t.kernel.group.name}, {"nodes", t.kernel.group.origins}, {"loops", loops_of(t.kernel.group)},
                             {"record", t.record},          {"tuned", t.kernel.schedule.tuned}, {"runs", t.runs}};
    j["sizes_known"] = t.sizes_known;
    j["best_us"] = t.best_us;
    j["median_us"] = t.median_us;
    j["share"] = t.share;
    j["modelled_us"] = t.modelled.total();
    j["modelled"] = cost_json(t.modelled);
    all.push_back(std::move(j));
  }
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_kernel_times(const std::vector<KernelTime>& times) {
  Table table({"share", "us", "modelled", "ratio", "runs", "kernel", "nodes", "schedule"});
  for (const KernelTime& t : times) {
    table.row({fmt::format("{:.1f}%", 100 * t.share), fmt::format("{:.1f}", t.median_us), fmt::format("{:.1f}", t.modelled.total()),
               fmt::format("{:.2f}", t.median_us / t.modelled.total()), fmt::format("{}", t.runs), t.kernel.group.name,
               joined(t.kernel.group.origins, " + ", 2), t.record});
  }
  print(table);
}

}  // namespace weft::cli
