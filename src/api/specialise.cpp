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

}  // namespace

bool is_setting(const Tensor& t) { return t.rank() <= 1 && t.size() <= kMostElements && !is_string(t.dtype()); }

Result<Specialised> load_for(const std::string& path, LoadOptions options,
                             const std::map<std::string, Tensor>& inputs) {
  for (const auto& [name, value] : inputs) options.given.insert(name);
  Result<Model> model = load(path, options);
  if (model.ok()) return Specialised{*model, ""};
  if (model.error().kind() != ErrorKind::Unsupported) return model.error();
  const Error why = model.error();
  return at_the_edge([&]() -> Result<Specialised> {
    const onnx::Model source = WEFT_TRY(onnx::read_model_file(path));
    if (!source.graph) return why;
    add_sizes(source, inputs, options);
    Result<Model> sized = load(path, options);
    if (sized.ok()) return Specialised{*sized, "compiled for the sizes of these inputs only"};
    for (const auto& [name, value] : inputs) {
      if (is_setting(value)) options.known[name] = value;
    }
    Result<Model> valued = load(path, options);
    if (valued.ok()) return Specialised{*valued, "compiled for the sizes and the small values of these inputs only"};
    return why;
  });
}

}  // namespace weft
