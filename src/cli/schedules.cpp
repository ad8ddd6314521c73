#include "cli/schedules.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "compile/tuned.h"
#include "loop/lower/lower.h"
#include "runtime/pool.h"
#include "schedule/choices.h"

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

Result<void> collect(const graph::Graph& graph, const compiler::Options& options, std::vector<KernelSchedule>& into) {
  const Machine& machine = options.target ? options.target->machine() : options.machine;
  loop::Partition partition = WEFT_TRY(loop::lower(graph, schedule::lowering_choices(machine)));
  for (loop::Step& step : partition.steps) {
    if (step.kind != loop::Step::Kind::Kernel) {
      for (const auto& region : graph.node(step.node).regions) WEFT_TRY(collect(*region, options, into));
      continue;
    }
    std::string text = loop::print_alike(step.group);
    const schedule::Request request{true, compiler::tuned_choice(options, text, graph.facts)};
    schedule::Schedule made = schedule::schedule(step.group, machine, graph.facts, request);
    into.push_back({std::move(step.group), graph.facts, std::move(text), std::move(made), 1});
  }
  return {};
}

std::string guard_text(const schedule::Variant& variant) {
  if (!variant.guard) return "any size";
  return fmt::format("{} in {}..{}", variant.guard->size.str(), variant.guard->lo, variant.guard->hi);
}

std::string us(double value) { return fmt::format("{:.1f}", value); }

void print_candidates(const schedule::Schedule& schedule) {
  constexpr std::size_t kShown = 8;
  Table table({"", "us", "few us", "compute", "l1", "l2", "l3", "memory", "waste", "dispatch", "code", "candidate"});
  std::size_t shown = 0;
  for (const schedule::Candidate& c : schedule.candidates) {
    const bool chosen = c.record == schedule.variants.back().record;
    if (++shown > kShown && !chosen) continue;
    table.row({chosen ? schedule.tuned ? "  tuned" : "  chosen" : "", us(c.cost.total()), us(c.few.total()), us(c.cost.compute), us(c.cost.l1),
               us(c.cost.l2), us(c.cost.l3), us(c.cost.memory), us(c.cost.waste), us(c.cost.dispatch), fmt::format("{:.0f}", c.instructions), schedule::print(c.record)});
  }
  print(table);
  if (shown > kShown) fmt::print("  and {} more\n", shown - kShown);
}

schedule::FirstCode first_code(const KernelSchedule& kernel) {
  return schedule::first_code(kernel.uses * kernel.schedule.few.total(), kernel.schedule.instructions, runtime::decide_threads().threads);
}

std::string first_code_text(const KernelSchedule& kernel) {
  const schedule::FirstCode first = first_code(kernel);
  return fmt::format("made {} at first if it is not kept: quickly made, a run loses {} us and compiling saves {}",
                     first.quick() ? "quickly" : "well", number_text(first.lost), number_text(first.saved));
}

}  // namespace

Result<std::vector<KernelSchedule>> schedules_of(const graph::Graph& graph, const compiler::Options& options) {
  std::vector<KernelSchedule> kernels;
  WEFT_TRY(collect(graph, options, kernels));
  return kernels;
}

std::vector<KernelSchedule> unique_kernels(std::vector<KernelSchedule> kernels) {
  std::vector<KernelSchedule> unique;
  std::map<std::string, std::size_t> numbers;
  for (KernelSchedule& kernel : kernels) {
    const auto [it, fresh] = numbers.try_emplace(kernel.text, unique.size());
    if (fresh) {
      unique.push_back(std::move(kernel));
    } else {
      ++unique[it->second].uses;
    }
  }
  return unique;
}

std::vector<std::string> loops_of(const loop::Group& group) {
  std::vector<std::string> loops;
  for (std::size_t i = 0; i < group.loops.size(); ++i) {
    loops.push_back(fmt::format("i{} {} {}", i, kind_name(group.loops[i].kind), group.loops[i].extent.str()));
  }
  return loops;
}

nlohmann::ordered_json cost_json(const schedule::Cost& c) {
  return {{"us", c.total()}, {"compute", c.compute}, {"l1", c.l1},       {"l2", c.l2},
          {"l3", c.l3},      {"memory", c.memory},   {"waste", c.waste}, {"dispatch", c.dispatch}};
}

void print_schedules(const std::vector<KernelSchedule>& kernels) {
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const KernelSchedule& kernel = kernels[k];
    const std::string uses = kernel.uses > 1 ? fmt::format(" x{}", kernel.uses) : "";
    fmt::print("{}kernel {} {}{}: {}\n", k > 0 ? "\n" : "", k, kernel.group.name, uses, joined(kernel.group.origins, " + ", 6));
    fmt::print("  loops     {}\n", joined(loops_of(kernel.group)));
    fmt::print("  modelled  {} us\n", number_text(kernel.schedule.cost.total()));
    fmt::print("  code      {:.0f} instructions, {}\n", kernel.schedule.instructions, first_code_text(kernel));
    fmt::print("  {}     {}\n", kernel.schedule.tuned ? "tuned" : "why  ", kernel.schedule.why);
    for (const schedule::Variant& variant : kernel.schedule.variants) {
      fmt::print("  {}: {}\n", guard_text(variant), schedule::print(variant.record));
    }
    print_candidates(kernel.schedule);
  }
}

std::string schedules_json(const std::vector<KernelSchedule>& kernels) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const KernelSchedule& kernel : kernels) {
    nlohmann::ordered_json j{{"name", kernel.group.name}, {"nodes", kernel.group.origins}, {"loops", loops_of(kernel.group)}};
    j["uses"] = kernel.uses;
    j["modelled_us"] = kernel.schedule.cost.total();
    j["modelled"] = cost_json(kernel.schedule.cost);
    j["instructions"] = kernel.schedule.instructions;
    j["made_quickly_at_first"] = first_code(kernel).quick();
    j["why"] = kernel.schedule.why;
    j["tuned"] = kernel.schedule.tuned;
    for (const schedule::Variant& variant : kernel.schedule.variants) {
      j["variants"].push_back({{"when", guard_text(variant)}, {"record", schedule::print(variant.record)}});
    }
    for (const schedule::Candidate& c : kernel.schedule.candidates) {
      j["candidates"].push_back({{"record", schedule::print(c.record)}, {"modelled", cost_json(c.cost)}, {"few", cost_json(c.few)}, {"instructions", c.instructions}});
    }
    all.push_back(std::move(j));
  }
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weft::cli
