#include "frontend/onnx/writer/writer.h"

#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/fields.h"

namespace weft::onnx {
namespace {

using protozero::pbf_writer;

void write(pbf_writer to, const Graph& graph);

// A sub-message: a writer of its own, closed when `f` returns. It must write something: an empty one is left out.
template <class F>
void message(pbf_writer& to, std::uint32_t field, F&& f) {
  pbf_writer inner(to, field);
  f(inner);
}

void add_empty(pbf_writer& to, std::uint32_t field) { to.add_message(field, std::string()); }

void add_text(pbf_writer& to, std::uint32_t field, const std::string& text) {
  if (!text.empty()) to.add_string(field, text);
}

void add_texts(pbf_writer& to, std::uint32_t field, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) to.add_string(field, text);
}

void add_properties(pbf_writer& to, std::uint32_t field, const Properties& properties) {
  for (const auto& property : properties) {
    message(to, field, [&](pbf_writer& entry) {
      entry.add_string(StringStringEntryProto::Key, property.first);
      entry.add_string(StringStringEntryProto::Value, property.second);
    });
  }
}

void add_opsets(pbf_writer& to, std::uint32_t field, const OpsetImports& opsets) {
  for (const auto& opset : opsets) {
    message(to, field, [&](pbf_writer& entry) {
      entry.add_string(OperatorSetIdProto::Domain, opset.first);
      entry.add_int64(OperatorSetIdProto::Version, opset.second);
    });
  }
}

// Tensors.

void write(pbf_writer& to, const std::string& name, const weft::Tensor& tensor) {
  to.add_packed_int64(TensorProto::Dims, tensor.shape().begin(), tensor.shape().end());
  to.add_int32(TensorProto::DataType, info(tensor.dtype()).onnx);
  add_text(to, TensorProto::Name, name);
  if (is_string(tensor.dtype())) return add_texts(to, TensorProto::StringData, tensor.string_values());
  if (tensor.byte_size() == 0) return;
  to.add_bytes(TensorProto::RawData, static_cast<const char*>(tensor.data()), tensor.byte_size());
}

void add_tensor(pbf_writer& to, std::uint32_t field, const std::string& name, const weft::Tensor& tensor) {
  message(to, field, [&](pbf_writer& inner) { write(inner, name, tensor); });
}

void add_sparse(pbf_writer& to, std::uint32_t field, const SparseTensor& sparse) {
  message(to, field, [&](pbf_writer& inner) {
    add_tensor(inner, SparseTensorProto::Values, sparse.name, sparse.values);
    add_tensor(inner, SparseTensorProto::Indices, "", sparse.indices);
    inner.add_packed_int64(SparseTensorProto::Dims, sparse.shape.begin(), sparse.shape.end());
  });
}

// Types.

std::uint32_t field_of(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::Tensor: return TypeProto::Tensor;
    case Type::Kind::SparseTensor: return TypeProto::SparseTensor;
    case Type::Kind::Sequence: return TypeProto::Sequence;
    case Type::Kind::Optional: return TypeProto::Optional;
    case Type::Kind::Map: return TypeProto::Map;
    case Type::Kind::Unset: break;
  }
  return 0;
}

void write_shape(pbf_writer& to, const std::vector<DimSpec>& shape) {
  for (const DimSpec& d : shape) {
    if (!d.known()) {
      add_empty(to, TensorShapeProto::Dim);
      continue;
    }
    message(to, TensorShapeProto::Dim, [&](pbf_writer& dim) {
      d.value ? dim.add_int64(TensorShapeProto::DimValue, *d.value) : dim.add_string(TensorShapeProto::DimParam, d.param);
    });
  }
}

void write(pbf_writer& to, const Type& type) {
  if (type.kind == Type::Kind::Unset) return;
  if (!type.elem && !type.shape && !type.element) return add_empty(to, field_of(type.kind));
  message(to, field_of(type.kind), [&](pbf_writer& inner) {
    if (type.elem) inner.add_int32(TypeProto::ElemType, info(*type.elem).onnx);  // of a map: KeyType
    if (type.shape && type.shape->empty()) add_empty(inner, TypeProto::Shape);
    if (type.shape) message(inner, TypeProto::Shape, [&](pbf_writer& shape) { write_shape(shape, *type.shape); });
    if (!type.element) return;
    const bool map = type.kind == Type::Kind::Map;
    message(inner, map ? TypeProto::MapValue : TypeProto::Element, [&](pbf_writer& element) { write(element, *type.element); });
  });
}

void add_values(pbf_writer& to, std::uint32_t field, const std::vector<ValueInfo>& values) {
  for (const ValueInfo& value : values) {
    message(to, field, [&](pbf_writer& inner) {
      inner.add_string(ValueInfoProto::Name, value.name);
      message(inner, ValueInfoProto::Type, [&](pbf_writer& type) { write(type, value.type); });
    });
  }
}

// Attributes: one overload per kind of value; lists of messages repeat the field.

struct ValueWriter {
  pbf_writer& to;
  std::uint32_t field;

