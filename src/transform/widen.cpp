// Casts around ops that kernels only do on wider elements.
#include "graph/narrow.h"
#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;

namespace {

DType wider(DType t) {
  if (is_float(t)) return DType::F32;
  return is_signed_int(t) ? DType::I8 : DType::U8;
}

}  // namespace

Result<Graph> widen(const Graph& graph, const PassOptions&) {
  return graph::Rewriter([](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           if (c.node.results.empty()) return std::nullopt;
           const DType t = c.from.type(c.node.results[0]).dtype;
           if (is_string(t) || is_complex(t) || !graph::wants_wider(c.node, t)) return std::nullopt;
           std::vector<ValueId> operands = c.operands;
           Attrs attrs = c.node.attrs;
           const bool states = attrs.has(Attr::DType);
           if (states) attrs.set(Attr::DType, wider(t));
           for (ValueId& v : operands) {
             if (!states && c.builder.dtype(v) == t) v = c.builder.cast(v, wider(t), false);
           }
           std::vector<ValueId> results = c.builder.nodes(c.node.op, std::move(operands), std::move(attrs));
           results[0] = c.builder.cast(results[0], t, false);
           return results;
         })
      .run(graph);
}

}  // namespace weft::transform
