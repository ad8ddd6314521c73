// Casts around ops that kernels only do on wider elements.
#include "base/scalar.h"
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

// Whose result over nothing is the end of the dtype's range, which lies further out for the wider one.
bool starts_beyond(graph::Op op) {
  switch (op) {
    case graph::Op::ReduceMax: case graph::Op::ReduceMin: case graph::Op::CumMax: case graph::Op::CumMin: case graph::Op::WindowMax:
      return true;
    default:
      return false;
  }
}

ValueId within(graph::Builder& b, ValueId x, DType t) {
  const ValueId above = b.binary(graph::Op::Max, x, b.like(x, static_cast<double>(identity(Combine::Max, t).i)));
  return b.binary(graph::Op::Min, above, b.like(x, static_cast<double>(identity(Combine::Min, t).i)));
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
           if (is_int(t) && starts_beyond(c.node.op)) results[0] = within(c.builder, results[0], t);
           results[0] = c.builder.cast(results[0], t, false);
           return results;
         })
      .run(graph);
}

}  // namespace weft::transform
