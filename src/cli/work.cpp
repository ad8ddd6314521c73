#include "cli/work.h"

#include <variant>

namespace weft::cli {
namespace {

std::vector<std::vector<std::int64_t>> shapes_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : tensors) shapes.push_back(t.shape());
  return shapes;
}

double value_of(const Dim& d, const Bindings& bindings) {
  const auto value = d.evaluate(bindings);
  return value.ok() ? static_cast<double>(*value) : -1;
}

StepWork describe(const runtime::Plan& plan, const Bindings& bindings, const runtime::PlanStep& step) {
  StepWork work;
  if (const auto* launch = std::get_if<runtime::Launch>(&step)) {
    work.kind = "kernel";
    if (launch->info < 0) return work;
    const runtime::KernelInfo& info = plan.infos[launch->info];
    work.name = info.name;
    work.origins = info.origins;
    work.why = info.schedule;
    work.bytes_compulsory = value_of(info.bytes_compulsory, bindings);
    work.bytes_moved = value_of(info.bytes_moved, bindings);
    work.flops = value_of(info.flops, bindings);
  } else if (const auto* host = std::get_if<runtime::HostCall>(&step)) {
    work.kind = "host";
    work.name = host->op;
    work.origins = {host->origin};
    work.why = "a host op: the size of its result depends on data, or its values are no numbers";
  } else if (const auto* loop = std::get_if<runtime::LoopStep>(&step)) {
    work.kind = "loop";
    work.name = loop->body->name;
    work.origins = {loop->origin};
    work.why = "its body is a plan of its own";
  } else if (std::holds_alternative<runtime::CopyStep>(step)) {
    work.kind = "copy";
    work.why = "an output that no kernel writes itself";
  } else {
    work.kind = std::holds_alternative<runtime::BranchStep>(step) ? "branch" : "scan";
    work.why = "its body is a plan of its own";
  }
  return work;
}

}  // namespace

Result<std::vector<StepWork>> steps_of(const runtime::Plan& plan, const std::vector<Tensor>& inputs) {
  const Bindings bindings = WEFT_TRY(runtime::bind_shapes(plan, shapes_of(inputs)));
  std::vector<StepWork> steps;
  for (const runtime::PlanStep& step : plan.steps) steps.push_back(describe(plan, bindings, step));
  return steps;
}

StepWork total_of(const std::vector<StepWork>& steps) {
  StepWork total;
  total.bytes_compulsory = total.bytes_moved = total.flops = 0;
  for (const StepWork& step : steps) {
    total.bytes_compulsory += std::max(0.0, step.bytes_compulsory);
    total.bytes_moved += std::max(0.0, step.bytes_moved);
    total.flops += std::max(0.0, step.flops);
  }
  return total;
}

double weight_bytes(const runtime::Plan& plan) {
  double bytes = 0;
  for (const Tensor& t : plan.constants) bytes += static_cast<double>(t.byte_size());
  return bytes;
}

}  // namespace weft::cli
