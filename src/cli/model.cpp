#include "cli/model.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "api/specialise.h"
#include "api/state.h"
#include "base/machine.h"
#include "base/npy.h"
#include "base/text.h"
#include "cli/defaults.h"
#include "cli/errors.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "target/places.h"
#include "target/target.h"
#include "transform/choices.h"

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

// The names by which --dim may call sizes: those of the file, and of the graph that it became.
std::vector<std::string> named_sizes(const Model& model) {
  std::set<std::string> names;
  for (const Port& port : model.inputs()) {
    for (const Dim& d : port.shape) d.collect_symbols(names);
  }
  for (const onnx::ValueInfo& input : model.state->source().graph->inputs) {
    for (std::size_t axis = 0; input.type.shape && axis < input.type.shape->size(); ++axis) {
      const onnx::DimSpec& spec = (*input.type.shape)[axis];
      if (!spec.value) names.insert(onnx::size_name(spec, input.name, axis));
    }
  }
  return {names.begin(), names.end()};
}

// What the command line says of the inputs of a file, for models that need it to compile.
struct Chosen {
  Sizes sizes;                              // of every open dimension: from --dim, from a file, or 1
  std::map<std::string, Tensor> given;      // by --input, but not at random
};

Result<Chosen> choose(const onnx::Graph& graph, const ModelArguments& a, const Sizes& dims,
                      const std::map<std::string, Tensor>& files) {
  Chosen chosen;
  for (const onnx::ValueInfo& info : graph.inputs) {
    const auto file = files.find(info.name);
    if (file != files.end()) chosen.given.insert(*file);
    if (!info.type.shape || !info.type.elem) continue;
    const bool has_file = file != files.end() && file->second.shape().size() == info.type.shape->size();
    std::vector<std::int64_t> shape;
    for (std::size_t axis = 0; axis < info.type.shape->size(); ++axis) {
      const onnx::DimSpec& spec = (*info.type.shape)[axis];
      const std::string name = onnx::size_name(spec, info.name, axis);
      const auto dim = dims.find(name);
      const std::int64_t open = has_file ? file->second.shape()[axis] : dim == dims.end() ? 1 : dim->second;
      shape.push_back(spec.value ? *spec.value : chosen.sizes.emplace(name, open).first->second);
    }
    for (const std::string& argument : a.inputs) {
      const std::string prefix = info.name + "=";
      if (file != files.end() || !argument.starts_with(prefix) || argument == prefix + "random") continue;
      chosen.given[info.name] = WEFT_TRY(make_tensor(info.name, *info.type.elem, shape, argument.substr(prefix.size())));
    }
  }
  return chosen;
}

std::string sizes_text(const Sizes& sizes) {
  std::vector<std::string> words;
  for (const auto& [name, size] : sizes) words.push_back(fmt::format("{}={}", name, size));
  return joined(words, " ");
}

// Compiled for the sizes of this run when the model cannot be compiled for any size; `why` says why not.
Result<Specialised> load_sized(const ModelArguments& a, const Sizes& dims, const std::map<std::string, Tensor>& files,
                               const Error& why) {
  const onnx::Model source = WEFT_TRY(onnx::read_model_file(a.path));
  WEFT_TRY(onnx::validate(source));
  const Chosen chosen = WEFT_TRY(choose(*source.graph, a, dims, files));
  LoadOptions options;
  options.sizes = chosen.sizes;
  Result<Specialised> loaded = load_for(a.path, options, chosen.given);
  if (loaded.ok()) {
    if (loaded->note.empty()) loaded->note = "compiled for these sizes only: " + sizes_text(chosen.sizes);
    return loaded;
  }
  std::vector<std::string> open;  // what was not given
  for (const auto& [name, size] : chosen.sizes) {
    if (!dims.count(name)) open.push_back(fmt::format("--dim {}=SIZE", name));
  }
  for (const onnx::ValueInfo& info : source.graph->inputs) {
    const bool setting = info.type.elem && !is_float(*info.type.elem) && info.type.shape && info.type.shape->size() <= 1;
    if (setting && !chosen.given.count(info.name)) open.push_back(fmt::format("--input {}=VALUE", info.name));
  }
  Error error = why;
  if (!open.empty()) error.suggest("it may compile for given sizes and values: " + joined(open, " "));
  return error;
}

}  // namespace

void add_model_options(CLI::App& app, ModelArguments& a, bool required) {
  add_argument(app, "model", a.path, "an ONNX file", required);
  add_option(app, "--dim", a.dims, "NAME=SIZE: the size of a named dimension (default 1)");
  add_flag(app, "--fixed", a.fixed, "the sizes of --dim are the only ones: compile for nothing else");
}

