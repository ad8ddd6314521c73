#include "frontend/onnx/model.h"

#include <iterator>

namespace weft::onnx {

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
