// weft tune: tries the candidates of each kernel's schedule and keeps those that are faster than the model's choice.
//
// In a round every kernel that matters takes its next candidate, and the program made of them runs by turns with the
// default one, so that one compilation tries a candidate of each. What won its round must win again, together with all
// others that did, before it is kept. What was tried is kept as well: a later call goes on from there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "api/state.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/race.h"
#include "cli/schedules.h"
#include "cli/table.h"
#include "compile/tuned.h"
#include "runtime/cache.h"

namespace weft::cli {
namespace {

struct TuneArguments : ModelArguments {
  double seconds = 30;
  bool again = false;
};

constexpr double kShare = 0.005;         // of the run time: kernels below are left alone
constexpr std::size_t kCandidates = 12;  // of a kernel, at most
constexpr double kConfirm = 0.25;        // of the time, for the winners to win again

struct Kernel {
  KernelSchedule schedule;
  std::string standard;    // print() of the default
  compiler::Tuned known;
  std::string best;        // of those that won a round; empty: none
  double best_ratio = 1, share = 0;

  // The cheapest that was not tried; empty: there is none.
  std::string next() const {
    std::size_t k = 0;
    for (const schedule::Candidate& c : schedule.schedule.candidates) {
      if (++k > kCandidates) break;
      std::string record = schedule::print(c.record);
      if (record != standard && std::find(known.tried.begin(), known.tried.end(), record) == known.tried.end()) return record;
    }
    return "";
  }
};

class Tuner {
 public:
  Tuner(const Model& model, std::vector<Tensor> inputs, const TuneArguments& arguments, compiler::Options how)
      : model_(model), inputs_(std::move(inputs)), arguments_(arguments), how_(std::move(how)) {
    how_.tuned = false;
  }

  Result<void> run() {
    standard_ = WEFT_TRY(compile({}));
    WEFT_TRY(find_kernels());
    while (passed() < (1 - kConfirm) * arguments_.seconds) {
      if (!WEFT_TRY(round())) break;
    }
    return confirm();
  }

  void print_result() const;

 private:
  struct Made {
    compiler::Compiled compiled;
    std::unique_ptr<const runtime::Executable> executable;
  };

  double passed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  Result<Made> compile(const std::map<std::string, std::string>& choices) const {
    compiler::Options how = how_;
    how.choices = choices;
    how.cache = how.cache && choices.empty();
    Made made;
    made.compiled = WEFT_TRY(compiler::compile(*model_.state->graph(), how));
    made.executable = std::make_unique<const runtime::Executable>(made.compiled.plan);
    return made;
  }

  Result<Race> against_standard(const Made& made, double seconds) const {
    return race(*standard_.executable, *made.executable, inputs_, arguments_.threads, which_, seconds);
  }

  Result<void> find_kernels() {
    std::vector<KernelSchedule> all = WEFT_TRY(schedules_of(*standard_.compiled.graph, how_));
    std::map<std::string, int> numbers;
    for (const KernelSchedule& k : all) which_.push_back(numbers.try_emplace(k.text, static_cast<int>(numbers.size())).first->second);
    for (KernelSchedule& k : unique_kernels(std::move(all))) {
      Kernel kernel;
      kernel.standard = schedule::print(k.schedule.variants.back().record);
      const auto known = arguments_.again ? std::nullopt : compiler::find_tuned(how_.machine, k.text, k.facts);
      if (known) kernel.known = *known;
      kernel.best = kernel.known.choice;
      kernel.schedule = std::move(k);
      kernels_.push_back(std::move(kernel));
    }
    const Race itself = WEFT_TRY(against_standard(standard_, 0));
    double all_us = 0;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      std::vector<double> took = itself.kernels[k].first;
      std::sort(took.begin(), took.end());
      all_us += kernels_[k].share = took[took.size() / 2];
    }
    for (Kernel& kernel : kernels_) kernel.share /= std::max(all_us, 1e-12);
    return {};
  }

