#include "loop/lower/dot_sums.h"

#include <map>
#include <optional>

namespace weft::loop {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr std::size_t kMostTerms = 16;  // in one kernel

Shape contracted(const Graph& g, const Node& dot) {
  Shape extents;
  if (dot.op == GOp::Conv) return g.type(dot.operands[1]).shape;
  for (std::int64_t axis : dot.attrs.ints(Attr::LhsContract)) extents.push_back(g.type(dot.operands[0]).shape[axis]);
  return extents;
}

// Each axis of the results belongs to the same side, and the sums have the same steps.
bool alike(const Graph& g, const Node& a, const Node& b) {
  const auto same_types = [&](std::size_t k) {
    const graph::Type &x = g.type(a.operands[k]), &y = g.type(b.operands[k]);
    return x.dtype == y.dtype && x.rank() == y.rank();
  };
  if (a.op != b.op || !same_types(0) || !same_types(1) || !(g.type(a.results[0]) == g.type(b.results[0]))) return false;
  if (a.op == GOp::Conv) return a.attrs == b.attrs && contracted(g, a) == contracted(g, b);
  return a.attrs.ints(Attr::LhsBatch).size() == b.attrs.ints(Attr::LhsBatch).size() && contracted(g, a) == contracted(g, b);
}

}  // namespace

std::vector<DotSum> find_dot_sums(const Graph& g, const std::vector<std::vector<NodeId>>& users,
                                  const std::vector<bool>& is_output) {
  std::map<ValueId, DotSum> sums;  // by total; of one dot as well
  const auto part = [&](ValueId v) -> std::optional<DotSum> {
    if (const auto it = sums.find(v); it != sums.end()) return it->second;
    const Node* def = g.def(v);
    return def && (def->op == GOp::Dot || def->op == GOp::Conv) ? std::optional(DotSum{{g.value(v).def}, {}, v}) : std::nullopt;
  };
  const auto only_here = [&](ValueId v) { return users[v].size() == 1 && !is_output[v]; };
  for (NodeId n = 0; n < static_cast<NodeId>(g.nodes().size()); ++n) {
    const Node& node = g.node(n);
    if (node.op != GOp::Add || node.operands[0] == node.operands[1]) continue;
    if (!only_here(node.operands[0]) || !only_here(node.operands[1])) continue;
    auto sum = part(node.operands[0]);
    const auto more = part(node.operands[1]);
    if (!sum || !more || sum->dots.size() + more->dots.size() > kMostTerms) continue;
    if (!alike(g, g.node(sum->dots.front()), g.node(more->dots.front()))) continue;
    sum->dots.insert(sum->dots.end(), more->dots.begin(), more->dots.end());
    sum->adds.insert(sum->adds.end(), more->adds.begin(), more->adds.end());
    sum->adds.push_back(n);
    sum->total = node.results[0];
    for (ValueId v : node.operands) sums.erase(v);
    sums.emplace(sum->total, std::move(*sum));
  }
  std::vector<DotSum> found;
  for (auto& [total, sum] : sums) found.push_back(std::move(sum));
  return found;
}

}  // namespace weft::loop
