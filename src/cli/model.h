// The arguments that name a model and how to run it, shared by the commands.
#pragma once

#include <string>
#include <vector>

#include "cli/inputs.h"

namespace CLI {
class App;
}

namespace weft::cli {

struct ModelArguments {
  std::string path;
  std::vector<std::string> dims;
  bool fixed = false;  // the sizes given are the only ones
  bool any_inputs = false;  // what the user leaves open may be anything that the model takes
  // Those of commands that run the model:
  std::vector<std::string> inputs;
  std::string target = "cpu";
  std::string code;
  int threads = 0;
  std::vector<std::string> passes_off;
  bool no_cache = false;
  bool no_tuned = false;
  std::string precision = "highest";
  std::string weights = "f32";
  std::string cpu = "native";
};

void add_model_options(CLI::App& app, ModelArguments& arguments, bool required = true);  // MODEL --dim --fixed
void add_input_option(CLI::App& app, ModelArguments& arguments);
void add_precision_option(CLI::App& app, ModelArguments& arguments);
void add_run_options(CLI::App& app, ModelArguments& arguments);  // those, and --input --threads ...
void add_target_option(CLI::App& app, std::string& target, std::string& code);  // with that one:
void add_code_option(CLI::App& app, std::string& code);
void add_cpu_option(CLI::App& app, std::string& cpu);

Result<void> require_target(const std::string& target);
Result<void> require_passes(const std::vector<std::string>& passes);

Result<Model> load_model(const ModelArguments& arguments);
CompileOptions compile_options(const ModelArguments& arguments);
// For any sizes; `inputs`: of the first run, if they are known.
Result<Program> compile_model(const Model& model, const ModelArguments& arguments, const std::vector<Tensor>& inputs = {});
Result<std::vector<Tensor>> model_inputs(const Model& model, const ModelArguments& arguments);

}  // namespace weft::cli
