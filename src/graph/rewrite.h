// Rebuilding graphs: what passes are written with. A graph only grows, so a pass copies it node by
// node into a new one, replacing what it wants to. Inputs keep their order; names, outputs, facts
// and origins are kept.
#pragma once

#include <functional>
#include <optional>

#include "graph/builder.h"
#include "graph/graph.h"

namespace weft::graph {

// What a rewrite sees of the node about to be copied.
struct RewriteContext {
  const Graph& from;
  const Node& node;                                          // in `from`
  const std::vector<ValueId>& operands;                      // the node's operands in the new graph
  const std::vector<std::shared_ptr<const Graph>>& regions;  // its regions, already rewritten
  const std::vector<ValueId>& values;  // old value -> new value, kInvalid for those not yet copied
  Builder& builder;                    // writes into the new graph, carries the node's origin
};

// Copies a graph. The callback gives the new values of the node's results, of the same dtypes and
// ranks, or nothing to have the node copied. Regions are rewritten first, by the same callback;
// those without a change are shared.
class Rewriter {
 public:
  using Callback = std::function<std::optional<std::vector<ValueId>>(const RewriteContext&)>;
  explicit Rewriter(Callback callback) : callback_(std::move(callback)) {}

  Result<Graph> run(const Graph& graph);
  int replaced() const { return replaced_; }  // nodes that the callback replaced, over all runs

 private:
  Callback callback_;
  int replaced_ = 0;
};

// Without the nodes that nothing needs: a node stays when a result is used, when it is not pure, or
// when it binds a symbol that something kept mentions. Regions included.
Result<Graph> dce(const Graph& graph);

// For each value how often it is an operand or an output; uses within regions count in the regions.
std::vector<int> use_counts(const Graph& graph);

}  // namespace weft::graph
