// Local algebra on graphs: the rules of rules/, to a fixed point.
#include "base/log.h"
#include "graph/rewrite.h"
#include "transform/passes.h"
#include "transform/rules/match.h"

namespace weft::transform {

using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;

namespace {

constexpr int kMaxRounds = 8;

std::optional<std::vector<ValueId>> apply_rules(const RewriteContext& c) {
  for (const auto* rules : {&index_rules(), &arithmetic_rules(), &choice_rules(), &movement_rules()}) {
    for (const Rule& rule : *rules) {
      if (c.node.results.size() != 1) return std::nullopt;
      if (auto v = rule.apply(c)) return std::vector<ValueId>{*v};
    }
  }
  return std::nullopt;
}

}  // namespace

// Rules make constants and shape arithmetic, and folding them gives rules more to see.
Result<Graph> simplify(const Graph& graph, const PassOptions& options) {
  Graph current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    graph::Rewriter rewriter(apply_rules);
    current = WEFT_TRY(rewriter.run(current));
    if (rewriter.replaced() == 0) break;
    current = WEFT_TRY(fold_shapes(current, options));
    current = WEFT_TRY(fold_constants(current, options));
    current = WEFT_TRY(graph::dce(current));
  }
  return current;
}

}  // namespace weft::transform
