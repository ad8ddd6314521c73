// How each kernel of a model is scheduled, for `weft explain --schedule`, `weft bench --kernels` and `weft tune`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "graph/graph.h"
#include "schedule/schedule.h"

namespace weft::cli {

struct KernelSchedule {
  loop::Group group;
  DimFacts facts;
  std::string text;  // of the group: equal ones are one kernel
  schedule::Schedule schedule;
  int uses = 1;      // in the model
};

// Those of the graph as compiled, in the order of the plan's launches, bodies of branches and loops after the step that
// holds them.
Result<std::vector<KernelSchedule>> schedules_of(const graph::Graph& graph, const compiler::Options& options);

// Each kernel once, the first of its uses standing for all.
std::vector<KernelSchedule> unique_kernels(std::vector<KernelSchedule> kernels);

std::vector<std::string> loops_of(const loop::Group& group);  // "i0 parallel batch"

nlohmann::ordered_json cost_json(const schedule::Cost& cost);
void print_schedules(const std::vector<KernelSchedule>& kernels);  // text
std::string schedules_json(const std::vector<KernelSchedule>& kernels);

}  // namespace weft::cli
