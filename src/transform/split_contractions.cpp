// A reshape that joins axes which a dot then sums over: the sum runs over the axes apart instead, so that the value is
// read where it lies. The other operand, usually weights, is seen with its axis split. Joined heads of attention and
// joined directions of a recurrence are read this way.
#include <algorithm>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

using Axes = std::vector<std::int64_t>;

// How many axes of `from`, beginning at `axis`, make axis `axis` of `to`, where all the other axes are alike; 0: they do
// not.
std::int64_t joined(const Shape& from, const Shape& to, std::size_t axis) {
  if (from.size() <= to.size()) return 0;
  const std::size_t count = from.size() - to.size() + 1;
  Dim product = 1;
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (d == axis) continue;
    if (!(from[d < axis ? d : d + count - 1] == to[d])) return 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Dim& d = from[axis + i];
    if (!d.is_const() || d.value() < 2) return 0;
    product = product * d;
  }
  return product == to[axis] ? static_cast<std::int64_t>(count) : 0;
}

// Axes after `axis` move back when it becomes `count` of them.
Axes moved(const Axes& axes, std::int64_t axis, std::int64_t count) {
  Axes out = axes;
  for (std::int64_t& a : out) a += a > axis ? count - 1 : 0;
  return out;
}

Axes spread(std::int64_t axis, std::int64_t count) {
  Axes out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(axis + i);
  return out;
}

std::optional<std::vector<ValueId>> split(const graph::RewriteContext& c) {
  if (c.node.op != GOp::Dot) return std::nullopt;
  const graph::Attrs& attrs = c.node.attrs;
  const Axes contract[2] = {attrs.ints(Attr::LhsContract), attrs.ints(Attr::RhsContract)};
  const Axes batch[2] = {attrs.ints(Attr::LhsBatch), attrs.ints(Attr::RhsBatch)};
  if (contract[0].size() != 1) return std::nullopt;
  graph::Builder& b = c.builder;
  for (const int side : {0, 1}) {
    const Node* reshape = c.from.def(c.node.operands[side]);
    if (!reshape || reshape->op != GOp::Reshape) continue;
    const Shape& from = c.from.type(reshape->operands[0]).shape;
    const std::int64_t axis = contract[side][0], other_axis = contract[1 - side][0];
    const std::int64_t count = joined(from, c.from.type(c.node.operands[side]).shape, static_cast<std::size_t>(axis));
    if (count == 0) continue;
    ValueId operands[2];
    operands[side] = c.values[reshape->operands[0]];
    Shape apart = b.shape(c.operands[1 - side]);
    apart.erase(apart.begin() + other_axis);
    apart.insert(apart.begin() + other_axis, from.begin() + axis, from.begin() + axis + count);
    operands[1 - side] = b.reshape(c.operands[1 - side], apart);
    const Axes batches[2] = {moved(batch[0], contract[0][0], count), moved(batch[1], contract[1][0], count)};
    return std::vector<ValueId>{b.dot(operands[0], operands[1], batches[0], batches[1], spread(contract[0][0], count),
                                      spread(contract[1][0], count), attrs.dtype(Attr::DType))};
  }
  return std::nullopt;
}

}  // namespace

Result<Graph> split_contractions(const Graph& graph, const PassOptions&) { return graph::Rewriter(split).run(graph); }

}  // namespace weft::transform
