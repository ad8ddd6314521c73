// Scales and shifts by constants per channel after a product with constant weights: the weights and one addition take
// them. (x . w + b) * s = x . (w * s) + b * s, which rounds elsewhere, so that this is a pass of its own.
#include <cmath>
#include <map>
#include <set>

#include "transform/passes.h"
#include "transform/rules/match.h"

namespace weft::transform {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// A convolution or dot whose weights are constant, and which axes the channels are.
struct Product {
  Node node;
  std::int64_t channel;         // of the result
  std::int64_t weight_channel;  // of the weights
};

// Products whose result has one reader; of one graph.
struct State {
  std::vector<int> uses;           // of the old graph's values
  std::set<ValueId> sole;          // new values that what this pass wrote reads alone
};

class ScaleFolder {
 public:
  Answer apply(const RewriteContext& c) {
    State& state = states_[&c.from];
    if (&c.node == c.from.nodes().data()) state = {graph::use_counts(c.from), {}};
    const GOp op = c.node.op;
    if (op != GOp::Mul && op != GOp::Div && op != GOp::Add && op != GOp::Sub) return std::nullopt;
    const DType t = c.from.type(c.node.results[0]).dtype;
    if (t != DType::F32 && t != DType::F64) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      if (side == 1 && !info(op).commutative) break;
      if (state.uses[c.node.operands[side]] != 1) continue;
      const Answer answer = op == GOp::Mul || op == GOp::Div ? scale(c, state, side) : shift(c, state, side);
      if (answer) return answer;
    }
    return std::nullopt;
  }

 private:
  static std::optional<Product> product(const RewriteContext& c, ValueId v);
  static bool read_once(const RewriteContext& c, const State& state, ValueId v);
  // A constant that is the same along every axis but the channel: of shape [channels], or [].
  static Answer per_channel(const RewriteContext& c, ValueId v, std::int64_t channel);
  static ValueId spread(const RewriteContext& c, ValueId v, const Shape& to, std::int64_t channel);
  static ValueId scaled(const RewriteContext& c, const Product& p, GOp op, ValueId by);
  Answer scale(const RewriteContext& c, State& state, int side);
  Answer shift(const RewriteContext& c, State& state, int side);

  std::map<const Graph*, State> states_;
};

std::optional<Product> ScaleFolder::product(const RewriteContext& c, ValueId v) {
  const Graph& g = c.builder.graph();
  const Node* node = g.def(v);
  if (!node || (node->op != GOp::Conv && node->op != GOp::Dot)) return std::nullopt;
  if (!g.constant(node->operands[1]) || g.type(node->operands[1]).dtype != g.type(v).dtype) return std::nullopt;
  const std::int64_t rank = g.type(v).rank();
  if (node->op == GOp::Conv) {
    if (node->attrs.flag(Attr::ChannelsLast)) return Product{*node, rank - 1, rank - 1};
    return Product{*node, 1, 0};
  }
  const Axes& contracted = node->attrs.ints(Attr::RhsContract);
  if (g.type(node->operands[1]).rank() != 2 || contracted.size() != 1) return std::nullopt;
  return Product{*node, rank - 1, 1 - contracted[0]};
}

bool ScaleFolder::read_once(const RewriteContext& c, const State& state, ValueId v) {
  if (state.sole.count(v)) return true;
  // The old value that v stands for is an operand of the old node that this chain went through.
  for (ValueId operand : c.node.operands) {
    const Node* def = c.from.def(operand);
    if (c.values[operand] == v && state.uses[operand] == 1) return true;
    if (!def) continue;
    for (ValueId inner : def->operands) {
      if (c.values[inner] == v && state.uses[inner] == 1) return true;
    }
  }
  return false;
}

Answer ScaleFolder::per_channel(const RewriteContext& c, ValueId v, std::int64_t channel) {
  const Node* node = c.builder.graph().def(v);
  if (!node || node->op != GOp::Broadcast) return std::nullopt;
  const ValueId source = node->operands[0];
  const Tensor* data = c.builder.graph().constant(source);
  if (!data) return std::nullopt;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    // Infinities, zeros and what is nearly zero would not come out as they went in.
    const double value = std::fabs(data->f64(i));
    if (!(value < 1e18) || (value != 0 && value < 1e-18)) return std::nullopt;
  }
  const Axes axes = node->attrs.ints(Attr::Axes);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a] != channel && data->shape()[a] != 1) return std::nullopt;
  }
  return c.builder.reshape(source, data->size() == 1 ? Shape{} : Shape{Dim(data->size())});
}

