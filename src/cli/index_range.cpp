#include "cli/index_range.h"

#include <algorithm>
#include <vector>

namespace weft::cli {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// The same numbers, seen otherwise.
bool carries(const Node& node) {
  switch (node.op) {
    case GOp::Cast:
    case GOp::Reshape:
    case GOp::Transpose:
    case GOp::Broadcast:
    case GOp::Slice:
    case GOp::Concat:
      return true;
    default:
      return false;
  }
}

// One more than the largest of the constant that a value spreads out.
std::optional<std::int64_t> beyond_constant(const Graph& g, ValueId v) {
  while (const Node* def = g.def(v)) {
    if (def->op != GOp::Broadcast && def->op != GOp::Reshape) break;
    v = def->operands[0];
  }
  const Tensor* data = g.constant(v);
  if (data == nullptr || data->size() < 2 || !is_int(data->dtype())) return std::nullopt;
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < data->size(); ++i) most = std::max(most, data->i64(i));
  return most + 1;
}

std::optional<std::int64_t> extent_at(const Graph& g, const Node& node, ValueId v) {
  if (node.op == GOp::Gather && node.operands[1] == v) {
    const Dim& extent = g.type(node.operands[0]).shape[static_cast<std::size_t>(node.attrs.integer(Attr::Axis))];
    if (extent.is_const()) return extent.value();
  }
  if (node.op == GOp::Eq) return beyond_constant(g, node.operands[node.operands[0] == v ? 1 : 0]);
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> index_extent(const Graph& g, ValueId input) {
  std::vector<bool> same(g.values().size(), false);
  same[static_cast<std::size_t>(input)] = true;
  std::optional<std::int64_t> least;
  for (const Node& node : g.nodes()) {  // in topological order
    for (ValueId v : node.operands) {
      if (!same[static_cast<std::size_t>(v)]) continue;
      if (carries(node)) same[static_cast<std::size_t>(node.results[0])] = true;
      if (const auto extent = extent_at(g, node, v)) least = std::min(least.value_or(*extent), *extent);
    }
  }
  return least;
}

}  // namespace weft::cli
