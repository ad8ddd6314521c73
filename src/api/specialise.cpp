#include "api/specialise.h"

#include "api/state.h"
#include "frontend/onnx/reader/reader.h"

namespace weft {

namespace {

constexpr std::int64_t kMostElements = 64;  // of an input that is compiled in by value

// The sizes that the inputs give to the model's named (and nameless) dimensions.
void add_sizes(const onnx::Model& source, const std::map<std::string, Tensor>& inputs, LoadOptions& options) {
  for (const onnx::ValueInfo& info : source.graph->inputs) {
    auto given = inputs.find(info.name);
    if (given == inputs.end() || !info.type.shape) continue;
    const auto& shape = given->second.shape();
    for (std::size_t d = 0; d < info.type.shape->size() && d < shape.size(); ++d) {
      const onnx::DimSpec& spec = (*info.type.shape)[d];
      if (!spec.value) options.sizes.emplace(onnx::size_name(spec, info.name, d), shape[d]);
    }
  }
}

// Sizes that might be equal were taken to be: whether they are for these inputs. Otherwise one of them is 1, and what
// holds it is spread out.
bool takes(const Model& model, const std::map<std::string, Tensor>& inputs) {
  if (!model.state->is_imported()) return true;  // what is stored takes any
  const graph::Graph& g = *model.state->graph();
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Port& port : model.inputs()) {
    const auto given = inputs.find(port.name);
    if (given == inputs.end()) return true;
    shapes.push_back(given->second.shape());
  }
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

}  // namespace

bool is_setting(const Tensor& t) { return t.rank() <= 1 && t.size() <= kMostElements && !is_string(t.dtype()); }

Result<Specialised> load_for(const std::string& path, LoadOptions options,
                             const std::map<std::string, Tensor>& inputs) {
  for (const auto& [name, value] : inputs) options.given.insert(name);
  Result<Model> model = load(path, options);
  if (model.ok() && takes(*model, inputs)) return Specialised{*model, ""};
  if (!model.ok() && model.error().kind() != ErrorKind::Unsupported) return model.error();
  return at_the_edge([&]() -> Result<Specialised> {
    const onnx::Model source = WEFT_TRY(onnx::read_model_file(path));
    if (!source.graph) return model.error();
    add_sizes(source, inputs, options);
    Result<Model> sized = load(path, options);
    if (model.ok() && !sized.ok()) return Specialised{*model, ""};  // its run says what is wrong
    if (sized.ok()) return Specialised{*sized, "compiled for the sizes of these inputs only"};
    for (const auto& [name, value] : inputs) {
      if (is_setting(value)) options.known[name] = value;
    }
    Result<Model> valued = load(path, options);
    if (valued.ok()) return Specialised{*valued, "compiled for the sizes and the small values of these inputs only"};
    return model.error();
  });
}

}  // namespace weft
