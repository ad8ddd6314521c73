#include "cli/compared.h"

#include <algorithm>

namespace weft::cli {
namespace {

// The integer that a value of the graph is, where it is one and the graph says so.
std::optional<std::int64_t> integer_constant(const onnx::Graph& graph, const std::string& name) {
  const auto single = [](const Tensor& t) { return is_int(t.dtype()) && t.size() == 1 ? std::optional(t.i64(0)) : std::nullopt; };
  for (const onnx::NamedTensor& t : graph.initializers) {
    if (t.name == name) return single(t.tensor);
  }
  for (const onnx::Node& node : graph.nodes) {
    if (node.op_type != "Constant" || node.outputs.empty() || node.outputs[0] != name) continue;
    const onnx::Attribute* value = node.find_attribute("value");
    if (const Tensor* t = value ? value->as<Tensor>() : nullptr) return single(*t);
  }
  return std::nullopt;
}

// An integer scalar, or a list of one.
bool is_one_integer(const onnx::ValueInfo& info) {
  if (!info.type.elem || !is_int(*info.type.elem) || !info.type.shape) return false;
  const auto& shape = *info.type.shape;
  return std::all_of(shape.begin(), shape.end(), [](const onnx::DimSpec& d) { return d.value == 1; });
}

}  // namespace

std::optional<std::int64_t> compared_with(const onnx::Graph& graph, const std::string& input) {
  const auto info = std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](const auto& i) { return i.name == input; });
  if (info == graph.inputs.end() || !is_one_integer(*info)) return std::nullopt;
  for (const onnx::Node& node : graph.nodes) {
    if (node.op_type != "Equal" || node.inputs.size() != 2) continue;
    for (int k = 0; k < 2; ++k) {
      if (node.inputs[k] != input) continue;
      if (const auto value = integer_constant(graph, node.inputs[1 - k])) return value;
    }
  }
  return std::nullopt;
}

}  // namespace weft::cli
