#include "cli/model.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "api/specialise.h"
#include "api/state.h"
#include "base/npy.h"
#include "base/text.h"
#include "cli/errors.h"
#include "cli/options.h"
#include "target/target.h"
#include "transform/pipeline.h"

namespace weft::cli {
namespace {

// The inputs given as files, before the model is known: NAME=FILE.npy.
Result<std::map<std::string, Tensor>> file_inputs(const std::vector<std::string>& arguments) {
  std::map<std::string, Tensor> inputs;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.rfind('=');
    if (equals == std::string::npos || !argument.ends_with(".npy")) continue;
    const std::string file = argument.substr(equals + 1);
    WEFT_TRY(require_file(file));
    inputs[argument.substr(0, equals)] = WEFT_TRY(read_npy(file));
  }
  return inputs;
}

// The names by which --dim may call sizes: those of the file.
std::vector<std::string> named_sizes(const Model& model) {
  std::set<std::string> names;
  for (const Port& port : model.inputs()) {
    for (const Dim& d : port.shape) d.collect_symbols(names);
  }
  for (const onnx::ValueInfo& input : model.state->source.graph->inputs) {
    if (!input.type.shape) continue;
    for (const onnx::DimSpec& d : *input.type.shape) {
      if (!d.param.empty()) names.insert(d.param);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

void add_model_options(CLI::App& app, ModelArguments& a, bool required) {
  add_argument(app, "model", a.path, "an ONNX file", required);
  add_option(app, "--dim", a.dims, "NAME=SIZE: the size of a named dimension (default 1)");
  add_flag(app, "--fixed", a.fixed, "the sizes of --dim are the only ones: compile for nothing else");
}

void add_run_options(CLI::App& app, ModelArguments& a) {
  add_model_options(app, a);
  add_option(app, "--input", a.inputs, "NAME=FILE.npy, NAME=random, zeros, ones or range:LO:HI (default random)");
  add_option(app, "--threads", a.threads, "threads (default: as many as this process may use)", {0, 4096});
  add_option(app, "--off", a.passes_off, "a graph pass that is left out; see 'weft opt --list'");
  add_cpu_option(app, a.cpu);
  add_option(app, "--precision", a.precision, "of f32 products: highest, high or medium");
  add_flag(app, "--no-cache", a.no_cache, "neither look compiled code up on disk nor keep it there");
}

void add_cpu_option(CLI::App& app, std::string& cpu) {
  add_option(app, "--cpu", cpu, "use no more than x86-64, x86-64-v2, x86-64-v3 or x86-64-v4 has");
}

void add_target_option(CLI::App& app, std::string& target) {
  add_option(app, "--target", target, "cpu, ref (the reference interpreter) or a device: opencl, opencl:1 ...");
}

Result<void> require_target(const std::string& target) {
  std::vector<std::string> names{"ref"};
  for (const target::Info& info : target::all()) names.push_back(info.name);
  return require_one_of("target", target.substr(0, target.find(':')), names);
}

Result<void> require_passes(const std::vector<std::string>& passes) {
  std::vector<std::string> names;
  for (const transform::Pass& pass : transform::passes()) names.push_back(pass.name);
  for (const std::string& pass : passes) WEFT_TRY(require_one_of("pass", pass, names));
  return {};
}

Result<Model> load_model(const ModelArguments& a) {
  WEFT_TRY(require_file(a.path));
  WEFT_TRY(require_target(a.target));
  WEFT_TRY(require_passes(a.passes_off));
  WEFT_TRY(require_one_of("precision", a.precision, {"highest", "high", "medium"}));
  const Sizes dims = WEFT_TRY(parse_dims(a.dims));
  LoadOptions options;
  if (a.fixed) options.sizes = dims;
  const Specialised loaded = WEFT_TRY(load_for(a.path, options, WEFT_TRY(file_inputs(a.inputs))));
  if (!loaded.note.empty()) fmt::print(stderr, "weft: note: {}\n", loaded.note);
  const Model& model = loaded.model;
  const std::vector<std::string> names = named_sizes(model);
  for (const auto& [name, size] : dims) WEFT_TRY(require_one_of("named dimension", name, names));
  return model;
}

Result<Program> compile_model(const Model& model, const ModelArguments& a) {
  CompileOptions options;
  options.target = a.target;
  options.threads = a.threads;
  options.passes_off = a.passes_off;
  options.precision = a.precision;
  options.cpu = a.cpu;
  options.cache = !a.no_cache;
  return compile(model, options);
}

Result<std::vector<Tensor>> model_inputs(const Model& model, const ModelArguments& a) {
  return make_inputs(model, a.inputs, WEFT_TRY(parse_dims(a.dims)));
}

}  // namespace weft::cli
