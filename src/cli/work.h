// What a compiled model does in one run: for `bench` and `explain`.
#pragma once

#include <string>
#include <vector>

#include "api/state.h"

namespace weft::cli {

// One step of the plan. Sizes that are known only when the step runs make its figures -1.
struct StepWork {
  std::string kind;                 // "kernel", "host", "branch", "loop", "scan", "copy"
  std::string name;
  std::vector<std::string> origins;  // the user's nodes inside
  std::string why;                  // of a kernel: its schedule; of others: why it is no kernel
  double bytes_compulsory = -1, bytes_moved = -1, flops = -1;
};

// The steps of the plan itself, in order; bodies of branches and loops are one step here.
Result<std::vector<StepWork>> steps_of(const runtime::Plan& plan, const std::vector<Tensor>& inputs);

// The sum over the known ones.
StepWork total_of(const std::vector<StepWork>& steps);

double weight_bytes(const runtime::Plan& plan);

}  // namespace weft::cli
