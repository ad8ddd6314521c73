#include "frontend/onnx/model.h"

#include <iterator>
#include <set>

namespace weft::onnx {

namespace {

void collect_free(const Graph& graph, std::set<std::string> defined, std::vector<std::string>& into,
                  std::set<std::string>& seen) {
  for (const ValueInfo& v : graph.inputs) defined.insert(v.name);
  for (const NamedTensor& t : graph.initializers) defined.insert(t.name);
  auto use = [&](const std::string& name) {
    if (!name.empty() && !defined.count(name) && seen.insert(name).second) into.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) use(name);
    for (const Attribute& a : node.attributes) {
      if (const auto* g = a.as<GraphPtr>()) collect_free(**g, defined, into, seen);
      if (const auto* list = a.as<std::vector<GraphPtr>>()) {
        for (const GraphPtr& g : *list) collect_free(*g, defined, into, seen);
      }
    }
    for (const std::string& name : node.outputs) defined.insert(name);
  }
  for (const ValueInfo& v : graph.outputs) use(v.name);
}

}  // namespace

std::vector<std::string> free_names(const Graph& graph) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  collect_free(graph, {}, names, seen);
  return names;
}

const char* name(AttributeType type) {
  static constexpr const char* kNames[] = {"undefined", "float",  "int",           "string",         "tensor",
                                           "graph",     "floats", "ints",          "strings",        "tensors",
                                           "graphs",    "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"};
  static_assert(std::size(kNames) == std::variant_size_v<AttributeValue>);
  return kNames[static_cast<int>(type)];
}

const Attribute* Node::find_attribute(std::string_view attribute_name) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute_name) return &a;
  }
  return nullptr;
}

std::string Node::label() const {
  if (!name.empty()) return op_type + " " + name;
  for (const std::string& output : outputs) {
    if (!output.empty()) return op_type + " producing " + output;
  }
  return op_type;
}

}  // namespace weft::onnx