ValueId ScaleFolder::spread(const RewriteContext& c, ValueId v, const Shape& to, std::int64_t channel) {
  return c.builder.broadcast_in(v, to, c.builder.shape(v).empty() ? Axes{} : Axes{channel});
}

ValueId ScaleFolder::scaled(const RewriteContext& c, const Product& p, GOp op, ValueId by) {
  const ValueId w = p.node.operands[1];
  const Shape shape = c.builder.shape(w);
  const ValueId scaled = c.builder.node(op, {w, spread(c, by, shape, p.weight_channel)});
  return c.builder.node(p.node.op, {p.node.operands[0], scaled}, p.node.attrs);
}

bool has_zero(const Tensor& t) {
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (t.f64(i) == 0) return true;
  }
  return false;
}

// (x . w) * s, (x . w + b) * s, (x . w - b) * s
Answer ScaleFolder::scale(const RewriteContext& c, State& state, int side) {
  const ValueId x = c.operands[side], s = c.operands[1 - side];
  const Node* spread_scale = c.builder.graph().def(s);
  if (!spread_scale || spread_scale->op != GOp::Broadcast) return std::nullopt;
  const Tensor* factors = c.builder.graph().constant(spread_scale->operands[0]);
  if (!factors || !is_float(factors->dtype()) || has_zero(*factors)) return std::nullopt;
  const Shape shape = result_type(c).shape;
  if (const auto p = product(c, x)) {
    const Answer by = per_channel(c, s, p->channel);
    if (!by || !read_once(c, state, x)) return std::nullopt;
    return scaled(c, *p, c.node.op, *by);
  }
  const Node* found = c.builder.graph().def(x);
  if (!found || (found->op != GOp::Add && found->op != GOp::Sub)) return std::nullopt;
  const Node sum = *found;
  for (int k = 0; k < (sum.op == GOp::Add ? 2 : 1); ++k) {
    const auto p = product(c, sum.operands[k]);
    if (!p || !read_once(c, state, sum.operands[k])) continue;
    const Answer by = per_channel(c, s, p->channel), bias = per_channel(c, sum.operands[1 - k], p->channel);
    if (!by || !bias) continue;
    graph::Builder& b = c.builder;
    const ValueId product_scaled = scaled(c, *p, c.node.op, *by);
    state.sole.insert(product_scaled);
    const ValueId bias_scaled = b.binary(c.node.op, *bias, *by);
    return b.node(sum.op, {product_scaled, spread(c, bias_scaled, shape, p->channel)});
  }
  return std::nullopt;
}

// (x . w + b) + d, with either sign of either
Answer ScaleFolder::shift(const RewriteContext& c, State& state, int side) {
  const Node* found = c.builder.graph().def(c.operands[side]);
  if (!found || (found->op != GOp::Add && found->op != GOp::Sub)) return std::nullopt;
  const Node sum = *found;
  const Shape shape = result_type(c).shape;
  for (int k = 0; k < (sum.op == GOp::Add ? 2 : 1); ++k) {
    const auto p = product(c, sum.operands[k]);
    if (!p || !read_once(c, state, sum.operands[k])) continue;
    const Answer first = per_channel(c, sum.operands[1 - k], p->channel);
    const Answer second = per_channel(c, c.operands[1 - side], p->channel);
    if (!first || !second) continue;
    graph::Builder& b = c.builder;
    const ValueId base = sum.op == GOp::Sub ? b.unary(GOp::Neg, *first) : *first;
    const ValueId shift = b.binary(c.node.op, base, *second);
    state.sole.insert(sum.operands[k]);
    return b.node(GOp::Add, {sum.operands[k], spread(c, shift, shape, p->channel)});
  }
  return std::nullopt;
}

}  // namespace

Result<Graph> fold_scale(const Graph& graph, const PassOptions& options) {
  // Each round folds one operation into each product; what it made of constants is a constant for the next.
  constexpr int kMaxRounds = 4;
  Graph current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    graph::Rewriter rewriter([folder = ScaleFolder()](const RewriteContext& c) mutable
                             -> std::optional<std::vector<ValueId>> {
      if (auto v = folder.apply(c)) return std::vector<ValueId>{*v};
      return std::nullopt;
    });
    current = WEFT_TRY(rewriter.run(current));
    if (rewriter.replaced() == 0) break;
    current = WEFT_TRY(fold_constants(current, options));
    current = WEFT_TRY(graph::dce(current));
  }
  return current;
}

}  // namespace weft::transform
