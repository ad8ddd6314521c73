// weft opt: the graph after the graph passes.
#include <fmt/format.h>

#include <memory>

#include "api/state.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/table.h"

namespace weft::cli {
namespace {

struct OptArguments : ModelArguments {
  bool list = false, verify_each = false;
  int limit = -1;
};

Result<int> list_passes() {
  Table table({"pass", "what it does"});
  for (const transform::Pass& pass : transform::passes()) table.row({pass.name, pass.doc});
  print(table);
  return kSuccess;
}

Result<int> opt(const OptArguments& arguments) {
  if (arguments.list) return list_passes();
  if (arguments.path.empty()) return usage_error("no model given").suggest("see 'weft help opt'");
  const Model model = WEFT_TRY(load_model(arguments));
  transform::PassOptions options;
  options.off.insert(options.off.end(), arguments.passes_off.begin(), arguments.passes_off.end());
  if (arguments.limit >= 0) options.limit = arguments.limit;
  options.verify_each = arguments.verify_each;
  fmt::print("{}", graph::print(WEFT_TRY(transform::optimize(*model.state->graph(), options))));
  return kSuccess;
}

}  // namespace

Action add_opt(CLI::App& app) {
  auto a = std::make_shared<OptArguments>();
  add_model_options(app, *a, false);
  add_flag(app, "--list", a->list, "list the passes, in their order");
  add_option(app, "--off", a->passes_off, "a pass that is left out");
  add_option(app, "--limit", a->limit, "run only the first so many passes", {0, 1000000});
  add_flag(app, "--verify-each", a->verify_each, "verify, print and parse the graph after each pass");
  return [a] { return opt(*a); };
}

}  // namespace weft::cli
