// The sweep's cases are many and small: those of one op share a process. Where one takes the process with it, the cases
// of that process are run again one by one, so that the one to blame is named.
#include "cli/sweep.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "api/state.h"
#include "base/bytes.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "sweep/sweep.h"
#include "target/target.h"
#include "transform/pipeline.h"

namespace weft::cli {
namespace {

using sweep::Case;
using Ran = Result<std::vector<Tensor>>;
using Run = std::function<Ran(const std::vector<Tensor>&)>;

constexpr int kCasesOfAProcess = 48;

struct Answer {
  enum class Kind : char { Passed = 'p', Unsupported = 'u', Failed = 'f' } kind = Kind::Failed;
  std::string reason;
  double seconds = 0;
};

const char* name_of(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::Passed: return "passed";
    case Answer::Kind::Unsupported: return "unsupported";
    case Answer::Kind::Failed: return "failed";
  }
  return "";
}

// The graph as a program of the target. For "ref" it is what the passes make of it, interpreted.
Result<Run> program_of(const graph::Graph& graph, const compiler::Options& how, bool interpreted) {
  if (interpreted) {
    auto optimised = std::make_shared<const graph::Graph>(WEFT_TRY(transform::optimize(graph, how.passes)));
    return Run([optimised](const std::vector<Tensor>& inputs) { return graph::interpret(*optimised, inputs); });
  }
  const compiler::Compiled compiled = WEFT_TRY(compiler::compile(graph, how));
  auto executable = std::make_shared<const runtime::Executable>(compiled.plan);
  return Run([executable](const std::vector<Tensor>& inputs) -> Ran {
    std::vector<Tensor> outputs;
    runtime::RunOptions one;
    one.threads = 1;
    WEFT_TRY(executable->run(inputs, outputs, one));
    return outputs;
  });
}

Answer refusal(const Error& error) {
  if (error.kind() == ErrorKind::Unsupported) return {Answer::Kind::Unsupported, error.code() + ": " + error.message()};
  return {Answer::Kind::Failed, error.what()};
}

// What the interpreter refuses must be refused with the same code.
Answer judge_refused(const Ran& got, const Error& want) {
  if (got.ok()) return {Answer::Kind::Failed, fmt::format("it ran, though it should be refused: {}", want.what())};
  if (got.error().code() == want.code()) return {Answer::Kind::Passed, ""};
  const Answer answer = refusal(got.error());
  if (answer.kind == Answer::Kind::Unsupported) return answer;
  return {Answer::Kind::Failed, fmt::format("{}, though it should be: {}", got.error().what(), want.what())};
}

Answer judge_run(const Case& c, const Run& run, const Bindings& sizes) {
  const std::vector<Tensor> inputs = sweep::inputs_of(c, sizes).value();
  const Ran want = graph::interpret(c.graph, inputs);
  const Ran got = run(inputs);
  if (!want.ok()) return judge_refused(got, want.error());
  if (!got.ok()) return refusal(got.error());
  if (got->size() != want->size()) return {Answer::Kind::Failed, fmt::format("{} outputs instead of {}", got->size(), want->size())};
  for (std::size_t i = 0; i < want->size(); ++i) {
    const Difference d = compare((*got)[i], (*want)[i], {c.rtol, c.atol});
    if (!d.within()) return {Answer::Kind::Failed, fmt::format("output {}: {}", i, describe(d, (*got)[i], (*want)[i]))};
  }
  return {Answer::Kind::Passed, ""};
}

Answer judge_case(const Case& c, const compiler::Options& how, bool interpreted) {
  const auto answer = at_the_edge([&]() -> Result<Answer> {
    const Run run = WEFT_TRY(program_of(c.graph, how, interpreted));
    for (const Bindings& sizes : c.runs) {
      Answer one = judge_run(c, run, sizes);
      if (one.kind == Answer::Kind::Passed) continue;
      for (const auto& [symbol, value] : sizes) one.reason += one.kind == Answer::Kind::Failed ? fmt::format(", {}={}", symbol, value) : "";
      return one;
    }
    return Answer{Answer::Kind::Passed, ""};
  });
  return answer.ok() ? *answer : refusal(answer.error());
}

Result<compiler::Options> options_of(const Judging& judging) {
  CompileOptions options = compile_options(judging);
  if (judging.target == "ref") options.target = "cpu";  // for what the passes do
  return compiler_options(options);
}

// Cases of one process, by their numbers.
using Batch = std::vector<int>;

std::vector<Batch> batches_of(const std::vector<Case>& cases) {
  std::vector<Batch> batches;
  for (int i = 0; i < static_cast<int>(cases.size()); ++i) {
    const bool fits = !batches.empty() && batches.back().size() < kCasesOfAProcess && cases[batches.back()[0]].op == cases[i].op;
    if (!fits) batches.emplace_back();
    batches.back().push_back(i);
  }
  return batches;
}

class Sweep {
 public:
  Sweep(const SweepArguments& arguments, std::vector<Case> cases)
      : arguments_(arguments), cases_(std::move(cases)), answers_(cases_.size()) {}