void add_input_option(CLI::App& app, ModelArguments& a) {
  add_option(app, "--input", a.inputs, "NAME=FILE.npy, a number, random, zeros, ones or range:LO:HI (default random)");
}

void add_precision_option(CLI::App& app, ModelArguments& a) {
  add_option(app, "--precision", a.precision, ("of f32 products: " + transform::listed(transform::kPrecisions)).c_str());
}

void add_run_options(CLI::App& app, ModelArguments& a) {
  add_model_options(app, a);
  add_input_option(app, a);
  add_option(app, "--threads", a.threads, "threads (default: as many as this process may use)", {0, 4096});
  add_option(app, "--off", a.passes_off, "a graph pass that is left out; see 'weft opt --list'");
  add_cpu_option(app, a.cpu);
  add_option(app, "--weights", a.weights, ("keep those of products as " + transform::listed(transform::kWeights)).c_str());
  add_precision_option(app, a);
  add_flag(app, "--no-tuned", a.no_tuned, "leave out the schedules that 'weft tune' found");
  add_flag(app, "--no-cache", a.no_cache, "neither look compiled code up on disk nor keep it there");
}

void add_cpu_option(CLI::App& app, std::string& cpu) {
  add_option(app, "--cpu", cpu, "use no more than this CPU has: x86-64-v2, x86-64-v3 ... (docs/cpus.md)");
}

void add_target_option(CLI::App& app, std::string& target, std::string& code) {
  add_option(app, "--target", target, "cpu, ref (the reference interpreter), a device (opencl, opencl:1 ...), a simulated one (sim:opencl, sim:sm_90a ...), or a device and the CPU, each kernel where it costs least (opencl+cpu)");
  add_code_option(app, code);
}

void add_code_option(CLI::App& app, std::string& code) {
  add_option(app, "--code", code, "the code that a device is given, where it takes several kinds: text or spirv (opencl)");
}

Result<void> require_target(const std::string& target) {
  std::vector<std::string> names{"ref"};
  for (const target::Info& info : target::all()) names.push_back(info.name);
  for (const std::string_view one : target::split(target)) {
    if (one.empty()) return usage_error("a target has no name").at("--target").found(target);
    WEFT_TRY(require_one_of("target", std::string(one.substr(0, one.find(':'))), names));
  }
  return {};
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
  WEFT_TRY(require_one_of("precision", a.precision, transform::names(transform::kPrecisions)));
  std::vector<std::string> cpus = cpu_names();
  cpus.push_back("native");
  WEFT_TRY(require_one_of("CPU", a.cpu, cpus));
  WEFT_TRY(require_one_of("weights", a.weights, transform::names(transform::kWeights)));
  const Sizes dims = WEFT_TRY(parse_dims(a.dims));
  LoadOptions options;
  options.cache = !a.no_cache;
  if (a.fixed) options.sizes = dims;
  const std::map<std::string, Tensor> files = WEFT_TRY(file_inputs(a.inputs));
  const Progress progress("reading");
  Result<Specialised> loaded = load_for(a.path, options, files);
  const auto lacks = [&] { return !loaded.ok() && loaded.error().kind() == ErrorKind::Unsupported; };
  if (lacks() && a.any_inputs) loaded = load_by_defaults(a, options, loaded.error());  // which must run, too
  if (lacks()) loaded = load_sized(a, dims, files, loaded.error());
  if (!loaded.ok()) return loaded.error();
  if (!loaded->note.empty()) fmt::print(stderr, "weft: note: {}\n", loaded->note);
  const Model& model = loaded->model;
  const std::vector<std::string> names = dims.empty() ? std::vector<std::string>() : named_sizes(model);
  for (const auto& [name, size] : dims) WEFT_TRY(require_one_of("named dimension", name, names));
  return model;
}

CompileOptions compile_options(const ModelArguments& a) {
  CompileOptions options;
  options.target = a.target;
  options.code = a.code;
  options.threads = a.threads;
  options.passes_off = a.passes_off;
  options.precision = a.precision;
  options.weights = a.weights;
  options.cpu = a.cpu;
  options.cache = !a.no_cache;
  options.tuned = !a.no_tuned;
  return options;
}

Result<Program> compile_model(const Model& model, const ModelArguments& a, const std::vector<Tensor>& inputs) {
  const Progress progress("compiling");
  CompileOptions options = compile_options(a);
  for (const Tensor& input : inputs) options.first_shapes.push_back(input.shape());
  return compile(model, options);
}

Result<std::vector<Tensor>> model_inputs(const Model& model, const ModelArguments& a) {
  return make_inputs(model, a.inputs, WEFT_TRY(parse_dims(a.dims)));
}

}  // namespace weft::cli
