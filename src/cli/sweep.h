// weft conformance --sweep: every op of the graph on a target beside the interpreter (sweep/sweep.h).
#pragma once

#include <string>

#include "cli/cases.h"
#include "cli/isolate.h"

namespace weft::cli {

struct SweepArguments {
  Judging judging;
  std::string filter, csv;
  int jobs = 1;
  int stride = 1;  // every stride-th case
  Limits limits;   // of a case
};

Error no_case_left(const std::string& filter);

// Prints what fails, what is unsupported by reason, and the counts; an exit code.
Result<int> run_sweep(const SweepArguments& arguments);

}  // namespace weft::cli
