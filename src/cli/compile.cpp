// weft compile: what each stage of the compiler makes of a model.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "api/state.h"
#include "base/bytes.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/text_check.h"

namespace weft::cli {
namespace {

const std::vector<std::string> kStages{"graph", "loop", "tile", "kernel", "llvm", "asm"};
const std::vector<std::string> kTargetStages{"graph", "loop", "tile", "kernel", "source", "plan"};  // of one that --target names
constexpr const char* kObject = "object";  // not text: only to a file

struct CompileArguments : ModelArguments {
  CompileArguments() { any_inputs = true; }
  std::string emit, output_dir, output;
  bool check_text = false;
};

// To stdout, to one file, or to files loop-NAME.txt ... of a folder; several texts of one name (variants) follow each
// other in one file.
class Sink {
 public:
  Sink(std::string folder, std::string file) : folder_(std::move(folder)), file_(std::move(file)) {}

  void add(const std::string& stage, const std::string& name, const std::string& text) {
    if (!file_.empty()) {
      files_[file_] += text;
      return;
    }
    if (folder_.empty()) {
      fmt::print("{}{}", text, !text.empty() && text.back() == '\n' ? "" : "\n");
      return;
    }
    const std::string file = fmt::format("{}-{}.{}", stage, name, stage == "llvm" ? "ll" : stage == "asm" ? "s" : "txt");
    files_[file] += text;
  }

  Result<void> finish() const {
    if (!file_.empty()) {
      const auto found = files_.find(file_);
      return write_file(file_, found == files_.end() ? "" : found->second);
    }
    if (folder_.empty()) return {};
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return user_error("file", "cannot make the folder: " + error.message()).at(folder_);
    for (const auto& [file, text] : files_) WEFT_TRY(write_file((std::filesystem::path(folder_) / file).string(), text));
    fmt::print("{} files in {}\n", files_.size(), folder_);
    return {};
  }

 private:
  std::string folder_, file_;
  std::map<std::string, std::string> files_;
};

void print_report(const compiler::Report& r) {
  Table table({"stage", "ms"});
  for (const compiler::StageTime& t : compiler::stage_times(r)) {
    table.row({fmt::format("{}{}", t.within ? "  " : "", t.stage), fmt::format("{:.2f}", t.ms)});
  }
  table.row({"all", fmt::format("{:.2f}", r.total_ms)});
  print(table);
  fmt::print("\n{} nodes, {} prims, {} loops, {} kernels, {} unique kernels ({} compiled, the rest when a run takes them), {} host steps{}\n", r.nodes, r.prims, r.loops,
             r.kernels, r.unique_kernels, r.compiled_kernels, r.host_steps, r.from_cache ? ", code from the cache" : "");
}

const std::vector<std::string>& stages(const CompileArguments& a) { return a.target == "cpu" ? kStages : kTargetStages; }

Result<void> check_emit(const CompileArguments& a) {
  std::vector<std::string> known = stages(a);
  if (a.target == "cpu") known.push_back(kObject);
  if (!a.emit.empty()) WEFT_TRY(require_one_of("stage", a.emit, known));
  if (a.emit == kObject && a.output.empty()) return usage_error("machine code goes to a file").suggest("-o FILE.o");
  if (!a.output.empty() && a.emit.empty()) return usage_error("nothing to write").at("--output").suggest("--emit object -o FILE.o");
  if (!a.output.empty() && !a.output_dir.empty()) return usage_error("either one file or a folder").at("--output");
  return {};
}

// Code for a CPU that this one is not is made, and not loaded.
Result<compiler::Options> options_of(const CompileArguments& arguments) {
  compiler::Options options = WEFT_TRY(compiler_options(compile_options(arguments)));
  options.load = require_here(options).ok();
  if (options.target && !options.load) options.code = false;
  return options;
}

Result<int> compile(const CompileArguments& arguments) {
  WEFT_TRY(check_emit(arguments));
  const Model model = WEFT_TRY(load_model(arguments));
  Sink sink(arguments.output_dir, arguments.output);
  compiler::Options options = WEFT_TRY(options_of(arguments));
  if (arguments.emit == kObject) options.code = false;  // once is enough
  if (!arguments.emit.empty() || !arguments.output_dir.empty()) {
    options.dump_stages = arguments.emit.empty() ? joined(stages(arguments), ",") : arguments.emit;
    options.dump = [&](const std::string& stage, const std::string& name, const std::string& text) {
      sink.add(stage, name, text);
    };
  }
  const compiler::Compiled compiled = WEFT_TRY(compiler::compile(*model.state->graph(), options));
  WEFT_TRY(sink.finish());
  if (arguments.emit.empty() && arguments.output_dir.empty()) print_report(compiled.report);
  return kSuccess;
}

// Every item of the levels that parse back; what they print again must be the same.
Result<int> check_text(const CompileArguments& arguments) {
  const Model model = WEFT_TRY(load_model(arguments));
  TextCheck check;
  check.add("graph", "as imported", graph::print(*model.state->graph()));
  compiler::Options options = WEFT_TRY(options_of(arguments));
  options.code = false;
  options.dump_stages = joined(kParsedStages, ",");
  options.dump = [&](const std::string& stage, const std::string& name, const std::string& text) {
    check.add(stage, name, text);
  };
  const compiler::Compiled compiled = WEFT_TRY(compiler::compile(*model.state->graph(), options));
  graph::Sidecar constants;
  graph::collect_constants(*model.state->graph(), constants);
  graph::collect_constants(*compiled.graph, constants);
  const std::map<std::string, int> counts = WEFT_TRY(check.run(constants));
  std::vector<std::string> parts;
  for (const std::string& stage : kParsedStages) parts.push_back(fmt::format("{} {}", counts.at(stage), stage));
  fmt::print("texts that parse back to themselves: {}\n", joined(parts, ", "));
  return kSuccess;
}

}  // namespace

Action add_compile(CLI::App& app) {
  auto a = std::make_shared<CompileArguments>();
  add_model_options(app, *a);
  add_option(app, "--emit", a->emit, "graph, loop, tile, kernel, llvm, asm or object; source and plan with --target (default: how long each stage took)");
  add_option(app, "--output,-o", a->output, "a file that receives what --emit names");
  add_option(app, "--target", a->target, "cpu, a device (opencl) or a machine that need not be here (cuda:sm_90a); --emit source is what its compiler takes");
  add_code_option(app, a->code);
  add_option(app, "--cpu", a->cpu, "compile for this CPU, which need not be the one here: a name of docs/cpus.md");
  add_option(app, "--output-dir", a->output_dir, "a folder that receives a file per item (without --emit: of all stages)");
  add_option(app, "--input", a->inputs, "NAME=FILE.npy: an input whose value decides what the model does");
  add_flag(app, "--check-text", a->check_text, "only check that what the levels print parses back and prints the same again");
  add_option(app, "--off", a->passes_off, "a graph pass that is left out; see 'weft opt --list'");
  add_precision_option(app, *a);
  add_option(app, "--threads", a->threads, "threads of the code generator", {0, 4096});
  add_flag(app, "--no-cache", a->no_cache, "neither look compiled code up on disk nor keep it there");
  return [a] { return a->check_text ? check_text(*a) : compile(*a); };
}

}  // namespace weft::cli
