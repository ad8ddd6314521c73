#include "loop/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "loop/lower/collapse.h"
#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// A step with what it needs and makes, for ordering. Steps of one chain (parts of a concatenation, copy then scatter)
// stay together.
struct Pending {
  std::vector<Step> steps;
  std::set<ValueId> reads;
  std::set<ValueId> writes;
  std::set<std::string> needs;  // symbols in its sizes
  std::set<std::string> binds;  // symbols that it gives a value
};

void note_symbols(const Graph& g, Pending& p) {
  auto need = [&](const Shape& shape) {
    for (const Dim& d : shape) d.collect_symbols(p.needs);
  };
  for (const Step& step : p.steps) {
    if (step.kind == Step::Kind::Kernel) {
      for (const Param& param : step.group.params) need(param.shape);
      for (const Loop& loop : step.group.loops) loop.extent.collect_symbols(p.needs);
      for (const Expr& e : step.group.exprs()) e.dim.collect_symbols(p.needs);
      continue;
    }
    const Node& node = g.node(step.node);
    bool binds_shape = node.op == GOp::Bind;
    for (const auto& [key, value] : node.attrs.all()) {
      const auto* dims = std::get_if<Shape>(&value);
      if (!dims) continue;
      bool bound = key == graph::Attr::Symbol || (binds_shape && key == graph::Attr::Shape);
      for (const Dim& d : *dims) d.collect_symbols(bound ? p.binds : p.needs);
    }
    for (ValueId v : node.operands) need(g.type(v).shape);
    for (ValueId v : node.results) need(g.type(v).shape);
  }
  for (const std::string& s : p.binds) p.needs.erase(s);
}

void note_accesses(const Graph& g, const std::vector<ValueId>& alias, Pending& p) {
  for (const Step& step : p.steps) {
    if (step.kind == Step::Kind::Node) {
      for (ValueId v : g.node(step.node).operands) p.reads.insert(alias[v]);
      for (ValueId v : g.node(step.node).results) p.writes.insert(v);
      continue;
    }
    for (std::size_t k = 0; k < step.args.size(); ++k) {
      if (step.args[k] < 0) continue;
      (step.group.params[k].role == Role::Input ? p.reads : p.writes).insert(step.args[k]);
    }
  }
  for (ValueId v : p.writes) p.reads.erase(v);
}

// Repeatedly takes the first pending entry whose inputs are all there.
std::vector<Step> in_order(const Graph& g, std::vector<Pending> pending) {
  std::vector<bool> ready(g.values().size(), false);
  for (ValueId v : g.inputs()) ready[v] = true;
  for (const Node& n : g.nodes()) {
    if (n.op == GOp::Constant) ready[n.results[0]] = true;
  }
  std::set<std::string> late;  // symbols that a step has still to bind
  for (const Pending& p : pending) late.insert(p.binds.begin(), p.binds.end());
  std::vector<Step> steps;
  std::vector<bool> done(pending.size(), false);
  std::size_t left = pending.size();
  while (left > 0) {
    bool progress = false;
    for (std::size_t k = 0; k < pending.size(); ++k) {
      if (done[k]) continue;
      bool can = std::all_of(pending[k].reads.begin(), pending[k].reads.end(), [&](ValueId v) { return ready[v]; }) &&
                 std::none_of(pending[k].needs.begin(), pending[k].needs.end(),
                              [&](const std::string& s) { return late.count(s) != 0; });
      if (!can) continue;
      for (Step& s : pending[k].steps) steps.push_back(std::move(s));
      for (ValueId v : pending[k].writes) ready[v] = true;
      for (const std::string& s : pending[k].binds) late.erase(s);
      done[k] = true;
      progress = true;
      --left;
    }
    WEFT_CHECK(progress, "the fused units depend on each other in a circle");
  }
  return steps;
}

class Lowering {
 public:
  Lowering(const Graph& g, const Choices& choices)
      : g_(g), plan_(plan_fusion(g, choices.attention)), context_{g, plan_.stored, scratch_, choices.pairs, choices.kept_bytes} {}

  Partition run() {
    Partition partition;
    partition.stored = plan_.stored;
    partition.alias = aliases();
    std::vector<Pending> pending;
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes().size()); ++n) {
      Pending p;
      p.steps = steps_of(n);
      if (p.steps.empty()) continue;
      for (Step& s : p.steps) {
        if (s.kind == Step::Kind::Kernel) collapse(s.group);
      }
      note_accesses(g_, partition.alias, p);
      note_symbols(g_, p);
      pending.push_back(std::move(p));
    }
    partition.steps = in_order(g_, std::move(pending));
    partition.scratch = std::move(scratch_);
    return partition;
  }

 private:
  std::vector<ValueId> aliases() const {
    std::vector<ValueId> alias(g_.values().size());
    for (ValueId v = 0; v < static_cast<ValueId>(alias.size()); ++v) {
      const Node* def = g_.def(v);
      bool shares = def && def->op == GOp::Reshape && !plan_.stored[v] && plan_.unit_of[g_.value(v).def] < 0;
      alias[v] = shares ? alias[def->operands[0]] : v;
    }
    return alias;
  }

  std::vector<Step> one(Step step) {
    std::vector<Step> steps;
    steps.push_back(std::move(step));
    return steps;
  }

  // The steps that node n stands for; a unit is emitted at its last node.
  std::vector<Step> steps_of(NodeId n) {
    const Node& node = g_.node(n);
    if (int u = plan_.unit_of[n]; u >= 0) {
      const Unit& unit = plan_.units[u];
      NodeId last = *std::max_element(unit.nodes.begin(), unit.nodes.end());
      if (n != last || (unit.outputs.empty() && unit.pads.empty())) return {};
      if (unit.kind == UnitKind::Attention) return emit_attention(context_, unit);
      return unit.kind == UnitKind::Contraction ? emit_contraction(context_, unit) : one(emit_rows(context_, unit));
    }
    switch (part_of(g_, node)) {
      case Part::Step: {
        Step step;
        step.kind = Step::Kind::Node;
        step.node = n;
        return one(std::move(step));
      }
      case Part::Alone:
        return emit_alone(node);
      case Part::Inline:
        if (!plan_.stored[node.results[0]]) return {};
        if (node.op == GOp::Concat && !pointwise_only(g_.type(node.results[0]).dtype)) return emit_concat(context_, node);
        return one(emit_pointwise(context_, node.results[0]));
      default:
        return {};
    }
  }

  std::vector<Step> emit_alone(const Node& node) {
    switch (info(node.op).family) {
      case graph::Family::Reduce:
        return one(emit_arg_reduce(context_, node));
      case graph::Family::Window:
        return one(emit_window_arg_max(context_, node));
      case graph::Family::Scan:
        return one(emit_cumulative(context_, node));
      case graph::Family::Scatter:
        return emit_scatter(context_, node);
      case graph::Family::Sort:
        return emit_sort(context_, node);
      default:
        WEFT_CHECK(false, fmt::format("'{}' has no lowering", info(node.op).name));
    }
  }

  const Graph& g_;
  FusionPlan plan_;
  std::vector<Scratch> scratch_;
  EmitContext context_;
};

}  // namespace

Result<Partition> lower(const Graph& graph, const Choices& choices) {
  for (const Node& node : graph.nodes()) {
    if (node.op == GOp::Composite) return internal_error("a composite reached the lowering to loops");
  }
  return Lowering(graph, choices).run();
}

}  // namespace weft::loop
