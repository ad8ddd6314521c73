// The commands of `weft`: one function each, in a file of its own. It declares the command's options and returns what
// is done when the command is chosen; that yields the exit code.
#pragma once

#include <functional>

#include "base/error.h"

namespace CLI {
class App;
}

namespace weft::cli {

enum ExitCode : int { kSuccess = 0, kFailure = 1, kUsage = 2, kInternal = 70 };

using Action = std::function<Result<int>()>;

Action add_run(CLI::App& app);
Action add_verify(CLI::App& app);
Action add_info(CLI::App& app);
Action add_check(CLI::App& app);
Action add_conformance(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_explain(CLI::App& app);
Action add_compile(CLI::App& app);
Action add_opt(CLI::App& app);
Action add_diff(CLI::App& app);
Action add_tune(CLI::App& app);
Action add_doctor(CLI::App& app);

}  // namespace weft::cli
