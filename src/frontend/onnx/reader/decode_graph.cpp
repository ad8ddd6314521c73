// NodeProto, GraphProto, FunctionProto, ModelProto.
#include <fmt/format.h>

#include "frontend/onnx/fields.h"
#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {

Result<void> Decoder::node_field(const Field& f, int depth, Node& into) {
  switch (f.number) {
    case NodeProto::Input: return push_text(f, "input", into.inputs);
    case NodeProto::Output: return push_text(f, "output", into.outputs);
    case NodeProto::Name: return text_into(f, "name", into.name);
    case NodeProto::OpType: return text_into(f, "op_type", into.op_type);
    case NodeProto::Attribute: return push_attribute(f, "attribute", depth, into.attributes);
    case NodeProto::Domain: return domain_into(f, into.domain);
    case NodeProto::Overload: return text_into(f, "overload", into.overload);
    case NodeProto::MetadataProps: return property(f, "metadata_props", into.metadata_props);
    default: return {};
  }
}

Result<Node> Decoder::node(std::string_view message, int depth) {
  Node out;
  const Counts counts = count(message);
  Result<void> done = reserve(out.inputs, counts[NodeProto::Input]);
  if (done) done = reserve(out.outputs, counts[NodeProto::Output]);
  if (done) done = reserve(out.attributes, counts[NodeProto::Attribute]);
  if (done) done = each(message, "NodeProto", [&](const Field& f) { return node_field(f, depth, out); });
  if (!done) return within(done.error(), printable(out.label()));
  return out;
}

Result<void> Decoder::push_node(const Field& field, int depth, std::vector<Node>& into) {
  if (++nodes_ > limits_.nodes) {
    return unsupported("limit-exceeded", fmt::format("the model has more than {} nodes", limits_.nodes));
  }
  return push(into, WEFT_TRY(node(WEFT_TRY(view(field, "node")), depth)));
}

Result<void> Decoder::graph_field(const Field& f, int depth, Graph& into) {
  switch (f.number) {
    case GraphProto::Node: return push_node(f, depth, into.nodes);
    case GraphProto::Name: return text_into(f, "name", into.name);
    case GraphProto::Initializer: return push(into.initializers, WEFT_TRY(tensor(WEFT_TRY(view(f, "initializer")))));
    case GraphProto::Input: return push_value_info(f, "input", into.inputs);
    case GraphProto::Output: return push_value_info(f, "output", into.outputs);
    case GraphProto::ValueInfo: return push_value_info(f, "value_info", into.value_infos);
    case GraphProto::SparseInitializer: return push(into.sparse_initializers, WEFT_TRY(sparse_tensor(WEFT_TRY(view(f, "sparse_initializer")))));
    case GraphProto::MetadataProps: return property(f, "metadata_props", into.metadata_props);
    default: return {};
  }
}

Result<GraphPtr> Decoder::graph(std::string_view message, int depth) {
  WEFT_TRY(check_depth(depth, "graphs"));
  WEFT_TRY(charge(sizeof(Graph) + 2 * kAllocation));
  auto out = std::make_shared<Graph>();
  const Counts counts = count(message);
  Result<void> done = reserve(out->nodes, counts[GraphProto::Node]);
  if (done) done = reserve(out->initializers, counts[GraphProto::Initializer]);
  if (done) done = reserve(out->inputs, counts[GraphProto::Input]);
  if (done) done = reserve(out->outputs, counts[GraphProto::Output]);
  if (done) done = reserve(out->value_infos, counts[GraphProto::ValueInfo]);
  if (done) done = each(message, "GraphProto", [&](const Field& f) { return graph_field(f, depth, *out); });
  if (!done) return done.error();
  return GraphPtr(std::move(out));
}

Result<void> Decoder::opset_import(const Field& field, OpsetImports& into) {
  std::string domain;
  std::int64_t version = 0;
  WEFT_TRY(charge(sizeof(OpsetImports::value_type) + 2 * kAllocation));
  WEFT_TRY(each(WEFT_TRY(view(field, "opset_import")), "OperatorSetIdProto", [&](const Field& f) -> Result<void> {
    if (f.number == OperatorSetIdProto::Domain) return domain_into(f, domain);
    if (f.number == OperatorSetIdProto::Version) version = WEFT_TRY(integer(f, "version"));
    return {};
  }));
  const auto [at, added] = into.emplace(std::move(domain), version);
  if (!added && at->second != version) {
    return user_error("opset-import-invalid", fmt::format("domain '{}' is imported as version {} and {}",
                                                          printable(at->first), at->second, version));
  }
  return {};
}

Result<void> Decoder::function_field(const Field& f, Function& into) {
  switch (f.number) {
    case FunctionProto::Name: return text_into(f, "name", into.name);
    case FunctionProto::Input: return push_text(f, "input", into.inputs);
    case FunctionProto::Output: return push_text(f, "output", into.outputs);
    case FunctionProto::Attribute: return push_text(f, "attribute", into.attributes);
    case FunctionProto::Node: return push_node(f, 1, into.nodes);
    case FunctionProto::OpsetImport: return opset_import(f, into.opset_imports);
    case FunctionProto::Domain: return domain_into(f, into.domain);
    case FunctionProto::AttributeProto: return push_attribute(f, "attribute_proto", 1, into.attribute_defaults);
    case FunctionProto::ValueInfo: return push_value_info(f, "value_info", into.value_infos);
    case FunctionProto::Overload: return text_into(f, "overload", into.overload);
    case FunctionProto::MetadataProps: return property(f, "metadata_props", into.metadata_props);
    default: return {};
  }
}

Result<Function> Decoder::function(std::string_view message) {
  Function out;
  const Counts counts = count(message);
  Result<void> done = reserve(out.nodes, counts[FunctionProto::Node]);
  if (done) done = each(message, "FunctionProto", [&](const Field& f) { return function_field(f, out); });
  if (!done) return within(done.error(), printable(out.name));
  return out;
}

Result<void> Decoder::model_field(const Field& f, Model& into) {
  switch (f.number) {
    case ModelProto::IrVersion: into.ir_version = WEFT_TRY(integer(f, "ir_version")); return {};
    case ModelProto::ProducerName: return text_into(f, "producer_name", into.producer_name);
    case ModelProto::ProducerVersion: return text_into(f, "producer_version", into.producer_version);
    case ModelProto::Domain: return text_into(f, "domain", into.domain);
    case ModelProto::ModelVersion: into.model_version = WEFT_TRY(integer(f, "model_version")); return {};
    case ModelProto::Graph: {
      if (into.graph) return malformed("ModelProto", "a second graph", f.start);
      into.graph = WEFT_TRY(graph(WEFT_TRY(view(f, "graph")), 1));
      return {};
    }
    case ModelProto::OpsetImport: return opset_import(f, into.opset_imports);
    case ModelProto::MetadataProps: return property(f, "metadata_props", into.metadata_props);
    case ModelProto::TrainingInfo: into.has_training_info = true; return {};
    case ModelProto::Functions: return push(into.functions, WEFT_TRY(function(WEFT_TRY(view(f, "functions")))));
    default: return {};
  }
}

Result<Model> Decoder::model(std::string_view message) {
  Model out;
  WEFT_TRY(each(message, "ModelProto", [&](const Field& f) { return model_field(f, out); }));
  return out;
}

}  // namespace weft::onnx
