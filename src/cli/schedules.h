// How each kernel of a model is scheduled, for `weft explain --schedule`.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "schedule/schedule.h"

namespace weft::cli {

struct KernelSchedule {
  std::string name;                  // of the loop group
  std::vector<std::string> origins;  // the user's nodes inside
  std::vector<std::string> loops;    // "i0 parallel batch"
  schedule::Schedule schedule;
};

// Those of the graph as compiled, bodies of branches and loops after the step that holds them.
Result<std::vector<KernelSchedule>> schedules_of(const graph::Graph& graph, const Machine& machine);

void print_schedules(const std::vector<KernelSchedule>& kernels);  // text
std::string schedules_json(const std::vector<KernelSchedule>& kernels);

}  // namespace weft::cli
