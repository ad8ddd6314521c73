// weft check: everything that stands in the way of running a model, at once.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/table.h"
#include "frontend/onnx/import/import.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::cli {
namespace {

struct CheckArguments {
  std::string path;
  std::vector<std::string> dims;
  bool all_nodes = false;
};

Result<int> check(const CheckArguments& arguments) {
  WEFT_TRY(require_file(arguments.path));
  onnx::ImportOptions options;
  options.fixed = WEFT_TRY(parse_dims(arguments.dims));
  const onnx::Model model = WEFT_TRY(onnx::read_model_file(arguments.path));
  WEFT_TRY(onnx::validate(model));
  const std::vector<onnx::Gap> gaps = WEFT_TRY(onnx::find_gaps(model, options));
  if (gaps.empty()) {
    fmt::print("nothing is missing\n");
    return kSuccess;
  }
  Table table({"what", "missing", "nodes", "where"});
  for (const onnx::Gap& gap : gaps) {
    const std::size_t most = arguments.all_nodes ? SIZE_MAX : 3;
    table.row({gap.op, gap.reason, std::to_string(gap.nodes.size()), joined(gap.nodes, ", ", most)});
  }
  print(table);
  return kFailure;
}

}  // namespace

Action add_check(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  add_argument(app, "model", arguments->path, "an ONNX file");
  add_option(app, "--dim", arguments->dims, "NAME=SIZE: the size of a named dimension");
  add_flag(app, "--all-nodes", arguments->all_nodes, "name all nodes, not the first three");
  return [arguments] { return check(*arguments); };
}

}  // namespace weft::cli
