// What each kernel of a model takes beside what it should by the cost model: for `weft bench --kernels` and `weft tune`.
#pragma once

#include "cli/model.h"
#include "cli/schedules.h"

namespace weft::cli {

struct KernelTime {
  KernelSchedule kernel;  // one of the unique ones
  std::string record;     // of the variant that ran
  schedule::Cost modelled;  // of one launch, at the sizes that ran
  double runs = 0;        // launches in one run of the model
  double best_us = 0, median_us = 0;  // of one launch
  bool sizes_known = true;  // before the run; else the model had to guess
  double share = 0;       // of the run time of all kernels
};

// Runs the program for about `seconds`; those that take longest first.
Result<std::vector<KernelTime>> time_kernels(const Program& program, const std::vector<Tensor>& inputs,
                                             const ModelArguments& arguments, double seconds);

std::string kernel_times_json(const std::vector<KernelTime>& times);
void print_kernel_times(const std::vector<KernelTime>& times);

}  // namespace weft::cli
