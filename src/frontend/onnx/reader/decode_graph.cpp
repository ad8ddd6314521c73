// NodeProto, GraphProto, FunctionProto, ModelProto.
#include <fmt/format.h>

#include "frontend/onnx/reader/decoder.h"

namespace weft::onnx {

// NodeProto: 1 input, 2 output, 3 name, 4 op_type, 5 attribute, 7 domain, 8 overload, 9 metadata_props.
Result<void> Decoder::node_field(const Field& f, int depth, Node& into) {
  switch (f.number) {
    case 1: return push_text(f, "input", into.inputs);
    case 2: return push_text(f, "output", into.outputs);
    case 3: return text_into(f, "name", into.name);
    case 4: return text_into(f, "op_type", into.op_type);
    case 5: return push_attribute(f, "attribute", depth, into.attributes);
    case 7: return domain_into(f, into.domain);
    case 8: return text_into(f, "overload", into.overload);
    case 9: return property(f, "metadata_props", into.metadata_props);
    default: return {};
  }
}

Result<Node> Decoder::node(std::string_view message, int depth) {
  Node out;
  const Counts counts = count(message);
  Result<void> done = reserve(out.inputs, counts[1]);
  if (done) done = reserve(out.outputs, counts[2]);
  if (done) done = reserve(out.attributes, counts[5]);
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

// GraphProto: 1 node, 2 name, 5 initializer, 11 input, 12 output, 13 value_info, 15 sparse_initializer,
// 16 metadata_props.
Result<void> Decoder::graph_field(const Field& f, int depth, Graph& into) {
  switch (f.number) {
    case 1: return push_node(f, depth, into.nodes);
    case 2: return text_into(f, "name", into.name);
    case 5: return push(into.initializers, WEFT_TRY(tensor(WEFT_TRY(view(f, "initializer")))));
    case 11: return push_value_info(f, "input", into.inputs);
    case 12: return push_value_info(f, "output", into.outputs);
    case 13: return push_value_info(f, "value_info", into.value_infos);
    case 15: return push(into.sparse_initializers, WEFT_TRY(sparse_tensor(WEFT_TRY(view(f, "sparse_initializer")))));
    case 16: return property(f, "metadata_props", into.metadata_props);
    default: return {};
  }
}

Result<GraphPtr> Decoder::graph(std::string_view message, int depth) {
  WEFT_TRY(check_depth(depth, "graphs"));
  WEFT_TRY(charge(sizeof(Graph) + 2 * kAllocation));
  auto out = std::make_shared<Graph>();
  const Counts counts = count(message);
  Result<void> done = reserve(out->nodes, counts[1]);
  if (done) done = reserve(out->initializers, counts[5]);
  if (done) done = reserve(out->inputs, counts[11]);
  if (done) done = reserve(out->outputs, counts[12]);
  if (done) done = reserve(out->value_infos, counts[13]);
  if (done) done = each(message, "GraphProto", [&](const Field& f) { return graph_field(f, depth, *out); });
  if (!done) return done.error();
  return GraphPtr(std::move(out));
}

Result<void> Decoder::opset_import(const Field& field, OpsetImports& into) {
  std::string domain;
  std::int64_t version = 0;
  WEFT_TRY(charge(sizeof(OpsetImports::value_type) + 2 * kAllocation));
  WEFT_TRY(each(WEFT_TRY(view(field, "opset_import")), "OperatorSetIdProto", [&](const Field& f) -> Result<void> {
    if (f.number == 1) return domain_into(f, domain);
    if (f.number == 2) version = WEFT_TRY(integer(f, "version"));
    return {};
  }));
  const auto [at, added] = into.emplace(std::move(domain), version);
  if (!added && at->second != version) {
    return user_error("opset-import-invalid", fmt::format("domain '{}' is imported as version {} and {}",
                                                          printable(at->first), at->second, version));
  }
  return {};
}

// FunctionProto: 1 name, 4 input, 5 output, 6 attribute, 7 node, 9 opset_import, 10 domain, 11 attribute_proto,
// 12 value_info, 13 overload, 14 metadata_props.
Result<void> Decoder::function_field(const Field& f, Function& into) {
  switch (f.number) {
    case 1: return text_into(f, "name", into.name);
    case 4: return push_text(f, "input", into.inputs);
    case 5: return push_text(f, "output", into.outputs);
    case 6: return push_text(f, "attribute", into.attributes);
    case 7: return push_node(f, 1, into.nodes);
    case 9: return opset_import(f, into.opset_imports);
    case 10: return domain_into(f, into.domain);
    case 11: return push_attribute(f, "attribute_proto", 1, into.attribute_defaults);
    case 12: return push_value_info(f, "value_info", into.value_infos);
    case 13: return text_into(f, "overload", into.overload);
    case 14: return property(f, "metadata_props", into.metadata_props);
    default: return {};
  }
}

Result<Function> Decoder::function(std::string_view message) {
  Function out;
  const Counts counts = count(message);
  Result<void> done = reserve(out.nodes, counts[7]);
  if (done) done = each(message, "FunctionProto", [&](const Field& f) { return function_field(f, out); });
  if (!done) return within(done.error(), printable(out.name));
  return out;
}

// ModelProto: 1 ir_version, 2 producer_name, 3 producer_version, 4 domain, 5 model_version, 7 graph,
// 8 opset_import, 14 metadata_props, 20 training_info, 25 functions.
Result<void> Decoder::model_field(const Field& f, Model& into) {
  switch (f.number) {
    case 1: into.ir_version = WEFT_TRY(integer(f, "ir_version")); return {};
    case 2: return text_into(f, "producer_name", into.producer_name);
    case 3: return text_into(f, "producer_version", into.producer_version);
    case 4: return text_into(f, "domain", into.domain);
    case 5: into.model_version = WEFT_TRY(integer(f, "model_version")); return {};
    case 7: {
      if (into.graph) return malformed("ModelProto", "a second graph", f.start);
      into.graph = WEFT_TRY(graph(WEFT_TRY(view(f, "graph")), 1));
      return {};
    }
    case 8: return opset_import(f, into.opset_imports);
    case 14: return property(f, "metadata_props", into.metadata_props);
    case 20: into.has_training_info = true; return {};
    case 25: return push(into.functions, WEFT_TRY(function(WEFT_TRY(view(f, "functions")))));
    default: return {};
  }
}

Result<Model> Decoder::model(std::string_view message) {
  Model out;
  WEFT_TRY(each(message, "ModelProto", [&](const Field& f) { return model_field(f, out); }));
  return out;
}

}  // namespace weft::onnx
