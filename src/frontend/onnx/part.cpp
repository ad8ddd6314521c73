#include "frontend/onnx/part.h"

#include <algorithm>
#include <set>

namespace weft::onnx {
namespace {

using Names = std::set<std::string>;

// Calls f for each name that the node reads, those of its subgraphs included.
template <class F>
void each_read(const Node& node, F&& f) {
  for (const std::string& name : node.inputs) {
    if (!name.empty()) f(name);
  }
  const auto outer = [&](const GraphPtr& graph) {
    for (const std::string& name : free_names(*graph)) f(name);
  };
  for (const Attribute& a : node.attributes) {
    if (const auto* graph = a.as<GraphPtr>()) outer(*graph);
    if (const auto* graphs = a.as<std::vector<GraphPtr>>()) std::for_each(graphs->begin(), graphs->end(), outer);
  }
}

Names initialised(const Graph& graph) {
  Names names;
  for (const NamedTensor& t : graph.initializers) names.insert(t.name);
  for (const SparseTensor& t : graph.sparse_initializers) names.insert(t.name);
  return names;
}

const Function* function_of(const Model& model, const Node& node) {
  for (const Function& f : model.functions) {
    if (f.name == node.op_type && f.domain == node.domain && f.overload == node.overload) return &f;
  }
  return nullptr;
}

// The functions that the nodes call, directly or not. Validated models have no recursion.
void collect_functions(const Model& model, const std::vector<Node>& nodes, std::set<const Function*>& called) {
  for (const Node& node : nodes) {
    const Function* function = function_of(model, node);
    if (function && called.insert(function).second) collect_functions(model, function->nodes, called);
    for (const Attribute& a : node.attributes) {
      if (const auto* graph = a.as<GraphPtr>()) collect_functions(model, (*graph)->nodes, called);
    }
  }
}

bool has_label(const Model& model, const Node& node, const std::vector<std::string>& labels) {
  if (std::find(labels.begin(), labels.end(), node.label()) != labels.end()) return true;
  const Function* function = function_of(model, node);
  return function && std::any_of(function->nodes.begin(), function->nodes.end(),
                                 [&](const Node& inner) { return has_label(model, inner, labels); });
}

}  // namespace

Boundary boundary(const Graph& graph, const NodeNumbers& nodes) {
  const std::set<std::size_t> inside(nodes.begin(), nodes.end());
  const Names weights = initialised(graph);
  Names made, seen, read_outside;
  Boundary result;
  for (const std::size_t n : nodes) {
    each_read(graph.nodes[n], [&](const std::string& name) {
      if (!made.count(name) && !weights.count(name) && seen.insert(name).second) result.inputs.push_back(name);
    });
    made.insert(graph.nodes[n].outputs.begin(), graph.nodes[n].outputs.end());
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!inside.count(n)) each_read(graph.nodes[n], [&](const std::string& name) { read_outside.insert(name); });
  }
  for (const ValueInfo& output : graph.outputs) read_outside.insert(output.name);
  const auto collect = [&](bool all) {
    for (const std::size_t n : nodes) {
      for (const std::string& name : graph.nodes[n].outputs) {
        if (!name.empty() && (all || read_outside.count(name))) result.outputs.push_back(name);
      }
    }
  };
  collect(false);
  if (result.outputs.empty()) collect(true);
  return result;
}

Model part(const Model& model, const NodeNumbers& nodes, std::vector<ValueInfo> inputs, std::vector<ValueInfo> outputs,
           std::vector<NamedTensor> known) {
  auto graph = std::make_shared<Graph>();
  graph->name = "part";
  graph->inputs = std::move(inputs);
  graph->outputs = std::move(outputs);
  graph->initializers = std::move(known);
  Names read;
  for (const std::size_t n : nodes) {
    graph->nodes.push_back(model.graph->nodes[n]);
    each_read(graph->nodes.back(), [&](const std::string& name) { read.insert(name); });
  }
  for (const NamedTensor& t : model.graph->initializers) {
    if (read.count(t.name)) graph->initializers.push_back(t);
  }
  for (const SparseTensor& t : model.graph->sparse_initializers) {
    if (read.count(t.name)) graph->sparse_initializers.push_back(t);
  }
  std::set<const Function*> called;
  collect_functions(model, graph->nodes, called);
  Model result;
  result.ir_version = model.ir_version;
  result.producer_name = "weft";
  result.opset_imports = model.opset_imports;
  result.graph = std::move(graph);
  for (const Function& function : model.functions) {
    if (called.count(&function)) result.functions.push_back(function);
  }
  return result;
}

NodeNumbers labelled(const Model& model, const std::vector<std::string>& labels) {
  NodeNumbers numbers;
  for (std::size_t n = 0; n < model.graph->nodes.size(); ++n) {
    if (has_label(model, model.graph->nodes[n], labels)) numbers.push_back(n);
  }
  return numbers;
}

}  // namespace weft::onnx
