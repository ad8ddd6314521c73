#include "compile/compile.h"

#include <algorithm>
#include <future>
#include <optional>

#include "base/knobs.h"
#include "codegen/llvm/codegen.h"
#include "compile/clock.h"
#include "compile/dump.h"
#include "compile/kernels.h"
#include "compile/limits.h"
#include "compile/plan_builder.h"
#include "compile/products.h"
#include "runtime/pool.h"
#include "runtime/run.h"

namespace weft::compiler {

Machine machine_of(const Options& options) {
  Machine m = options.target ? options.target->machine() : options.machine;
  m.cuts_f32 = m.has_matrix && options.passes.precision != transform::Precision::Highest;
  return m;
}

Options::Options() : machine(host_machine()) {
  apply_measured_rates(machine);
  if (const std::string& folder = knob_text(Knob::Dump); !folder.empty()) {
    dump = dump_to_folder(folder);
    dump_stages = kAllStages;
  }
}

std::vector<StageTime> stage_times(const Report& r) {
  constexpr const char* kPlan = "plan";
  constexpr const char* kShared = "code and weights";
  return {{"transform", r.transform_ms},
          {kPlan, r.plan_ms},
          {"lower and fuse", r.lower_ms, kPlan},
          {"schedule", r.schedule_ms, kPlan},
          {"tile", r.tile_ms, kPlan},
          {kShared, r.shared_ms},
          {"kernel", r.kernel_ms, kShared},
          {"llvm ir", r.emit_ms, kShared},
          {"llvm code", r.llvm_ms, kShared},
          {"pack", r.pack_ms, kShared},
          {"link", r.link_ms}};
}

namespace {

// A plan without any is run as if there were no device.
bool has_device_launch(const runtime::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const runtime::PlanStep& step) {
    const auto* launch = std::get_if<runtime::Launch>(&step);
    return launch && launch->on_device;
  });
}

int threads_of(const Options& options) { return options.jobs > 0 ? options.jobs : runtime::decide_threads().threads; }

// The kernels of this process that a run with inputs of these shapes takes, as far as the shapes alone say.
std::vector<std::int32_t> kernels_for(const runtime::Plan& plan, const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<std::int32_t> kernels;
  if (shapes.empty()) return kernels;
  const auto bindings = runtime::bind_shapes(plan, shapes);
  if (!bindings.ok()) return kernels;  // the run says so
  for (const runtime::PlanStep& step : plan.steps) {
    const auto* launch = std::get_if<runtime::Launch>(&step);
    if (launch == nullptr || launch->on_device) continue;
    const auto sizes = runtime::resolve_launch(plan, *launch, *bindings);
    if (sizes.ok() && sizes->variant >= 0) kernels.push_back(launch->variants[sizes->variant].kernel);
  }
  return kernels;
}

// Machine code and packed constants, on all threads.
Result<void> run_shared(const PlanContext& context, const runtime::Plan& plan, Report& report) {
  const Options& options = context.options;
  Clock clock(report.shared_ms);
  std::vector<Job> jobs;
  const std::vector<std::int32_t> first = kernels_for(plan, options.first_shapes);
  for (KernelSet* kernels : context.sets()) WEFT_TRY(kernels->prepare(jobs, kernels == context.here ? first : std::vector<std::int32_t>()));
  std::vector<Job> packing = context.constants.jobs();
  for (const auto& plan : context.plans) {
    for (const Tensor& constant : plan->constants) {
      if (constant.deferred() == nullptr) continue;
      packing.push_back([&constant]() -> Result<void> {
        (void)constant.data();  // copies
        return {};
      });
    }
  }
  std::vector<double> pack_ms(packing.size(), 0);
  for (std::size_t k = 0; k < packing.size(); ++k) {
    jobs.push_back([&, k] {
      Clock own(pack_ms[k]);
      return packing[k]();
    });
  }
  WEFT_TRY(run_jobs(jobs, threads_of(options)));
  for (double ms : pack_ms) report.pack_ms += ms;
  return {};
}

// LLVM is set up by a thread of its own while graph passes take one: ends before what is returned does.
std::future<void> warm_up_meanwhile(const Options& options) {
  const int threads = threads_of(options);
  if (threads < 2 || !options.code || (options.target && !options.cpu_too)) return {};
  constexpr int kMost = 2;  // on one thread, so that more take longer than there is time
  try {
    return std::async(std::launch::async, [target = codegen::target_for(options.machine), count = std::min(threads, kMost)] {
      codegen::warm_up(target, count);
    });
  } catch (const std::system_error&) {
    return {};  // no thread is to be had
  }
}

Result<void> build(const graph::Graph& graph, const Options& options, Compiled& result) {
  Report& report = result.report;
  Clock total(report.total_ms);
  const std::future<void> warm = warm_up_meanwhile(options);
  report.nodes = static_cast<int>(graph.nodes().size());
  std::shared_ptr<const graph::Graph> optimised;
  {
    Clock clock(report.transform_ms);
    transform::PassOptions passes = options.passes;
    choose_products(passes, machine_of(options));
    optimised = std::make_shared<graph::Graph>(WEFT_TRY(transform::optimize(graph, passes)));
  }
  for (const graph::Node& node : optimised->nodes()) report.prims += node.op != graph::Op::Constant;
  Options in_process = options;
  in_process.target = nullptr;
  std::optional<KernelSet> here, device;
  if (!options.target || options.cpu_too) here.emplace(in_process, report);
  if (options.target) device.emplace(options, report);
  const KernelSet& any = here ? *here : *device;
  if (any.wants("graph")) any.dump("graph", optimised->name, graph::print(*optimised));
  ConstantStore constants;
  PlanContext context{here ? &*here : nullptr, device ? &*device : nullptr, constants, options, report, {}};
  {
    Clock clock(report.plan_ms);
    result.plan = WEFT_TRY(build_plan(optimised, context));
  }
  WEFT_TRY(run_shared(context, *result.plan, report));
  for (KernelSet* kernels : context.sets()) {
    WEFT_TRY(kernels->finish());
    report.unique_kernels += kernels->size();
  }
  for (const auto& plan : context.plans) {
    if (here) plan->kernels = here->entries(), plan->code = here->code();
    if (!device || !has_device_launch(*plan)) continue;
    plan->device = options.target->device();
    plan->device_kernels = device->entries();
    plan->device_code = device->device_code();
  }
  if (any.wants("plan")) any.dump("plan", optimised->name, runtime::print(*result.plan));
  if (here) result.code = here->code();
  result.graph = optimised;
  return {};
}

}  // namespace

Result<Compiled> compile(const graph::Graph& graph, const Options& options) {
  Compiled result;
  WEFT_TRY(build(graph, options, result));
  return result;
}

}  // namespace weft::compiler
