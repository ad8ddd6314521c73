// weft verify: compiled code against the reference interpreter, output by output.
#include <fmt/format.h>

#include <memory>

#include "api/state.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace weft::cli {
namespace {

struct VerifyArguments : ModelArguments {
  double rtol = 1e-3, atol = 1e-4;
};

Result<int> verify(const VerifyArguments& arguments) {
  const Model model = WEFT_TRY(load_model(arguments));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  const Program program = WEFT_TRY(compile_model(model, arguments));
  const std::vector<Tensor> got = WEFT_TRY(program.run(inputs));
  auto progress = std::make_unique<Progress>("interpreting");
  const std::vector<Tensor> want = WEFT_TRY(graph::interpret(*model.state->graph, inputs));
  progress.reset();
  Table table({"output", "dtype", "shape", "max abs", "max rel", "max ulp", "largest", "verdict"});
  bool right = true;
  std::vector<std::string> complaints;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    const double largest = largest_magnitude(want[i]);
    const Difference d = compare(got[i], want[i], {arguments.rtol, arguments.atol * largest});
    right = right && d.within();
    if (!d.within()) complaints.push_back(fmt::format("{}: {}", name, describe(d, got[i], want[i])));
    table.row({name, weft::name(want[i].dtype()), shape_str(want[i].shape()), number_text(d.max_abs),
               number_text(d.max_rel), number_text(d.max_ulp), number_text(largest), d.within() ? "ok" : "WRONG"});
  }
  print(table);
  for (const std::string& line : complaints) fmt::print("{}\n", line);
  return right ? kSuccess : kFailure;
}

}  // namespace

Action add_verify(CLI::App& app) {
  auto arguments = std::make_shared<VerifyArguments>();
  add_run_options(app, *arguments);
  add_target_option(app, arguments->target);
  add_option(app, "--rtol", arguments->rtol, "tolerance relative to each element");
  add_option(app, "--atol", arguments->atol, "tolerance relative to the output's largest magnitude");
  return [arguments] { return verify(*arguments); };
}

}  // namespace weft::cli
