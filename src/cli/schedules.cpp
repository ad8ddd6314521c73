#include "cli/schedules.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "loop/lower/lower.h"

namespace weft::cli {
namespace {

const char* kind_name(loop::LoopKind kind) {
  switch (kind) {
    case loop::LoopKind::Parallel: return "parallel";
    case loop::LoopKind::Reduce: return "reduce";
    case loop::LoopKind::Serial: return "serial";
  }
  return "";
}

Result<void> collect(const graph::Graph& graph, const Machine& machine, std::vector<KernelSchedule>& into) {
  const loop::Partition partition = WEFT_TRY(loop::lower(graph));
  for (const loop::Step& step : partition.steps) {
    if (step.kind != loop::Step::Kind::Kernel) {
      for (const auto& region : graph.node(step.node).regions) WEFT_TRY(collect(*region, machine, into));
      continue;
    }
    const loop::Group& group = step.group;
    KernelSchedule kernel{group.name, group.origins, {}, schedule::schedule(group, machine, graph.facts)};
    for (std::size_t i = 0; i < group.loops.size(); ++i) {
      kernel.loops.push_back(fmt::format("i{} {} {}", i, kind_name(group.loops[i].kind), group.loops[i].extent.str()));
    }
    into.push_back(std::move(kernel));
  }
  return {};
}

std::string guard_text(const schedule::Variant& variant) {
  if (!variant.guard) return "any size";
  return fmt::format("{} in {}..{}", variant.guard->size.str(), variant.guard->lo, variant.guard->hi);
}

}  // namespace

Result<std::vector<KernelSchedule>> schedules_of(const graph::Graph& graph, const Machine& machine) {
  std::vector<KernelSchedule> kernels;
  WEFT_TRY(collect(graph, machine, kernels));
  return kernels;
}

void print_schedules(const std::vector<KernelSchedule>& kernels) {
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const KernelSchedule& kernel = kernels[k];
    fmt::print("{}kernel {} {}: {}\n", k > 0 ? "\n" : "", k, kernel.name, joined(kernel.origins, " + ", 6));
    fmt::print("  loops     {}\n", joined(kernel.loops));
    fmt::print("  modelled  {} us\n", number_text(kernel.schedule.modelled_us));
    fmt::print("  why       {}\n", kernel.schedule.why);
    for (const schedule::Variant& variant : kernel.schedule.variants) {
      fmt::print("  {}: {}\n", guard_text(variant), schedule::print(variant.record));
    }
  }
}

std::string schedules_json(const std::vector<KernelSchedule>& kernels) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const KernelSchedule& kernel : kernels) {
    nlohmann::ordered_json j{{"name", kernel.name}, {"nodes", kernel.origins}, {"loops", kernel.loops}};
    j["modelled_us"] = kernel.schedule.modelled_us;
    j["why"] = kernel.schedule.why;
    for (const schedule::Variant& variant : kernel.schedule.variants) {
      j["variants"].push_back({{"when", guard_text(variant)}, {"record", schedule::print(variant.record)}});
    }
    all.push_back(std::move(j));
  }
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weft::cli
