// Independent pieces of work on the pool's threads.
#pragma once

#include <functional>
#include <vector>

#include "base/error.h"

namespace weft::compiler {

using Job = std::function<Result<void>()>;

// Runs all of them, in order of their start; the error is that of the first job that has one.
Result<void> run_jobs(const std::vector<Job>& jobs, int threads);

}  // namespace weft::compiler
