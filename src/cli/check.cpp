// weft check: everything that stands in the way of running a model, at once.
#include <fmt/format.h>

#include <memory>

#include "api/state.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/table.h"
#include "frontend/onnx/import/import.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::cli {
namespace {

struct CheckArguments : ModelArguments {
  bool all_nodes = false;
};

// That the target's language and device have what the kernels need. Nothing is built.
Result<void> check_target(const Model& model, const CheckArguments& arguments) {
  if (arguments.target == "cpu" || arguments.target == "ref") return {};
  compiler::Options how = WEFT_TRY(compiler_options(compile_options(arguments)));
  how.code = false;
  WEFT_TRY(compiler::compile(*model.state->graph(), how));
  return {};
}

Result<int> check(const CheckArguments& arguments) {
  WEFT_TRY(require_file(arguments.path));
  onnx::ImportOptions options;
  if (arguments.fixed) options.fixed = WEFT_TRY(parse_dims(arguments.dims));
  const onnx::Model model = WEFT_TRY(onnx::read_model_file(arguments.path));
  WEFT_TRY(onnx::validate(model));
  const std::vector<onnx::Gap> gaps = WEFT_TRY(onnx::find_gaps(model, options));
  // What cannot be compiled for every size may be for some.
  const Result<Model> loaded = load_model(arguments);
  if (loaded.ok()) {
    WEFT_TRY(check_target(*loaded, arguments));
    fmt::print("nothing is missing\n");
    return kSuccess;
  }
  if (gaps.empty()) return loaded.error();
  Table table({"what", "missing", "nodes", "where"});
  for (const onnx::Gap& gap : gaps) {
    const std::size_t most = arguments.all_nodes ? SIZE_MAX : 3;
    table.row({gap.op, gap.reason, std::to_string(gap.nodes.size()), joined(gap.nodes, ", ", most)});
  }
  print(table);
  if (const std::string& suggestion = loaded.error().suggestion(); !suggestion.empty()) fmt::print("{}\n", suggestion);
  return kFailure;
}

}  // namespace

Action add_check(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  add_model_options(app, *arguments);
  add_input_option(app, *arguments);
  add_target_option(app, arguments->target, arguments->code);
  add_flag(app, "--all-nodes", arguments->all_nodes, "name all nodes, not the first three");
  return [arguments] { return check(*arguments); };
}

}  // namespace weft::cli
