// Quantisation of what came out of products of bytes: multiplications where division was, constants taken together, and
// bytes left alone where a value is only ordered between two quantisations of one scale.
//
//   round((x * a + b) / s)  =  round(x * (a / s) + b / s)
//
// which rounds elsewhere, as those products do already: what does not depend on one keeps its divisions.
#include <cmath>
#include <map>

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

struct Rounding {
  std::vector<int> uses;
  std::vector<bool> rounded;  // by value: it depends on a product of bytes
};

Rounding rounding_of(const Graph& g) {
  Rounding s{graph::use_counts(g), std::vector<bool>(g.values().size())};
  for (const Node& node : g.nodes()) {
    bool rounded = false;
    for (ValueId v : node.operands) rounded = rounded || s.rounded[v];
    if (node.op == GOp::Dot || node.op == GOp::Conv) {
      const bool bytes = is_byte(g.type(node.operands[0]).dtype) && is_byte(g.type(node.operands[1]).dtype);
      rounded = rounded || (bytes && g.type(node.results[0]).dtype == DType::I32);
    }
    for (ValueId v : node.results) s.rounded[v] = rounded;
  }
  return s;
}

constexpr double kLeast = 0x1p-126;  // that has a reciprocal

bool usable(double scale) { return std::isfinite(scale) && scale > 1e-30 && scale < 1e30; }

class Requantiser {
 public:
  explicit Requantiser(GOp which) : which_(which) {}

  Answer operator()(const RewriteContext& c) {
    Rounding& state = states_[&c.from];
    if (&c.node == c.from.nodes().data()) state = rounding_of(c.from);
    if (c.node.op != which_ || !state.rounded[c.node.results[0]]) return std::nullopt;
    return which_ == GOp::Round ? rounded(c, state) : greatest(c);
  }

 private:
  static Answer rounded(const RewriteContext& c, const Rounding& state);
  static Answer greatest(const RewriteContext& c);
  static Answer constant_times(const RewriteContext& c, ValueId v, double by);
  static Answer times(const RewriteContext& c, const Rounding& state, ValueId v, double by);

  GOp which_;  // Round or WindowMax
  std::map<const Graph*, Rounding> states_;  // regions are rewritten in the middle of the graph around them
};

// A constant, spread out or not, multiplied. Values of the old graph.
Answer Requantiser::constant_times(const RewriteContext& c, ValueId v, double by) {
  const Node* node = c.from.def(v);
  const bool spread = node && node->op == GOp::Broadcast;
  const Tensor* data = c.from.constant(spread ? node->operands[0] : v);
  if (!data || data->dtype() != DType::F32) return std::nullopt;
  auto scaled = Tensor::empty(DType::F32, data->shape());
  if (!scaled.ok()) return std::nullopt;
  for (std::int64_t i = 0; i < data->size(); ++i) scaled->set_f64(i, data->f64(i) * by);
  const ValueId constant = c.builder.constant(std::move(*scaled));
  return spread ? c.builder.node(GOp::Broadcast, {constant}, node->attrs) : constant;
}

// v * by, where constants can take the factor. Values of the old graph; `by` is positive.
Answer Requantiser::times(const RewriteContext& c, const Rounding& state, ValueId v, double by) {
  if (Answer constant = constant_times(c, v, by)) return constant;
  const Node* node = c.from.def(v);
  if (!node || state.uses[v] != 1 || node->operands.size() != 2) return std::nullopt;
  if (node->op == GOp::Mul) {
    for (const int k : {0, 1}) {
      const Answer factor = constant_times(c, node->operands[k], by);
      if (!factor) continue;
      const ValueId x = c.values[node->operands[1 - k]];
      return is_splat(c, *factor, 1) ? x : c.builder.node(GOp::Mul, {x, *factor});
    }
    return std::nullopt;
  }
  if (node->op != GOp::Add && node->op != GOp::Sub && node->op != GOp::Max && node->op != GOp::Min) return std::nullopt;
  const Answer a = times(c, state, node->operands[0], by);
  const Answer b = a ? times(c, state, node->operands[1], by) : std::nullopt;
  return b ? Answer(c.builder.node(node->op, {*a, *b})) : std::nullopt;
}

