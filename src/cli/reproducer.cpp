#include "cli/reproducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "api/specialise.h"
#include "api/state.h"
#include "base/bytes.h"
#include "base/npy.h"
#include "cli/progress.h"
#include "frontend/onnx/reader/validate.h"
#include "frontend/onnx/writer/writer.h"

namespace weft::cli {
namespace {

using onnx::NodeNumbers;
using Tensors = std::vector<Tensor>;

// A value of the model's main graph, as the interpreter makes it.
struct Known {
  Tensor tensor;
  graph::Type type;
  bool constant = false;
};
using KnownValues = std::map<std::string, Known>;

Result<KnownValues> interpret_all(const Model& model, const Tensors& inputs) {
  onnx::Model source = model.state->source();
  auto graph = std::make_shared<onnx::Graph>(*source.graph);
  graph->outputs.clear();
  for (const onnx::Node& node : graph->nodes) {
    for (const std::string& name : node.outputs) {
      if (!name.empty()) graph->outputs.push_back({name, {}});
    }
  }
  source.graph = std::move(graph);
  const onnx::Imported all = WEFT_TRY(onnx::import_model(source, model.state->how));
  const Tensors made = WEFT_TRY(graph::interpret(all.graph, inputs));
  KnownValues values;
  const auto add = [&](const std::string& name, const Tensor& tensor, graph::ValueId v) {
    values[name] = {tensor, all.graph.type(v), all.graph.constant(v) != nullptr};
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) add(all.input_names[i], inputs[i], all.graph.inputs()[i]);
  for (std::size_t i = 0; i < made.size(); ++i) add(all.output_names[i], made[i], all.graph.outputs()[i]);
  for (const auto& [name, tensor] : model.state->how.known) values[name] = {tensor, {tensor.dtype(), {}}, true};
  return values;
}

// How the values at a part's boundary are declared: Open keeps named sizes; Closed has the sizes of this run, and the
// small integers that shapes and axes are made of become initializers.
enum class Form { Open, Closed };

onnx::ValueInfo declare(const std::string& name, const Known& value, Form form) {
  onnx::ValueInfo info{name, {}};
  info.type.kind = onnx::Type::Kind::Tensor;
  info.type.elem = value.tensor.dtype();
  info.type.shape.emplace();
  for (int axis = 0; axis < value.tensor.rank(); ++axis) {
    onnx::DimSpec dim;
    const auto symbol = form == Form::Open ? value.type.shape[axis].as_symbol() : std::nullopt;
    symbol ? void(dim.param = *symbol) : void(dim.value = value.tensor.shape()[axis]);
    info.type.shape->push_back(std::move(dim));
  }
  return info;
}

class Search {
 public:
  Search(const Model& model, KnownValues values, const Compiled& compiled,
         const std::function<bool(const Tensor&, const Tensor&)>& right)
      : source_(model.state->source()), values_(std::move(values)), compiled_(compiled), right_(right) {}

  // A part that cannot be cut out, imported or run shows nothing.
  std::optional<Reproducer> failing(const NodeNumbers& nodes) {
    progress_.say(fmt::format("trying {} of {} nodes alone", nodes.size(), count()));
    for (const Form form : {Form::Open, Form::Closed}) {
      Result<Reproducer> found = cut(nodes, form);
      const Result<bool> failed = found.ok() ? fails(*found) : found.error();
      if (failed.ok() && *failed) return std::move(found).value();
    }
    return std::nullopt;
  }

  std::size_t count() const { return source_.graph->nodes.size(); }

 private:
  Result<Reproducer> cut(const NodeNumbers& nodes, Form form) const {
    const onnx::Boundary names = onnx::boundary(*source_.graph, nodes);
    std::vector<onnx::ValueInfo> inputs, outputs;
    std::vector<onnx::NamedTensor> known;
    Reproducer result;
    for (const std::string& name : names.inputs) {
      const Known* value = WEFT_TRY(find(name));
      const bool setting = form == Form::Closed && is_int(value->tensor.dtype()) && is_setting(value->tensor);
      if (value->constant || setting) {
        known.push_back({name, value->tensor});
        continue;
      }
      inputs.push_back(declare(name, *value, form));
      result.inputs.push_back(value->tensor);
    }
    for (const std::string& name : names.outputs) {
      const Known* value = WEFT_TRY(find(name));
      outputs.push_back(declare(name, *value, form));
      result.want.push_back(value->tensor);
    }
    result.nodes = nodes;
    result.model = onnx::part(source_, nodes, std::move(inputs), std::move(outputs), std::move(known));
    return result;
  }