  const std::vector<Answer>& run() {
    run_batches(batches_of(cases_));
    std::vector<Batch> again;
    for (int i : unanswered_) again.push_back({i});
    unanswered_.clear();
    alone_ = true;
    run_batches(again);
    return answers_;
  }
  const std::vector<Case>& cases() const { return cases_; }

 private:
  // One line for each case: kind, seconds, reason.
  std::string work(const Batch& batch) const {
    const auto how = at_the_edge([&] { return options_of(arguments_.judging); });
    std::string text;
    for (int i : batch) {
      const auto start = std::chrono::steady_clock::now();
      const Answer a = how.ok() ? judge_case(cases_[i], *how, arguments_.judging.target == "ref") : refusal(how.error());
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      text += fmt::format("{} {:.4f} {}\n", static_cast<char>(a.kind), seconds, one_line(a.reason));
    }
    return text;
  }

  void take(const Batch& batch, const Outcome& outcome) {
    if (!outcome.finished) {
      if (alone_) answers_[batch[0]] = {Answer::Kind::Failed, outcome.text, outcome.seconds};
      if (!alone_) unanswered_.insert(unanswered_.end(), batch.begin(), batch.end());
      return;
    }
    std::size_t at = 0;
    for (int i : batch) {
      const std::size_t end = outcome.text.find('\n', at), space = outcome.text.find(' ', at + 2);
      answers_[i] = {static_cast<Answer::Kind>(outcome.text[at]), outcome.text.substr(space + 1, end - space - 1),
                     std::strtod(outcome.text.c_str() + at + 2, nullptr)};
      at = end + 1;
    }
  }

  void run_batches(const std::vector<Batch>& batches) {
    Limits limits = arguments_.limits;
    if (!alone_) limits.seconds *= 4;  // a batch may hold a few that are slow
    Progress progress;
    std::size_t ended = 0;
    run_isolated(
        static_cast<int>(batches.size()), arguments_.jobs, limits, [&](int i) { return work(batches[i]); },
        [&](int i, const Outcome& outcome) {
          take(batches[i], outcome);
          ++ended;
          if (progress.due()) progress.say(fmt::format("{} of {} parts", ended, batches.size()));
        });
  }

  const SweepArguments& arguments_;
  const std::vector<Case> cases_;
  std::vector<Answer> answers_;
  std::vector<int> unanswered_;
  bool alone_ = false;  // a case has its process to itself
};

std::vector<Case> wanted_cases(const SweepArguments& arguments, int& skipped) {
  std::vector<Case> all = sweep::cases(), wanted;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool take = i % arguments.stride == 0 && all[i].name.find(arguments.filter) != std::string::npos;
    take ? wanted.push_back(std::move(all[i])) : void(++skipped);
  }
  return wanted;
}

std::string table_of(const std::vector<Case>& cases, const std::vector<Answer>& answers) {
  std::string text = "case,result,seconds,reason\n";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    text += fmt::format("{},{},{:.4f},{}\n", csv_field(cases[i].name), name_of(answers[i].kind), answers[i].seconds,
                        csv_field(answers[i].reason));
  }
  return text;
}

}  // namespace

Error no_case_left(const std::string& filter) { return usage_error("no case's name contains this").at("--filter").found(filter); }

Result<int> run_sweep(const SweepArguments& arguments) {
  int skipped = 0;
  std::vector<Case> wanted = wanted_cases(arguments, skipped);
  if (wanted.empty()) return no_case_left(arguments.filter);
  Sweep sweep(arguments, std::move(wanted));
  const std::vector<Answer>& answers = sweep.run();
  std::map<Answer::Kind, int> counts;
  std::map<std::string, int> reasons;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ++counts[answers[i].kind];
    if (answers[i].kind == Answer::Kind::Unsupported) ++reasons[answers[i].reason];
    if (answers[i].kind == Answer::Kind::Failed) fmt::print("{}: {}\n", sweep.cases()[i].name, answers[i].reason);
  }
  for (const auto& [reason, count] : reasons) fmt::print("{} unsupported: {}\n", count, reason);
  if (!arguments.csv.empty()) WEFT_TRY(write_file(arguments.csv, table_of(sweep.cases(), answers)));
  const int failed = counts[Answer::Kind::Failed];
  fmt::print("{} passed, {} unsupported, {} failed, {} skipped\n", counts[Answer::Kind::Passed], counts[Answer::Kind::Unsupported], failed,
             skipped);
  return failed > 0 ? kFailure : kSuccess;
}

}  // namespace weft::cli
