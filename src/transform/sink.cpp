// What no iteration of a loop changes is captured instead of carried, and constants that a branch or a loop captures
// become constants of its body: they fold there, and kernels may lay them out.
#include <algorithm>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// Where a control node's operands meet its regions' inputs and outputs.
struct RegionLayout {
  std::int64_t outer = 0;     // leading operands that are no input of a region
  std::int64_t carried = 0;   // how many values are carried
  std::int64_t in = 0;        // of a region's inputs, the first carried one
  std::int64_t out = 0;       // of a region's outputs, the first carried one
  std::int64_t captures = 0;  // of a region's inputs, the first captured one
};

std::optional<RegionLayout> layout_of(const Node& node) {
  const auto carried = [&] { return node.attrs.integer(graph::Attr::Carried); };
  switch (node.op) {
    case GOp::If:
      return RegionLayout{1, 0, 0, 0, 0};
    case GOp::Loop:
      return RegionLayout{0, carried(), 2, 1, 2 + carried()};
    case GOp::Scan:
      return RegionLayout{0, carried(), 0, 0, carried() + node.attrs.integer(graph::Attr::Xs)};
    default:
      return std::nullopt;
  }
}

// An input of the region that is made: which one it is of the old region, or that it is no input but a constant.
struct Input {
  std::size_t from = 0;
  const Tensor* known = nullptr;
};

Result<Graph> rebuilt(const Graph& region, const std::vector<Input>& inputs, const std::vector<ValueId>& outputs) {
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
  for (const Input& input : inputs) {
    const ValueId old = region.inputs()[input.from];
    if (!input.known) values[old] = made.add_input(region.type(old), region.value(old).name);
  }
  for (const Input& input : inputs) {
    if (input.known) values[region.inputs()[input.from]] = builder.constant(*input.known);
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
  made.set_outputs(mapped(outputs));
  return made;
}

// Carried values that no iteration changes.
std::vector<bool> unchanging(const graph::RewriteContext& c, const RegionLayout& at) {
  std::vector<bool> result(static_cast<std::size_t>(at.carried));
  const Graph& body = *c.regions[0];
  for (std::int64_t k = 0; k < at.carried; ++k) {
    const ValueId input = body.inputs()[at.in + k];
    result[k] = body.outputs()[at.out + k] == input &&
                body.type(input) == c.builder.graph().type(c.operands[at.outer + at.in + k]);
  }
  return result;
}

std::optional<std::vector<ValueId>> sink(const graph::RewriteContext& c) {
  const auto at = layout_of(c.node);
  if (!at) return std::nullopt;
  const std::vector<bool> same = at->carried > 0 ? unchanging(c, *at) : std::vector<bool>();
  const Graph& to = c.builder.graph();
  std::vector<ValueId> operands(c.operands.begin(), c.operands.begin() + at->outer);
  std::vector<Input> inputs;
  bool changed = false;
  const auto capture = [&](std::size_t input) {
    const ValueId v = c.operands[at->outer + input];
    const Tensor* known = to.constant(v);
    for (const auto& region : c.regions) {
      if (known && !(region->type(region->inputs()[input]) == to.type(v))) known = nullptr;
    }
    inputs.push_back({input, known});
    if (known) changed = true;
    if (!known) operands.push_back(v);
  };
  const auto is_same = [&](std::int64_t input) {
    return input >= at->in && input < at->in + at->carried && same[input - at->in];
  };
  for (std::int64_t i = 0; i < at->captures; ++i) {
    if (is_same(i)) continue;
    inputs.push_back({static_cast<std::size_t>(i), nullptr});
    operands.push_back(c.operands[at->outer + i]);
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.operands.size()) - at->outer; ++i) {
    if (is_same(i)) changed = true;
    if (i >= at->captures || is_same(i)) capture(static_cast<std::size_t>(i));
  }
  if (!changed) return std::nullopt;

  std::vector<std::shared_ptr<const Graph>> regions;
  for (const auto& region : c.regions) {
    std::vector<ValueId> outputs;
    for (std::size_t k = 0; k < region->outputs().size(); ++k) {
      const std::int64_t carried = static_cast<std::int64_t>(k) - at->out;
      if (carried < 0 || carried >= at->carried || !same[carried]) outputs.push_back(region->outputs()[k]);
    }
    auto made = rebuilt(*region, inputs, outputs);
    auto deeper = made.ok() ? graph::Rewriter(sink).run(*made) : std::move(made);
    if (!deeper.ok()) {
      c.builder.fail(deeper.error());
      return std::nullopt;
    }
    regions.push_back(std::make_shared<const Graph>(std::move(*deeper)));
  }
  graph::Attrs attrs = c.node.attrs;
  const std::int64_t left = at->carried - std::count(same.begin(), same.end(), true);
  if (at->carried > 0) attrs.set(graph::Attr::Carried, left);
  const std::vector<ValueId> made = c.builder.nodes(c.node.op, std::move(operands), std::move(attrs), std::move(regions));
  std::vector<ValueId> results;
  std::size_t next = 0;
  for (std::size_t k = 0; k < c.node.results.size(); ++k) {
    const bool kept = static_cast<std::int64_t>(k) >= at->carried || !same[k];
    if (kept && next >= made.size()) return std::nullopt;  // the builder has failed
    results.push_back(kept ? made[next++] : c.operands[at->outer + at->in + k]);
  }
  return results;
}

}  // namespace

Result<Graph> sink_constants(const Graph& graph, const PassOptions&) { return graph::Rewriter(sink).run(graph); }

}  // namespace weft::transform