  Result<const Known*> find(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) return internal_error("a value that the interpreter did not make").at(name);
    return &it->second;
  }

  Result<bool> fails(const Reproducer& part) const {
    WEFT_TRY(onnx::validate(part.model));
    const onnx::Imported imported = WEFT_TRY(onnx::import_model(part.model));
    const Tensors got = WEFT_TRY(compiled_(imported.graph, part.inputs));
    bool right = true;
    for (std::size_t i = 0; i < got.size(); ++i) right = right && right_(got[i], part.want[i]);
    return !right;
  }

  const onnx::Model& source_;
  const KnownValues values_;
  const Compiled& compiled_;
  const std::function<bool(const Tensor&, const Tensor&)>& right_;
  Progress progress_;
};

NodeNumbers window(std::size_t first, std::size_t last) {
  NodeNumbers nodes(last + 1 - first);
  std::iota(nodes.begin(), nodes.end(), first);
  return nodes;
}

// The last node of the shortest failing beginning; all of the model must fail.
std::size_t first_failing(Search& search) {
  std::size_t lo = 0, hi = search.count() - 1;
  while (lo < hi) {
    const std::size_t middle = lo + (hi - lo) / 2;
    search.failing(window(0, middle)) ? void(hi = middle) : void(lo = middle + 1);
  }
  return hi;
}

}  // namespace

Result<std::optional<Reproducer>> find_reproducer(const Model& model, const Tensors& inputs,
                                                  const std::vector<std::string>& suspects, const Compiled& compiled,
                                                  const std::function<bool(const Tensor&, const Tensor&)>& right) {
  Search search(model, WEFT_TRY(interpret_all(model, inputs)), compiled, right);
  if (search.count() == 0) return std::optional<Reproducer>();
  const NodeNumbers nodes = onnx::labelled(model.state->source(), suspects);
  for (const std::size_t n : nodes) {
    if (auto found = search.failing({n})) return found;
  }
  if (nodes.size() > 1) {
    if (auto found = search.failing(nodes)) return found;
  }
  std::size_t last = search.count() - 1;
  if (nodes.empty()) {
    if (!search.failing(window(0, last))) return std::optional<Reproducer>();
    last = first_failing(search);
  } else {
    last = nodes.back();
  }
  for (std::size_t size = 1;; size = std::min(2 * size, last + 1)) {
    if (auto found = search.failing(window(last + 1 - size, last))) return found;
    if (size == last + 1) return std::optional<Reproducer>();
  }
}

Result<void> write_case(const std::string& folder, const Reproducer& reproducer, const Tolerance& tolerance) {
  namespace fs = std::filesystem;
  const fs::path root(folder), data = root / "test_data_set_0";
  std::error_code error;
  fs::create_directories(data, error);
  if (error) return user_error("file", "cannot make the folder: " + error.message()).at(data.string());
  WEFT_TRY(write_file((root / "model.onnx").string(), WEFT_TRY(onnx::write_model(reproducer.model))));
  const nlohmann::ordered_json json{{"expect", "values"}, {"rtol", tolerance.rtol}, {"atol", tolerance.atol}};
  WEFT_TRY(write_file((root / "case.json").string(), json.dump(1) + "\n"));
  const auto write = [&](const char* what, const std::vector<onnx::ValueInfo>& infos, const Tensors& tensors) -> Result<void> {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string bytes = onnx::write_tensor(infos[i].name, tensors[i]);
      WEFT_TRY(write_file((data / fmt::format("{}_{}.pb", what, i)).string(), bytes));
    }
    return {};
  };
  WEFT_TRY(write("input", reproducer.model.graph->inputs, reproducer.inputs));
  WEFT_TRY(write("output", reproducer.model.graph->outputs, reproducer.want));
  for (std::size_t i = 0; i < reproducer.inputs.size(); ++i) {
    WEFT_TRY(write_npy((root / fmt::format("input_{}.npy", i)).string(), reproducer.inputs[i]));
  }
  return {};
}

}  // namespace weft::cli
