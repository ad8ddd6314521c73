#include <fmt/format.h>

#include <set>

#include "graph/graph.h"
#include "graph/infer/infer.h"
#include "graph/text.h"

namespace weft::graph {
namespace {

using Symbols = std::set<std::string>;

void collect_input_symbols(const Graph& graph, Symbols& into) {
  for (ValueId v : graph.inputs()) {
    for (const Dim& d : graph.type(v).shape) d.collect_symbols(into);
  }
}

class Verifier {
 public:
  Result<void> run(const Graph& graph, const Symbols& outside, int depth);

 private:
  Result<void> check_values();
  Result<void> check_node(NodeId id);
  Result<void> check_types(NodeId id);
  Result<void> check_symbols(NodeId id);
  Error error(const char* code, NodeId id, const std::string& message) const;

  const Graph* graph_ = nullptr;
  Symbols symbols_;  // bound somewhere in the graph, its regions, or around it
  int depth_ = 0;
};

void collect_bound(const Graph& graph, Symbols& into, int depth) {
  collect_input_symbols(graph, into);
  if (depth > kMaxRegionDepth) return;
  for (const Node& node : graph.nodes()) {
    for (std::string& s : bound_symbols(node)) into.insert(std::move(s));
    for (const auto& region : node.regions) {
      if (region != nullptr) collect_bound(*region, into, depth + 1);
    }
  }
}

Error Verifier::error(const char* code, NodeId id, const std::string& message) const {
  const Node& node = graph_->node(id);
  Error e = user_error(code, fmt::format("graph @{}, node {} ({}): {}", graph_->name, id,
                                         info(node.op).name, message));
  if (node.origin != nullptr) e.at(str(*node.origin));
  return e;
}

// Every value is an input or a result, in the place that it names.
Result<void> Verifier::check_values() {
  const auto bad = [&](const char* what, ValueId v) {
    return user_error("invalid-graph", fmt::format("graph @{}: {} %{}", graph_->name, what, v));
  };
  const auto count = static_cast<ValueId>(graph_->values().size());
  for (std::size_t i = 0; i < graph_->inputs().size(); ++i) {
    const ValueId v = graph_->inputs()[i];
    if (v < 0 || v >= count) return bad("no such input", v);
    if (graph_->value(v).def != kGraphInput || graph_->value(v).result != static_cast<int>(i)) {
      return bad("an input that is defined elsewhere:", v);
    }
  }
  for (ValueId v : graph_->outputs()) {
    if (v < 0 || v >= count) return bad("no such output", v);
  }
  return {};
}

Result<void> Verifier::check_types(NodeId id) {
  const Node& node = graph_->node(id);
  Types operands;
  for (ValueId v : node.operands) operands.push_back(graph_->type(v));
  auto types = infer({node.op, std::move(operands), node.attrs, node.regions, graph_->facts});
  if (!types.ok()) {
    Error e = types.error();
    if (node.origin != nullptr && e.where().empty()) e.at(str(*node.origin));
    return e;
  }
  if (types->size() != node.results.size())
    return error("invalid-graph", id, "wrong number of results");
  for (std::size_t i = 0; i < types->size(); ++i) {
    const Type& type = graph_->type(node.results[i]);
    if (!same_type(graph_->facts, (*types)[i], type)) {
      return error("invalid-graph", id, fmt::format("result {} has another type than inferred", i))
          .expected(str((*types)[i]))
          .found(str(type));
    }
  }
  return {};
}

Result<void> Verifier::check_symbols(NodeId id) {
  const Node& node = graph_->node(id);
  Symbols used;
  for (ValueId v : node.results) {
    for (const Dim& d : graph_->type(v).shape) d.collect_symbols(used);
  }
  for (const auto& [key, value] : node.attrs.all()) {
    if (const auto* dims = std::get_if<Shape>(&value)) {
      for (const Dim& d : *dims) d.collect_symbols(used);
    }
  }
  for (const std::string& s : used) {
    if (symbols_.count(s) == 0) {
      return error("unbound-symbol", id, fmt::format("no input and no op binds the size '{}'", s));
    }
  }
  return {};
}

Result<void> Verifier::check_node(NodeId id) {
  const Node& node = graph_->node(id);
  const auto count = static_cast<ValueId>(graph_->values().size());
  for (ValueId v : node.operands) {
    if (v < 0 || v >= count)
      return error("invalid-graph", id, fmt::format("no such operand: %{}", v));
    if (graph_->value(v).def >= id)
      return error("invalid-graph", id, fmt::format("%{} is used before it is made", v));
  }
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const ValueId v = node.results[i];
    if (v < 0 || v >= count || graph_->value(v).def != id ||
        graph_->value(v).result != static_cast<int>(i)) {
      return error("invalid-graph", id, fmt::format("result {} is not the node's own", i));
    }
  }
  WEFT_TRY(check_types(id));
  WEFT_TRY(check_symbols(id));
  for (const auto& region : node.regions) WEFT_TRY(Verifier().run(*region, symbols_, depth_ + 1));
  return {};
}

Result<void> Verifier::run(const Graph& graph, const Symbols& outside, int depth) {
  if (depth > kMaxRegionDepth) {
    return unsupported("region-depth",
                       fmt::format("regions are nested deeper than {}", kMaxRegionDepth));
  }
  graph_ = &graph;
  depth_ = depth;
  symbols_ = outside;
  collect_bound(graph, symbols_, depth);
  WEFT_TRY(check_values());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    WEFT_TRY(check_node(static_cast<NodeId>(i)));
  return {};
}

}  // namespace

Result<void> verify(const Graph& graph) {
  if (!graph.nodes().empty() && graph.outputs().empty()) {
    return user_error("no-outputs", fmt::format("graph @{} has no outputs", graph.name));
  }
  return Verifier().run(graph, {}, 0);
}

}  // namespace weft::graph