  // Whether there was anything left to try.
  Result<bool> round() {
    std::map<std::string, std::string> choices;
    std::vector<std::pair<std::size_t, std::string>> trying;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      if (kernels_[k].share < kShare) continue;
      std::string record = kernels_[k].next();
      if (record.empty()) continue;
      choices[kernels_[k].schedule.text] = record;
      trying.emplace_back(k, std::move(record));
    }
    if (trying.empty()) return false;
    progress_.say(fmt::format("round {}: {} kernels, {:.0f} s", ++rounds_, trying.size(), passed()));
    const Made made = WEFT_TRY(compile(choices));
    const Race race = WEFT_TRY(against_standard(made, arguments_.seconds / 50));
    for (auto& [k, record] : trying) {
      Kernel& kernel = kernels_[k];
      const double ratio = race.kernels[k].median_ratio();
      if (race.kernels[k].second_wins() && ratio < kernel.best_ratio) kernel.best = record, kernel.best_ratio = ratio;
      kernel.known.tried.push_back(std::move(record));
      compiler::keep_tuned(how_.machine, kernel.schedule.text, kernel.schedule.facts, kernel.known);
    }
    return true;
  }

  // All winners at once against the default.
  Result<void> confirm() {
    std::map<std::string, std::string> choices;
    for (const Kernel& kernel : kernels_) {
      if (!kernel.best.empty()) choices[kernel.schedule.text] = kernel.best;
    }
    if (choices.empty()) return {};
    progress_.say(fmt::format("the winners again: {} kernels", choices.size()));
    const Made made = WEFT_TRY(compile(choices));
    const Race race = WEFT_TRY(against_standard(made, std::max(1.0, kConfirm / 2 * arguments_.seconds)));
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      Kernel& kernel = kernels_[k];
      if (kernel.best.empty()) continue;
      kernel.best_ratio = race.kernels[k].median_ratio();
      kernel.known.choice = race.kernels[k].second_wins() ? kernel.best : "";
      compiler::keep_tuned(how_.machine, kernel.schedule.text, kernel.schedule.facts, kernel.known);
    }
    return {};
  }

  const Model& model_;
  const std::vector<Tensor> inputs_;
  const TuneArguments& arguments_;
  compiler::Options how_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Progress progress_;
  Made standard_;
  std::vector<Kernel> kernels_;  // the unique ones
  std::vector<int> which_;       // of each launch
  int rounds_ = 0;
};

void Tuner::print_result() const {
  Table table({"share", "of its time", "kernel", "nodes", "schedule"});
  double gained = 0;
  std::size_t tried = 0;
  for (const Kernel& k : kernels_) {
    tried += k.known.tried.size();
    if (k.known.choice.empty()) continue;
    gained += k.share * (1 - k.best_ratio);
    table.row({fmt::format("{:.1f}%", 100 * k.share), fmt::format("{:.2f}", k.best_ratio), k.schedule.group.name,
               joined(k.schedule.group.origins, " + ", 2), k.known.choice});
  }
  if (!table.empty()) print(table);
  fmt::print("{}{} kernels, {} candidates tried, {} rounds; {}\n", table.empty() ? "" : "\n", kernels_.size(), tried, rounds_,
             table.empty() ? std::string("the model's choices stay") : fmt::format("a run takes {:.1f} % less", 100 * gained));
}

Result<int> tune(const TuneArguments& arguments) {
  WEFT_TRY(require_file(arguments.path));
  if (runtime::Cache().directory().empty()) {
    return usage_error("there is no place to keep what is found").suggest("set WEFT_CACHE_DIR to a folder");
  }
  const Model model = WEFT_TRY(load_model(arguments));
  std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  Tuner tuner(model, std::move(inputs), arguments, WEFT_TRY(compiler_options(compile_options(arguments))));
  WEFT_TRY(tuner.run());
  tuner.print_result();
  return kSuccess;
}

}  // namespace

Action add_tune(CLI::App& app) {
  auto a = std::make_shared<TuneArguments>();
  add_run_options(app, *a);
  add_option(app, "--seconds", a->seconds, "how long to try", {1.0, 86400.0});
  add_flag(app, "--again", a->again, "forget what was tried before");
  return [a] { return tune(*a); };
}

}  // namespace weft::cli
