#include "cli/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "api/state.h"
#include "cli/compared.h"
#include "cli/table.h"
#include "frontend/onnx/reader/reader.h"

namespace weft::cli {
namespace {

constexpr std::size_t kMostSizes = 4;  // of those that are varied
constexpr std::int64_t kTried[] = {2, 32, 512};

bool gives_files(const ModelArguments& a) {
  return std::any_of(a.inputs.begin(), a.inputs.end(), [](const std::string& s) { return s.ends_with(".npy"); });
}

// The SPEC of --input NAME=SPEC.
std::string spec_of(const ModelArguments& a, const onnx::Graph& graph, const onnx::ValueInfo& input) {
  for (const std::string& argument : a.inputs) {
    if (argument.rfind(input.name + "=", 0) == 0) return argument.substr(input.name.size() + 1);
  }
  const auto known = compared_with(graph, input.name);
  return known ? std::to_string(*known) : "random";
}

std::string text(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const auto& [name, size] : sizes) parts.push_back(fmt::format("{}={}", name, size));
  return joined(parts, " ");
}

// The inputs that a file's graph declares and gives no value, with the sizes filled in (1 where there is none).
Result<std::map<std::string, Tensor>> declared_inputs(const onnx::Graph& graph, const ModelArguments& a, const Sizes& sizes) {
  std::set<std::string> initialised;
  for (const onnx::NamedTensor& t : graph.initializers) initialised.insert(t.name);
  std::map<std::string, Tensor> inputs;
  for (const onnx::ValueInfo& info : graph.inputs) {
    if (initialised.count(info.name) || !info.type.shape || !info.type.elem) continue;
    std::vector<std::int64_t> shape;
    for (std::size_t d = 0; d < info.type.shape->size(); ++d) {
      const onnx::DimSpec& spec = (*info.type.shape)[d];
      const auto chosen = sizes.find(onnx::size_name(spec, info.name, d));
      shape.push_back(spec.value ? *spec.value : chosen == sizes.end() ? 1 : chosen->second);
    }
    inputs[info.name] = WEFT_TRY(make_tensor(info.name, *info.type.elem, shape, spec_of(a, graph, info)));
  }
  return inputs;
}

// The sizes that the graph leaves open.
std::vector<std::string> open_sizes(const onnx::Graph& graph, const Sizes& given) {
  std::set<std::string> names;
  for (const onnx::ValueInfo& info : graph.inputs) {
    for (std::size_t d = 0; info.type.shape && d < info.type.shape->size(); ++d) {
      const onnx::DimSpec& spec = (*info.type.shape)[d];
      if (!spec.value) names.insert(onnx::size_name(spec, info.name, d));
    }
  }
  for (const auto& [name, size] : given) names.erase(name);
  return {names.begin(), names.end()};
}

// Whether the model takes what the command line gives it: it may be imported for sizes that its operators then refuse.
bool runs(const Model& model, const ModelArguments& a) {
  const auto inputs = model_inputs(model, a);
  if (!inputs.ok()) return false;
  CompileOptions options = compile_options(a);
  options.cpu = "native";  // where the code is for another CPU as well
  const auto program = compile(model, options);
  return program.ok() && program->run(*inputs).ok();
}

}  // namespace

std::vector<Sizes> size_choices(const std::vector<std::string>& names) {
  const std::size_t count = std::min(names.size(), kMostSizes);
  std::vector<unsigned> subsets;
  for (unsigned s = 1; s < 1u << count; ++s) subsets.push_back(s);
  std::stable_sort(subsets.begin(), subsets.end(), [](unsigned a, unsigned b) { return std::popcount(a) < std::popcount(b); });
  std::vector<Sizes> choices{{}};
  for (const std::int64_t size : kTried) {
    for (const unsigned s : subsets) {
      Sizes sizes;
      for (std::size_t k = 0; k < count; ++k) {
        if (s >> k & 1) sizes[names[k]] = size;
      }
      choices.push_back(std::move(sizes));
    }
  }
  return choices;
}

Result<Specialised> load_by_defaults(const ModelArguments& a, const LoadOptions& options, const Error& why) {
  if (gives_files(a)) return why;
  const onnx::Model source = WEFT_TRY(onnx::read_model_file(a.path));
  if (!source.graph) return why;
  const Sizes given = WEFT_TRY(parse_dims(a.dims));
  for (Sizes sizes : size_choices(open_sizes(*source.graph, given))) {
    sizes.insert(given.begin(), given.end());
    const auto inputs = WEFT_TRY(declared_inputs(*source.graph, a, sizes));
    Result<Specialised> loaded = load_for(a.path, options, inputs);
    if (!loaded.ok() || !runs(loaded->model, a)) continue;
    loaded->note = "compiled for default sizes and values of its inputs only " + text(sizes);
    return loaded;
  }
  return why;
}

Result<Fitting> run_fitting(const Model& model, const Program& program, const ModelArguments& a) {
  Fitting fitting;
  fitting.inputs = WEFT_TRY(model_inputs(model, a));
  auto first = program.run(fitting.inputs);
  if (!first.ok() && (first.error().kind() != ErrorKind::User || gives_files(a))) return first.error();
  if (first.ok()) {
    fitting.outputs = std::move(*first);
    return fitting;
  }
  const Sizes given = WEFT_TRY(parse_dims(a.dims));
  std::set<std::string> symbols;
  for (const Port& port : model.inputs()) {
    for (const Dim& d : port.shape) d.collect_symbols(symbols);
  }
  for (const auto& [name, size] : given) symbols.erase(name);
  for (Sizes sizes : size_choices({symbols.begin(), symbols.end()})) {
    if (sizes.empty()) continue;
    const std::string chosen = text(sizes);
    sizes.insert(given.begin(), given.end());
    auto inputs = make_inputs(model, a.inputs, sizes);
    if (!inputs.ok()) continue;
    auto outputs = program.run(*inputs);
    if (!outputs.ok()) continue;
    fmt::print(stderr, "weft: note: the model refuses sizes of 1 ({}); taken: {}\n", first.error().code(), chosen);
    return Fitting{std::move(*inputs), std::move(*outputs)};
  }
  return first.error();
}

}  // namespace weft::cli
