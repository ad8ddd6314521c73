// Constants that a branch or a loop captures become constants of its body: they fold there, and kernels may lay them
// out.
#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// Where the captures begin among the operands; -1: the op has none.
std::int64_t first_capture(const Node& node) {
  switch (node.op) {
    case GOp::If:
      return 1;
    case GOp::Loop:
      return 2 + node.attrs.integer(graph::Attr::Carried);
    case GOp::Scan:
      return node.attrs.integer(graph::Attr::Carried) + node.attrs.integer(graph::Attr::Xs);
    default:
      return -1;
  }
}

// The region with the inputs that have a tensor in `known` defined by it instead.
Result<Graph> with_constants(const Graph& region, const std::vector<const Tensor*>& known) {
  Graph made;
  made.name = region.name;
  made.facts = region.facts;
  graph::Builder builder(made);
  std::vector<ValueId> values(region.values().size(), graph::kInvalid);
  const auto mapped = [&](const std::vector<ValueId>& old) {
    std::vector<ValueId> out;
    for (ValueId v : old) out.push_back(values[v]);
    return out;
  };
  for (std::size_t i = 0; i < known.size(); ++i) {
    const ValueId input = region.inputs()[i];
    if (!known[i]) values[input] = made.add_input(region.type(input), region.value(input).name);
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i]) values[region.inputs()[i]] = builder.constant(*known[i]);
  }
  for (const Node& node : region.nodes()) {
    const auto id = WEFT_TRY(made.add_node(node.op, mapped(node.operands), node.attrs, node.regions, node.origin));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const ValueId from = node.results[k], to = made.node(id).results[k];
      values[from] = to;
      made.set_shape(to, region.type(from).shape);
      if (!region.value(from).name.empty()) made.set_name(to, region.value(from).name);
    }
  }
  WEFT_TRY(builder.status());
  made.set_outputs(mapped(region.outputs()));
  return made;
}

std::optional<std::vector<ValueId>> sink(const graph::RewriteContext& c) {
  const std::int64_t first = first_capture(c.node);
  if (first < 0) return std::nullopt;
  const std::int64_t shift = c.node.op == GOp::If ? 1 : 0;  // operands that are no input of the region
  const Graph& to = c.builder.graph();
  std::vector<const Tensor*> known(c.operands.size() - shift, nullptr);
  std::vector<ValueId> operands;
  for (std::size_t k = 0; k < c.operands.size(); ++k) {
    const Tensor* data = static_cast<std::int64_t>(k) >= first ? to.constant(c.operands[k]) : nullptr;
    for (const auto& region : c.regions) {
      if (data && !(region->type(region->inputs()[k - shift]) == to.type(c.operands[k]))) data = nullptr;
    }
    if (data) {
      known[k - shift] = data;
    } else {
      operands.push_back(c.operands[k]);
    }
  }
  if (operands.size() == c.operands.size()) return std::nullopt;
  std::vector<std::shared_ptr<const Graph>> regions;
  for (const auto& region : c.regions) {
    auto made = with_constants(*region, known);
    auto deeper = made.ok() ? graph::Rewriter(sink).run(*made) : std::move(made);
    if (!deeper.ok()) {
      c.builder.fail(deeper.error());
      return std::nullopt;
    }
    regions.push_back(std::make_shared<const Graph>(std::move(*deeper)));
  }
  return c.builder.nodes(c.node.op, std::move(operands), c.node.attrs, std::move(regions));
}

}  // namespace

Result<Graph> sink_constants(const Graph& graph, const PassOptions&) { return graph::Rewriter(sink).run(graph); }

}  // namespace weft::transform
