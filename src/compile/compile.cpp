#include "compile/compile.h"

#include "compile/clock.h"
#include "compile/kernels.h"
#include "compile/plan_builder.h"

namespace weft::compiler {

Options::Options() : machine(host_machine()) {}

Result<Compiled> compile(const graph::Graph& graph, const Options& options) {
  Compiled result;
  Report& report = result.report;
  {
    Clock total(report.total_ms);
    report.nodes = static_cast<int>(graph.nodes().size());
    std::shared_ptr<const graph::Graph> optimised;
    {
      Clock clock(report.transform_ms);
      optimised = std::make_shared<graph::Graph>(WEFT_TRY(transform::optimize(graph, options.passes)));
    }
    for (const graph::Node& node : optimised->nodes()) report.prims += node.op != graph::Op::Constant;
    KernelSet kernels(options, report);
    if (kernels.wants("graph")) kernels.dump("graph", optimised->name, graph::print(*optimised));
    ConstantStore constants(report);
    PlanContext context{kernels, constants, options, report, {}};
    result.plan = WEFT_TRY(build_plan(optimised, context));
    WEFT_TRY(kernels.finish());
    report.unique_kernels = kernels.size();
    for (const auto& plan : context.plans) {
      plan->kernels = kernels.entries();
      plan->code = kernels.code();
      if (options.target) plan->device = options.target->device();
      plan->device_code = kernels.device_code();
    }
    if (kernels.wants("plan")) kernels.dump("plan", optimised->name, runtime::print(*result.plan));
    result.graph = optimised;
  }
  return result;
}

}  // namespace weft::compiler
