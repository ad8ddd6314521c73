#include "loop/lower/softmax.h"

namespace weft::loop {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

const Node* def(const Graph& g, ValueId v, GOp op) {
  const Node* node = g.def(v);
  return node && node->op == op ? node : nullptr;
}

// v = a value per row, made by `op` and spread over the row; that value.
std::optional<ValueId> per_row(const Graph& g, ValueId v, GOp op, std::vector<ValueId>& inside) {
  const Node* node = def(g, v, GOp::Broadcast);
  if (!node) return std::nullopt;
  inside.push_back(v);
  v = node->operands[0];
  while (const Node* reshape = def(g, v, GOp::Reshape)) {
    inside.push_back(v);
    v = reshape->operands[0];
  }
  inside.push_back(v);
  return def(g, v, op) ? std::optional(v) : std::nullopt;
}

}  // namespace

std::optional<Softmax> find_softmax(const Graph& g, ValueId p) {
  Softmax s;
  const Node* div = def(g, p, GOp::Div);
  if (!div) return std::nullopt;
  s.exponentials = div->operands[0];
  const Node* exp = def(g, s.exponentials, GOp::Exp);
  const auto sum = per_row(g, div->operands[1], GOp::ReduceSum, s.inside);
  if (!exp || !sum || g.def(*sum)->operands[0] != s.exponentials) return std::nullopt;
  const Node* sub = def(g, exp->operands[0], GOp::Sub);
  if (!sub) return std::nullopt;
  s.scores = sub->operands[0];
  const auto max = per_row(g, sub->operands[1], GOp::ReduceMax, s.inside);
  if (!max || g.def(*max)->operands[0] != s.scores) return std::nullopt;
  s.sum = *sum;
  s.axes = g.def(*sum)->attrs.ints(Attr::Axes);
  if (g.def(*max)->attrs.ints(Attr::Axes) != s.axes) return std::nullopt;
  s.inside.insert(s.inside.end(), {p, s.exponentials, exp->operands[0]});
  return s;
}

}  // namespace weft::loop
