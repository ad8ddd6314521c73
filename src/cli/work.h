// What a compiled model does in one run: for `bench` and `explain`.
#pragma once

#include <string>
#include <vector>

#include "api/state.h"

namespace weft::cli {

// One step of the plan, or of the body of one: then it is deeper, and its figures are sums over what ran.
struct StepWork {
  int depth = 0;
  std::string kind;                  // "kernel", "host", "branch", "loop", "scan", "copy", "upload", "download"
  std::string name;
  std::string body;                  // of the first step of a body: which one, "then", "else" or "body"
  std::vector<std::string> origins;  // the user's nodes inside
  std::string place, place_why;      // of a kernel: where it runs and why, when there was a choice
  std::string why;                   // of a kernel: its schedule; of others: why it is no kernel
  std::int64_t runs = 0;             // in one run of the model; 0: a branch not taken
  double ms = 0, best_ms = 0;        // the median of the runs, and the least
  double bytes_compulsory = 0, bytes_moved = 0, flops = 0;  // of kernels

  bool is_kernel() const { return kind == "kernel"; }
  bool is_transfer() const { return kind == "upload" || kind == "download"; }
};

// Runs once to warm up, then `runs` times: the steps in order, those of bodies after the step that runs them.
Result<std::vector<StepWork>> profile(const runtime::Executable& executable, const std::vector<Tensor>& inputs, int threads,
                                      int runs);

// The same, for as many runs as fit into the time: at least 5.
Result<std::vector<StepWork>> profile_for(const runtime::Executable& executable, const std::vector<Tensor>& inputs, int threads,
                                          double seconds);

// Of each kernel step in that order: seconds of one profiled run, 0 where it did not run.
std::vector<double> kernel_seconds(const runtime::Plan& plan, const runtime::Profile& profile);

// The sum over the kernels; `ms` over the plan's own steps.
StepWork total_of(const std::vector<StepWork>& steps);

double weight_bytes(const runtime::Plan& plan);

}  // namespace weft::cli
