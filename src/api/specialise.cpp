#include "api/specialise.h"

#include "api/state.h"
#include "frontend/onnx/reader/reader.h"

namespace weft {

namespace {

constexpr std::int64_t kMostElements = 64;  // of an input that is compiled in by value
constexpr const char* kForSizes = "compiled for the sizes of these inputs only";

// The sizes that the inputs give to the model's named (and nameless) dimensions.
void add_sizes(const onnx::Model& source, const std::map<std::string, Tensor>& inputs,
               std::map<std::string, std::int64_t>& sizes) {
  for (const onnx::ValueInfo& info : source.graph->inputs) {
    auto given = inputs.find(info.name);
    if (given == inputs.end() || !info.type.shape) continue;
    const auto& shape = given->second.shape();
    for (std::size_t d = 0; d < info.type.shape->size() && d < shape.size(); ++d) {
      const onnx::DimSpec& spec = (*info.type.shape)[d];
      if (!spec.value) sizes.emplace(onnx::size_name(spec, info.name, d), shape[d]);
    }
  }
}

// Whether sizes that were taken to be equal are so for these inputs.
bool takes(const graph::Graph& g, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const auto bindings = graph::bind_inputs(g, shapes);
  if (!bindings.ok()) return true;
  for (const graph::Node& node : g.nodes()) {
    if (node.op != graph::Op::Reshape) continue;
    const auto before = product(g.type(node.operands[0]).shape).evaluate(*bindings);
    const auto after = product(g.type(node.results[0]).shape).evaluate(*bindings);
    if (before.ok() && after.ok() && *before != *after) return false;
  }
  return true;
}

// Those of the model's inputs that are given; empty unless all are.
std::vector<Tensor> in_order(const Model& model, const std::map<std::string, Tensor>& inputs) {
  std::vector<Tensor> ordered;
  for (const Port& port : model.inputs()) {
    const auto given = inputs.find(port.name);
    if (given == inputs.end()) return {};
    ordered.push_back(given->second);
  }
  return ordered;
}

}  // namespace

std::optional<onnx::ImportOptions> fixing(const Model& model, const std::vector<Tensor>& inputs) {
  if (inputs.size() != model.inputs().size() || takes(*model.state->graph(), inputs)) return std::nullopt;
  const onnx::Model& source = model.state->source();
  if (!source.graph) return std::nullopt;
  std::map<std::string, Tensor> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named[model.inputs()[i].name] = inputs[i];
  onnx::ImportOptions how = model.state->how;
  add_sizes(source, named, how.fixed);
  if (how.fixed == model.state->how.fixed) return std::nullopt;
  return how;
}

bool is_setting(const Tensor& t) { return t.rank() <= 1 && t.size() <= kMostElements && !is_string(t.dtype()); }

Result<Specialised> load_for(const std::string& path, LoadOptions options,
                             const std::map<std::string, Tensor>& inputs) {
  for (const auto& [name, value] : inputs) options.given.insert(name);
  Result<Model> model = load(path, options);
  if (!model.ok() && model.error().kind() != ErrorKind::Unsupported) return model.error();
  return at_the_edge([&]() -> Result<Specialised> {
    if (model.ok()) {
      const bool stored = !model->state->is_imported();  // such a one takes any
      const auto how = stored ? std::nullopt : fixing(*model, in_order(*model, inputs));
      if (!how) return Specialised{*model, ""};
      const Result<Model> fixed = import_again(*model, *how);
      if (!fixed.ok()) return Specialised{*model, ""};  // its run says what is wrong
      return Specialised{*fixed, kForSizes};
    }
    const onnx::Model source = WEFT_TRY(onnx::read_model_file(path));
    if (!source.graph) return model.error();
    add_sizes(source, inputs, options.sizes);
    Result<Model> sized = load(path, options);
    if (sized.ok()) return Specialised{*sized, kForSizes};
    for (const auto& [name, value] : inputs) {
      if (is_setting(value)) options.known[name] = value;
    }
    Result<Model> valued = load(path, options);
    if (valued.ok()) return Specialised{*valued, "compiled for the sizes and the small values of these inputs only"};
    return model.error();
  });
}

}  // namespace weft