Answer Requantiser::rounded(const RewriteContext& c, const Rounding& state) {
  const ValueId quotient = c.node.operands[0];
  const Node* div = c.from.def(quotient);
  if (!div || div->op != GOp::Div || c.from.type(quotient).dtype != DType::F32) return std::nullopt;
  graph::Builder& b = c.builder;
  const ValueId x = div->operands[0], scale = div->operands[1];
  if (const Tensor* known = splat_of(c.from, scale)) {
    if (!usable(known->f64(0))) return std::nullopt;
    const double by = 1 / known->f64(0);
    const Answer y = state.uses[quotient] == 1 ? times(c, state, x, by) : std::nullopt;
    if (y) return b.unary(GOp::Round, *y);
    return b.unary(GOp::Round, b.binary(GOp::Mul, c.values[x], b.scalar(DType::F32, by)));
  }
  // One number that is found when the model runs: its reciprocal is taken once.
  const Node* spread = c.from.def(scale);
  if (!spread || spread->op != GOp::Broadcast || !product(c.from.type(spread->operands[0]).shape).is(1)) return std::nullopt;
  const ValueId reciprocal = b.unary(GOp::Reciprocal, b.binary(GOp::Max, c.values[spread->operands[0]], b.scalar(DType::F32, kLeast)));
  const ValueId factor = b.node(GOp::Broadcast, {reciprocal}, spread->attrs);
  return b.unary(GOp::Round, b.node(GOp::Mul, {c.values[x], factor}));
}

// The greatest of dequantised values is that of their bytes.
Answer Requantiser::greatest(const RewriteContext& c) {
  const Graph& g = c.from;
  const auto& attrs = c.node.attrs;
  for (std::size_t d = 0; d < attrs.ints(Attr::Window).size(); ++d) {  // none lies outside altogether
    const std::int64_t window = attrs.ints(Attr::Window)[d];
    const bool inside = g.facts.range(attrs.dims(Attr::Lo)[d]).hi < window && g.facts.range(attrs.dims(Attr::Hi)[d]).hi < window;
    if (!inside || attrs.ints(Attr::Dilations)[d] != 1) return std::nullopt;
  }
  const Node* mul = g.def(c.node.operands[0]);
  if (!mul || mul->op != GOp::Mul || g.type(mul->results[0]).dtype != DType::F32) return std::nullopt;
  const Tensor* scale = splat_of(g, mul->operands[1]);
  const Node* node = g.def(mul->operands[0]);
  if (!scale || !usable(scale->f64(0)) || !node || node->op != GOp::Cast) return std::nullopt;
  ValueId whole = node->operands[0];
  const Tensor* zero = nullptr;
  if (const Node* sub = g.def(whole); sub && sub->op == GOp::Sub && g.type(whole).dtype == DType::I32) {
    zero = splat_of(g, sub->operands[1]);
    const Node* cast = g.def(sub->operands[0]);
    if (!zero || !cast || cast->op != GOp::Cast) return std::nullopt;
    whole = cast->operands[0];
  }
  if (!is_byte(g.type(whole).dtype)) return std::nullopt;
  graph::Builder& b = c.builder;
  ValueId y = b.node(GOp::WindowMax, {c.values[whole]}, attrs);
  if (zero) y = b.binary(GOp::Sub, b.cast(y, DType::I32), b.scalar(DType::I32, zero->i64(0)));
  return b.binary(GOp::Mul, b.cast(y, DType::F32), b.scalar(DType::F32, scale->f64(0)));
}

}  // namespace

Result<Graph> requantise(const Graph& graph, const PassOptions&) {
  Graph current = graph;
  for (const GOp op : {GOp::WindowMax, GOp::Round}) {
    graph::Rewriter rewriter([requantiser = Requantiser(op)](const RewriteContext& c) mutable -> std::optional<std::vector<ValueId>> {
      if (auto v = requantiser(c)) return std::vector<ValueId>{*v};
      return std::nullopt;
    });
    current = WEFT_TRY(rewriter.run(current));
    if (rewriter.replaced() > 0) current = WEFT_TRY(graph::dce(current));
  }
  return current;
}

}  // namespace weft::transform
