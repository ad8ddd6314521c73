// Finds attention in a graph by its structure, walking back from the product with the values.
#include <algorithm>
#include <set>

#include "base/likely.h"
#include "loop/lower/attention.h"
#include "loop/lower/softmax.h"

namespace weft::loop {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr std::int64_t kMostSize = 512;  // of a head: its accumulator must stay in the first-level cache

class AttentionFinder {
 public:
  AttentionFinder(const Graph& g, NodeId pv, std::string& why) : g_(g), why_(why) { a_.pv = pv; }

  bool run() {
    const Node& pv = g_.node(a_.pv);
    nodes_.insert(a_.pv);
    if (pv.op != GOp::Dot) return false;
    if (!softmax(guarded(pv.operands[0]))) return false;
    why_ = "";
    if (!first_product(a_.scores, 0)) return no("no product gives the scores");
    return shapes();
  }

  Attention take() {
    a_.nodes.assign(nodes_.begin(), nodes_.end());
    return std::move(a_);
  }
  const std::set<NodeId>& nodes() const { return nodes_; }

 private:
  bool no(const char* why) {
    why_ = why;
    return false;
  }

  const Node* def(ValueId v, GOp op) {
    const Node* node = g_.def(v);
    return node && node->op == op ? node : nullptr;
  }

  void add(ValueId v) { nodes_.insert(g_.value(v).def); }

  // select(is_nan(p), 0, p), as exporters write it against rows that see no key.
  ValueId guarded(ValueId v) {
    const Node* select = def(v, GOp::Select);
    if (!select) return v;
    const Node* test = def(select->operands[0], GOp::IsNan);
    if (!test || test->operands[0] != select->operands[2] || one_number(g_, select->operands[1]) != 0.0) return v;
    add(v), add(select->operands[0]);
    a_.nan_to_zero = true;
    return select->operands[2];
  }

  // Over the last axis.
  bool softmax(ValueId p) {
    const auto found = find_softmax(g_, p);
    if (!found || found->axes != std::vector<std::int64_t>{g_.type(p).rank() - 1}) return false;
    for (ValueId v : found->inside) add(v);
    a_.scores = found->scores;
    return true;
  }

  // Walks from the scores to the one product behind them, through elementwise nodes of the same shape.
  bool first_product(ValueId v, int depth) {
    const Node* node = g_.def(v);
    if (!node || depth > 32 || !(g_.type(v).shape == g_.type(a_.scores).shape)) return false;
    if (node->op == GOp::Dot) {
      a_.qk = g_.value(v).def;
      nodes_.insert(a_.qk);
      return true;
    }
    if (!info(node->op).elementwise || node->op == GOp::Bitcast) return false;
    for (ValueId x : node->operands) {
      if (!is_float(g_.type(x).dtype) || !first_product(x, depth + 1)) continue;
      add(v);
      return true;
    }
    return false;
  }

  bool shapes() {
    const Node &qk = g_.node(a_.qk), &pv = g_.node(a_.pv);
    const Shape& scores = g_.type(a_.scores).shape;
    const auto rank = static_cast<std::int64_t>(scores.size());
    for (NodeId n : nodes_) {
      for (ValueId v : g_.node(n).results) {
        const DType t = g_.type(v).dtype;
        if (t != DType::F32 && t != DType::Bool) return no("it is not computed in f32");
      }
    }
    const auto free_axes = [&](const Node& dot, int side) {
      const auto& batch = dot.attrs.ints(side == 0 ? Attr::LhsBatch : Attr::RhsBatch);
      const auto& contract = dot.attrs.ints(side == 0 ? Attr::LhsContract : Attr::RhsContract);
      return static_cast<std::int64_t>(g_.type(dot.operands[side]).shape.size() - batch.size() - contract.size());
    };
    if (free_axes(qk, 1) != 1 || free_axes(qk, 0) < 1) return no("the keys are not the last axis of the scores");
    if (qk.attrs.ints(Attr::LhsContract).size() != 1) return no("the heads have more than one axis");
    if (pv.attrs.ints(Attr::LhsContract) != std::vector<std::int64_t>{rank - 1}) return no("the values are not summed over the keys");
    if (free_axes(pv, 1) != 1 || free_axes(pv, 0) < 1) return no("the values have other axes than keys and size");
    const Dim& size = g_.type(qk.operands[0]).shape[qk.attrs.ints(Attr::LhsContract)[0]];
    const Dim& value_size = g_.type(pv.results[0]).shape.back();
    if (!size.is_const() || !value_size.is_const()) return no("the size of a head is not known");
    if (size.value() < 1 || value_size.value() < 1 || size.value() > kMostSize || value_size.value() > kMostSize) {
      return no("the size of a head is out of range");
    }
    return true;
  }

  const Graph& g_;
  std::string& why_;
  Attention a_;
  std::set<NodeId> nodes_;
};

}  // namespace

std::optional<Attention> find_attention(const Graph& graph, NodeId pv, const std::vector<std::vector<NodeId>>& users,
                                        const std::vector<bool>& is_output, std::string& why) {
  why.clear();
  AttentionFinder finder(graph, pv, why);
  if (!finder.run()) return std::nullopt;
  for (NodeId n : finder.nodes()) {
    if (n == pv) continue;
    for (ValueId v : graph.node(n).results) {
      const bool outside = std::any_of(users[v].begin(), users[v].end(), [&](NodeId u) { return !finder.nodes().count(u); });
      if (!outside && !is_output[v]) continue;
      why = "a value between the products is used elsewhere";
      return std::nullopt;
    }
  }
  return finder.take();
}

AttentionShape attention_shape(const Graph& g, const Attention& a) {
  const Node &qk = g.node(a.qk), &pv = g.node(a.pv);
  const Shape& scores = g.type(a.scores).shape;
  AttentionShape s;
  for (std::size_t d = 0; d + 2 < scores.size(); ++d) s.outer *= likely_size(scores[d]);
  s.rows = likely_size(scores[scores.size() - 2]);
  s.keys = likely_size(scores.back());
  s.keys_known = scores.back().is_const();
  s.size = static_cast<double>(g.type(qk.operands[0]).shape[qk.attrs.ints(Attr::LhsContract)[0]].value());
  s.value_size = static_cast<double>(g.type(pv.results[0]).shape.back().value());
  return s;
}

std::optional<double> one_number(const Graph& g, ValueId v) {
  while (const Node* node = g.def(v)) {
    if (node->op != GOp::Broadcast && node->op != GOp::Reshape) break;
    v = node->operands[0];
  }
  const Tensor* data = g.constant(v);
  if (!data || data->size() != 1 || !is_float(data->dtype())) return std::nullopt;
  return data->f64(0);
}

Scaled without_scale(const Graph& g, ValueId v) {
  const Node* node = g.def(v);
  if (!node || node->op != GOp::Mul) return {v, -1};
  for (int side : {0, 1}) {
    const Node* factor = g.def(node->operands[side]);
    if (factor && factor->op == GOp::Broadcast && product(g.type(factor->operands[0]).shape).is(1)) {
      return {node->operands[1 - side], node->operands[side]};
    }
  }
  return {v, -1};
}

}  // namespace weft::loop
