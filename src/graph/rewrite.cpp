#include "graph/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weft::graph {
namespace {

using Regions = std::vector<std::shared_ptr<const Graph>>;

// A new graph under construction and where the old values are in it.
struct Copy {
  const Graph& from;
  Graph to;
  std::vector<ValueId> values;

  explicit Copy(const Graph& graph) : from(graph), values(graph.values().size(), kInvalid) {
    to.name = graph.name;
    to.facts = graph.facts;
    to.reserve(graph.nodes().size(), graph.values().size());
    for (ValueId v : graph.inputs()) values[v] = to.add_input(graph.type(v), graph.value(v).name);
  }

  std::vector<ValueId> mapped(const std::vector<ValueId>& old) const {
    std::vector<ValueId> out;
    out.reserve(old.size());
    for (ValueId v : old) {
      WEFT_CHECK(values[v] != kInvalid, fmt::format("value %{} is used, but was not copied", v));
      out.push_back(values[v]);
    }
    return out;
  }

  void bind(const Node& node, const std::vector<ValueId>& results) {
    WEFT_CHECK(
        results.size() == node.results.size(),
        fmt::format("a replacement of {} gives another number of results", info(node.op).name));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Value& old = from.value(node.results[i]);
      const Type& type = to.type(results[i]);
      WEFT_CHECK(old.type.dtype == type.dtype && old.type.rank() == type.rank(),
                 fmt::format("a replacement of {} gives {}, not {}", info(node.op).name, str(type),
                             str(old.type)));
      values[node.results[i]] = results[i];
      if (!old.name.empty() && to.value(results[i]).name.empty()) to.set_name(results[i], old.name);
    }
  }

  Result<void> copy(const Node& node, Regions regions) {
    const NodeId id = WEFT_TRY(to.copy_node(from, node, mapped(node.operands), std::move(regions)));
    bind(node, to.node(id).results);
    return {};
  }

  Graph finish() {
    to.set_outputs(mapped(from.outputs()));
    return std::move(to);
  }
};

void collect(const Type& type, std::set<std::string>& symbols) {
  for (const Dim& d : type.shape) d.collect_symbols(symbols);
}

void collect(const Graph& graph, std::set<std::string>& symbols);

void collect(const Graph& graph, const Node& node, std::set<std::string>& symbols) {
  for (ValueId v : node.operands) collect(graph.type(v), symbols);
  for (ValueId v : node.results) collect(graph.type(v), symbols);
  for (const auto& [key, value] : node.attrs.all()) {
    if (const auto* dims = std::get_if<Shape>(&value)) {
      for (const Dim& d : *dims) d.collect_symbols(symbols);
    }
  }
  for (const auto& region : node.regions) collect(*region, symbols);
}

void collect(const Graph& graph, std::set<std::string>& symbols) {
  for (ValueId v : graph.inputs()) collect(graph.type(v), symbols);
  for (const Node& node : graph.nodes()) collect(graph, node, symbols);
}

// Whether the node's only effect is to bind its symbols (its region's nodes included).
bool only_binds(const Node& node) {
  if (node.op == Op::CustomCall || node.op == Op::Fail) return false;
  for (const auto& region : node.regions) {
    for (const Node& inner : region->nodes()) {
      if (!is_pure(inner) && !only_binds(inner)) return false;
    }
  }
  return true;
}

void collect_bound(const Node& node, std::set<std::string>& symbols) {
  for (std::string& s : bound_symbols(node)) symbols.insert(std::move(s));
  for (const auto& region : node.regions) {
    for (const Node& inner : region->nodes()) collect_bound(inner, symbols);
  }
}

// Whether any node does, those of regions included: else nobody needs to know which symbols are mentioned.
bool binds_symbols(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return !bound_symbols(node).empty() ||
           std::any_of(node.regions.begin(), node.regions.end(), [](const auto& region) { return binds_symbols(*region); });
  });
}

// `symbols`: those that what lies outside of the graph mentions; `binds`: binds_symbols() of it.
std::vector<bool> live_nodes(const Graph& graph, std::set<std::string> symbols, bool binds) {
  std::vector<bool> live(graph.nodes().size());
  std::vector<bool> needed(graph.values().size());
  for (ValueId v : graph.outputs()) {
    needed[v] = true;
    if (binds) collect(graph.type(v), symbols);
  }
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    bool keep = !is_pure(node) && !only_binds(node);
    for (ValueId v : node.results) keep = keep || needed[v];
    std::set<std::string> bound;
    if (!keep) collect_bound(node, bound);
    keep = keep || std::any_of(bound.begin(), bound.end(),
                               [&](const std::string& s) { return symbols.count(s) != 0; });
    if (!keep) continue;
    live[i] = true;
    for (ValueId v : node.operands) needed[v] = true;
    if (binds) collect(graph, node, symbols);
  }
  return live;
}

Result<Graph> dce_within(const Graph& graph, const std::set<std::string>& outside) {
  const bool binds = binds_symbols(graph);
  const std::vector<bool> live = live_nodes(graph, outside, binds);
  const bool has_regions = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) { return !n.regions.empty(); });
  if (!has_regions && std::all_of(live.begin(), live.end(), [](bool l) { return l; })) return graph;
  Copy copy(graph);
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    const Node& node = graph.nodes()[i];
    Regions regions;
    std::set<std::string> mentioned = outside;
    if (binds && !node.regions.empty()) collect(graph, mentioned);
    for (const auto& region : node.regions) {
      regions.push_back(std::make_shared<const Graph>(WEFT_TRY(dce_within(*region, mentioned))));
    }
    WEFT_TRY(copy.copy(node, std::move(regions)));
  }
  return copy.finish();
}

}  // namespace

Result<Graph> Rewriter::run(const Graph& graph) {
  Copy copy(graph);
  Builder builder(copy.to);
  for (const Node& node : graph.nodes()) {
    Regions regions;
    for (const auto& region : node.regions) {
      const int before = replaced_;
      Graph rewritten = WEFT_TRY(run(*region));
      regions.push_back(replaced_ == before ? region
                                            : std::make_shared<const Graph>(std::move(rewritten)));
    }
    builder.set_origin(node.origin);
    const std::vector<ValueId> operands = copy.mapped(node.operands);
    const auto results = callback_({graph, node, operands, regions, copy.values, builder});
    WEFT_TRY(builder.status());
    if (results) {
      ++replaced_;
      copy.bind(node, *results);
    } else {
      WEFT_TRY(copy.copy(node, std::move(regions)));
    }
  }
  return copy.finish();
}

Result<Graph> dce(const Graph& graph) { return dce_within(graph, {}); }

std::vector<int> use_counts(const Graph& graph) {
  std::vector<int> counts(graph.values().size());
  for (const Node& node : graph.nodes()) {
    for (ValueId v : node.operands) ++counts[v];
  }
  for (ValueId v : graph.outputs()) ++counts[v];
  return counts;
}

}  // namespace weft::graph
