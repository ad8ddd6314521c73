// weft conformance: runs the cases of a suite, each in a process of its own, and counts.
#include <fmt/format.h>

#include <memory>

#include "api/state.h"
#include "base/bytes.h"
#include "cli/cases.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/isolate.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/sweep.h"
#include "cli/table.h"
#include "runtime/pool.h"

namespace weft::cli {
namespace {

struct ConformanceArguments {
  std::vector<std::string> folders;
  std::string csv, filter;
  bool sweep = false;
  int stride = 1;
  Judging judging;
  bool plain = false;
  Tolerance tolerance;
  int jobs = 0;
  Limits limits;
  int memory_gib = 8;
};

struct Verdict {
  bool passed = false;
  double seconds = 0;
  std::string reason;
};

Result<std::vector<TestCase>> collect(const ConformanceArguments& arguments, int& skipped) {
  std::vector<TestCase> cases;
  for (const std::string& folder : arguments.folders) {
    WEFT_TRY(require_directory(folder));
    std::vector<TestCase> found = WEFT_TRY(find_cases(folder, arguments.tolerance));
    if (found.empty()) return usage_error("there are no cases in this folder").at(folder);
    for (TestCase& test : found) {
      const bool wanted = test.name.find(arguments.filter) != std::string::npos;
      wanted ? cases.push_back(std::move(test)) : void(++skipped);
    }
  }
  if (cases.empty()) return no_case_left(arguments.filter);
  return cases;
}

std::string csv_text(const std::vector<TestCase>& cases, const std::vector<Verdict>& verdicts) {
  std::string text = "case,result,seconds,reason\n";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Verdict& v = verdicts[i];
    text += fmt::format("{},{},{:.3f},{}\n", csv_field(cases[i].name), v.passed ? "passed" : "failed", v.seconds,
                        csv_field(v.reason));
  }
  return text;
}

Result<int> conformance(ConformanceArguments& arguments) {
  WEFT_TRY(require_target(arguments.judging.target));
  arguments.judging.optimised = !arguments.plain;
  arguments.limits.memory = std::int64_t{arguments.memory_gib} << 30;
  const int jobs = arguments.jobs > 0 ? arguments.jobs : runtime::decide_threads().threads;
  if (arguments.sweep != arguments.folders.empty()) {
    return usage_error(arguments.sweep ? "--sweep makes its own cases and takes no folder" : "a folder with cases is missing, or --sweep");
  }
  if (arguments.sweep) {
    return run_sweep({arguments.judging, arguments.filter, arguments.csv, jobs, arguments.stride, arguments.limits});
  }
  int skipped = 0;
  const std::vector<TestCase> cases = WEFT_TRY(collect(arguments, skipped));
  std::vector<Verdict> verdicts(cases.size());
  std::size_t ended = 0;
  const auto work = [&](int i) {
    const Result<std::string> reason =
        at_the_edge([&]() -> Result<std::string> { return judge(cases[i], arguments.judging); });
    if (!reason.ok()) return fmt::format("failed {}", reason.error().what());
    return reason->empty() ? std::string("passed") : "failed " + *reason;
  };
  const auto done = [&](int i, const Outcome& outcome) {
    Verdict& v = verdicts[i];
    v.seconds = outcome.seconds;
    v.passed = outcome.finished && outcome.text == "passed";
    if (!v.passed) v.reason = one_line(outcome.finished && outcome.text.size() > 7 ? outcome.text.substr(7) : outcome.text);
  };
  {
    Progress progress;
    run_isolated(static_cast<int>(cases.size()), jobs, arguments.limits, work, [&](int i, const Outcome& outcome) {
      done(i, outcome);
      ++ended;
      if (progress.due()) progress.say(fmt::format("{} of {} cases", ended, cases.size()));
    });
  }
  int failed = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (verdicts[i].passed) continue;
    ++failed;
    fmt::print("{}: {}\n", cases[i].name, verdicts[i].reason);
  }
  if (!arguments.csv.empty()) WEFT_TRY(write_file(arguments.csv, csv_text(cases, verdicts)));
  fmt::print("{} passed, {} failed, {} skipped\n", cases.size() - failed, failed, skipped);
  return failed > 0 ? kFailure : kSuccess;
}

}  // namespace

Action add_conformance(CLI::App& app) {
  auto a = std::make_shared<ConformanceArguments>();
  add_arguments(app, "folder", a->folders, "folders with cases, at any depth", false);
  add_flag(app, "--sweep", a->sweep, "instead of a folder: every op, over dtypes and shapes, beside the interpreter");
  add_option(app, "--stride", a->stride, "with --sweep: only every so many cases", {1, 1000000});
  add_target_option(app, a->judging.target, a->judging.code);
  add_cpu_option(app, a->judging.cpu);
  add_option(app, "--rtol", a->tolerance.rtol, "relative tolerance, unless the case has one");
  add_option(app, "--atol", a->tolerance.atol, "absolute tolerance, unless the case has one");
  add_option(app, "--csv", a->csv, "a file that receives case, result, seconds and reason");
  add_option(app, "--jobs", a->jobs, "cases at a time (default: as many as there are CPUs)", {1, 1024});
  add_option(app, "--filter", a->filter, "only cases whose name contains this; the others count as skipped");
  add_flag(app, "--unoptimised", a->plain, "leave all graph passes out");
  add_option(app, "--timeout", a->limits.seconds, "seconds for each case", {1, 86400});
  add_option(app, "--memory", a->memory_gib, "GiB of address space for each case; 0: no limit", {0, 4096});
  return [a] { return conformance(*a); };
}

}  // namespace weft::cli
