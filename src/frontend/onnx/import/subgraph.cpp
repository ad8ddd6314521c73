// Subgraphs of If, Loop and Scan: inlined where it is known which one runs, regions otherwise.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/import/importer.h"

namespace weft::onnx {

Result<std::vector<ValueId>> Importer::captures(const std::vector<GraphPtr>& subgraphs) {
  std::vector<ValueId> captured;
  for (const GraphPtr& subgraph : subgraphs) {
    for (const std::string& name : free_names(*subgraph)) {
      ValueId v = scope_->find(name);
      if (v < 0) {
        if (scope_->find_sequence(name)) return unsupported("unsupported-node", "a subgraph uses a sequence from outside");
        if (poisoned_.count(name)) return unsupported("unsupported-node", "a subgraph uses a value that could not be imported");
        return user_error("undefined-value", "a subgraph uses a value that is not defined").at(name);
      }
      if (target_->graph.constant(v) || contents(v)) continue;
      if (std::find(captured.begin(), captured.end(), v) == captured.end()) captured.push_back(v);
    }
  }
  return captured;
}

Result<std::vector<ValueId>> Importer::inline_subgraph(const Graph& subgraph, const std::vector<ValueId>& arguments) {
  if (++depth_ > kMaxDepth) return user_error("too-deep", "subgraphs are nested too deeply").at(subgraph.name);
  Scope inner;
  inner.outer = scope_;
  if (arguments.size() != subgraph.inputs.size()) {
    return user_error("invalid-subgraph", "a subgraph has the wrong number of inputs")
        .at(subgraph.name)
        .expected(std::to_string(arguments.size()))
        .found(std::to_string(subgraph.inputs.size()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) inner.values[subgraph.inputs[i].name] = arguments[i];
  Scope* outer = scope_;
  scope_ = &inner;
  auto done = add_initializers(subgraph);
  if (done.ok()) done = import_nodes(subgraph.nodes, *opsets_);
  std::vector<ValueId> outputs;
  for (const ValueInfo& v : subgraph.outputs) outputs.push_back(inner.find(v.name));
  scope_ = outer;
  --depth_;
  WEFT_TRY(std::move(done));
  for (ValueId v : outputs) {
    if (v < 0) return unsupported("unsupported-node", "a subgraph's output could not be imported");
  }
  return outputs;
}

Result<std::shared_ptr<const graph::Graph>> Importer::region(const Graph& subgraph,
                                                             const std::vector<graph::Type>& inputs,
                                                             const std::vector<ValueId>& captured) {
  Target inner;
  inner.graph.name = "region";
  inner.graph.facts = target_->graph.facts;
  Scope scope;
  std::vector<ValueId> arguments;
  for (const graph::Type& type : inputs) arguments.push_back(inner.graph.add_input(type));
  std::map<ValueId, ValueId> inside;
  for (ValueId v : captured) inside[v] = inner.graph.add_input(target_->graph.type(v), target_->graph.value(v).name);
  for (const std::string& name : free_names(subgraph)) {
    ValueId v = scope_->find(name);
    if (auto it = inside.find(v); it != inside.end()) {
      scope.values[name] = it->second;
    } else if (const Tensor* data = target_->graph.constant(v)) {
      scope.values[name] = inner.builder.constant(*data);
    } else if (const auto& known = contents(v)) {
      const graph::Type& type = target_->graph.type(v);
      ValueId made = inner.builder.reshape(inner.builder.shape_value(*known), type.shape);
      scope.values[name] = inner.builder.cast(made, type.dtype);
    }
  }
  Scope* outer_scope = scope_;
  Target* outer_target = target_;
  scope_ = &scope;
  target_ = &inner;
  auto outputs = inline_subgraph(subgraph, arguments);
  scope_ = outer_scope;
  target_ = outer_target;
  std::vector<ValueId> values = WEFT_TRY(std::move(outputs));
  inner.graph.set_outputs(values);
  return std::shared_ptr<const graph::Graph>(std::make_shared<graph::Graph>(std::move(inner.graph)));
}

}  // namespace weft::onnx
