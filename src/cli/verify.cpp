// weft verify: compiled code against the reference interpreter, output by output.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "api/specialise.h"
#include "api/state.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/defaults.h"
#include "cli/model.h"
#include "cli/noise.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace weft::cli {
namespace {

struct VerifyArguments : ModelArguments {
  VerifyArguments() { any_inputs = true; }
  double rtol = 1e-3, atol = 1e-4;
};

// Beyond the tolerance, an output may still be as right as f32 allows: a model that subtracts large equal numbers moves
// by more than that when anything rounds elsewhere. Allowed is then a multiple of what rounding alone does to it.
constexpr double kNoiseAllowed = 4;

// What the interpreter gives: for the model as loaded, or, as a program's run does it, made for the sizes of the inputs.
Result<std::vector<Tensor>> interpreted(Model& model, const std::vector<Tensor>& inputs) {
  const Progress progress("interpreting");
  auto outputs = graph::interpret(*model.state->graph(), inputs);
  const auto how = outputs.ok() ? std::nullopt : fixing(model, inputs);
  if (!how) return outputs;
  model = WEFT_TRY(import_again(model, *how));
  return graph::interpret(*model.state->graph(), inputs);
}

Result<int> verify(const VerifyArguments& arguments) {
  Model model = WEFT_TRY(load_model(arguments));
  const Program program = WEFT_TRY(compile_model(model, arguments));
  const auto [inputs, got] = WEFT_TRY(run_fitting(model, program, arguments));
  const std::vector<Tensor> want = WEFT_TRY(interpreted(model, inputs));
  Table table({"output", "dtype", "shape", "max abs", "max rel", "max ulp", "largest", "verdict"});
  bool right = true;
  std::vector<std::string> remarks;
  std::optional<Result<std::vector<double>>> noise;  // worked out when first needed
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    const double largest = largest_magnitude(want[i]);
    const Tolerance tolerance{arguments.rtol, arguments.atol * largest};
    Difference d = compare(got[i], want[i], tolerance);
    if (!d.within()) {
      if (!noise) noise = rounding_noise(*model.state->graph(), inputs, want);
      const std::string what = describe(d, got[i], want[i]);
      if (noise->ok()) d = compare(got[i], want[i], {tolerance.rtol, tolerance.atol + kNoiseAllowed * (**noise)[i]});
      remarks.push_back(!d.within() ? fmt::format("{}: {}", name, what)
                                    : fmt::format("{}: rounding to f32 alone moves it by {}; {} times that is allowed", name,
                                                  number_text((**noise)[i]), kNoiseAllowed));
    }
    right = right && d.within();
    table.row({name, weft::name(want[i].dtype()), shape_str(want[i].shape()), number_text(d.max_abs),
               number_text(d.max_rel), number_text(d.max_ulp), number_text(largest), d.within() ? "ok" : "WRONG"});
  }
  print(table);
  for (const std::string& line : remarks) fmt::print("{}\n", line);
  return right ? kSuccess : kFailure;
}

}  // namespace

Action add_verify(CLI::App& app) {
  auto arguments = std::make_shared<VerifyArguments>();
  add_run_options(app, *arguments);
  add_target_option(app, arguments->target, arguments->code);
  add_option(app, "--rtol", arguments->rtol, "tolerance relative to each element");
  add_option(app, "--atol", arguments->atol, "tolerance relative to the output's largest magnitude");
  return [arguments] { return verify(*arguments); };
}

}  // namespace weft::cli