  void operator()(std::monostate) {}
  void operator()(float value) { to.add_float(field, value); }
  void operator()(std::int64_t value) { to.add_int64(field, value); }
  void operator()(const std::string& value) { to.add_bytes(field, value); }
  void operator()(const weft::Tensor& value) { add_tensor(to, field, "", value); }
  void operator()(const GraphPtr& value) { write(pbf_writer(to, field), *value); }
  void operator()(const std::shared_ptr<const SparseTensor>& value) { add_sparse(to, field, *value); }
  void operator()(const std::shared_ptr<const Type>& value) {
    message(to, field, [&](pbf_writer& inner) { write(inner, *value); });
  }
  void operator()(const std::vector<float>& values) { to.add_packed_float(field, values.begin(), values.end()); }
  void operator()(const std::vector<std::int64_t>& values) { to.add_packed_int64(field, values.begin(), values.end()); }
  template <class T>
  void operator()(const std::vector<T>& values) {
    for (const T& value : values) (*this)(value);
  }
};

void add_attributes(pbf_writer& to, std::uint32_t field, const std::vector<Attribute>& attributes) {
  for (const Attribute& a : attributes) {
    message(to, field, [&](pbf_writer& inner) {
      inner.add_string(AttributeProto::Name, a.name);
      add_text(inner, AttributeProto::RefAttrName, a.ref_attr_name);
      inner.add_int32(AttributeProto::Type, static_cast<std::int32_t>(a.declared));
      std::visit(ValueWriter{inner, AttributeProto::kValue[a.value.index()]}, a.value);
    });
  }
}

void add_nodes(pbf_writer& to, std::uint32_t field, const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    message(to, field, [&](pbf_writer& inner) {
      add_texts(inner, NodeProto::Input, node.inputs);
      add_texts(inner, NodeProto::Output, node.outputs);
      add_text(inner, NodeProto::Name, node.name);
      add_text(inner, NodeProto::OpType, node.op_type);
      add_attributes(inner, NodeProto::Attribute, node.attributes);
      add_text(inner, NodeProto::Domain, node.domain);
      add_text(inner, NodeProto::Overload, node.overload);
      add_properties(inner, NodeProto::MetadataProps, node.metadata_props);
    });
  }
}

void write(pbf_writer to, const Graph& graph) {
  add_nodes(to, GraphProto::Node, graph.nodes);
  to.add_string(GraphProto::Name, graph.name);
  for (const NamedTensor& t : graph.initializers) add_tensor(to, GraphProto::Initializer, t.name, t.tensor);
  add_values(to, GraphProto::Input, graph.inputs);
  add_values(to, GraphProto::Output, graph.outputs);
  add_values(to, GraphProto::ValueInfo, graph.value_infos);
  for (const SparseTensor& t : graph.sparse_initializers) add_sparse(to, GraphProto::SparseInitializer, t);
  add_properties(to, GraphProto::MetadataProps, graph.metadata_props);
}

void add_function(pbf_writer& to, std::uint32_t field, const Function& function) {
  message(to, field, [&](pbf_writer& inner) {
    inner.add_string(FunctionProto::Name, function.name);
    add_texts(inner, FunctionProto::Input, function.inputs);
    add_texts(inner, FunctionProto::Output, function.outputs);
    add_texts(inner, FunctionProto::Attribute, function.attributes);
    add_nodes(inner, FunctionProto::Node, function.nodes);
    add_opsets(inner, FunctionProto::OpsetImport, function.opset_imports);
    add_text(inner, FunctionProto::Domain, function.domain);
    add_attributes(inner, FunctionProto::AttributeProto, function.attribute_defaults);
    add_values(inner, FunctionProto::ValueInfo, function.value_infos);
    add_text(inner, FunctionProto::Overload, function.overload);
    add_properties(inner, FunctionProto::MetadataProps, function.metadata_props);
  });
}

// Of initializers and of tensors in attributes, bodies included.
std::size_t tensor_bytes(const std::vector<Node>& nodes);

std::size_t tensor_bytes(const Graph& graph) {
  std::size_t bytes = tensor_bytes(graph.nodes);
  for (const NamedTensor& t : graph.initializers) bytes += t.tensor.byte_size();
  return bytes;
}

std::size_t tensor_bytes(const std::vector<Node>& nodes) {
  std::size_t bytes = 0;
  for (const Node& node : nodes) {
    for (const Attribute& a : node.attributes) {
      if (const auto* tensor = a.as<weft::Tensor>()) bytes += tensor->byte_size();
      if (const auto* graph = a.as<GraphPtr>()) bytes += tensor_bytes(**graph);
    }
  }
  return bytes;
}

}  // namespace

Result<std::string> write_model(const Model& model) {
  constexpr std::size_t kMost = std::size_t{1} << 31;
  if (model.graph && tensor_bytes(*model.graph) >= kMost) {
    return unsupported("model-too-large", "a model of 2 GB or more cannot be written into one file");
  }
  std::string bytes;
  pbf_writer to(bytes);
  to.add_int64(ModelProto::IrVersion, model.ir_version);
  add_text(to, ModelProto::ProducerName, model.producer_name);
  add_text(to, ModelProto::ProducerVersion, model.producer_version);
  add_text(to, ModelProto::Domain, model.domain);
  to.add_int64(ModelProto::ModelVersion, model.model_version);
  if (model.graph) write(pbf_writer(to, ModelProto::Graph), *model.graph);
  add_opsets(to, ModelProto::OpsetImport, model.opset_imports);
  add_properties(to, ModelProto::MetadataProps, model.metadata_props);
  for (const Function& function : model.functions) add_function(to, ModelProto::Functions, function);
  return bytes;
}

std::string write_tensor(const std::string& name, const weft::Tensor& tensor) {
  std::string bytes;
  pbf_writer to(bytes);
  write(to, name, tensor);
  return bytes;
}

}  // namespace weft::onnx
