#include <map>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

// The region's nodes, written in place of the composite; regions inside were rewritten before.
std::vector<ValueId> paste(const Graph& body, const std::vector<ValueId>& operands, graph::Builder& builder) {
  std::vector<ValueId> map(body.values().size(), -1);
  for (std::size_t i = 0; i < body.inputs().size(); ++i) map[body.inputs()[i]] = operands[i];
  auto outer = builder.origin();
  for (const Node& node : body.nodes()) {
    std::vector<ValueId> args;
    for (ValueId v : node.operands) args.push_back(map[v]);
    builder.set_origin(node.origin ? node.origin : outer);
    auto results = builder.nodes(node.op, std::move(args), node.attrs, node.regions);
    for (std::size_t k = 0; k < results.size(); ++k) map[node.results[k]] = results[k];
  }
  builder.set_origin(outer);
  std::vector<ValueId> outputs;
  for (ValueId v : body.outputs()) outputs.push_back(map[v]);
  return outputs;
}

}  // namespace

Result<Graph> inline_composites(const Graph& graph, const PassOptions&) {
  return graph::Rewriter([](const graph::RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           if (c.node.op != graph::Op::Composite) return std::nullopt;
           return paste(*c.regions[0], c.operands, c.builder);
         })
      .run(graph);
}

Result<Graph> remove_dead(const Graph& graph, const PassOptions&) { return graph::dce(graph); }

}  // namespace weft::transform
