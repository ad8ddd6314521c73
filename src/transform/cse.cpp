#include <algorithm>
#include <map>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Graph;
using graph::ValueId;

// Nodes without regions that are pure and alike in op, operands and attributes are one.
Result<Graph> merge_equal(const Graph& graph, const PassOptions&) {
  struct Seen {
    const graph::Node* node;
    std::vector<ValueId> operands;
  };
  // One table per graph that is copied: regions are rewritten in between.
  std::map<const Graph*, std::multimap<std::uint64_t, Seen>> tables;
  return graph::Rewriter([&](const graph::RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           auto& seen = tables[&c.from];
           if (&c.node == &c.from.nodes().front()) seen.clear();  // a region that is shared is copied again
           if (!info(c.node.op).pure || !c.regions.empty()) return std::nullopt;
           std::vector<ValueId> operands = c.operands;
           if (info(c.node.op).commutative) std::sort(operands.begin(), operands.end());
           std::uint64_t hash = c.node.attrs.hash() * 31 + static_cast<std::uint64_t>(c.node.op);
           for (ValueId v : operands) hash = hash * 1000003 + static_cast<std::uint64_t>(v);
           auto [begin, end] = seen.equal_range(hash);
           for (auto it = begin; it != end; ++it) {
             const Seen& s = it->second;
             if (s.node->op != c.node.op || s.operands != operands || s.node->attrs != c.node.attrs) continue;
             std::vector<ValueId> results;
             for (ValueId v : s.node->results) results.push_back(c.values[v]);
             return results;
           }
           seen.emplace(hash, Seen{&c.node, std::move(operands)});
           return std::nullopt;
         })
      .run(graph);
}

}  // namespace weft::transform
