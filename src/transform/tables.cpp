// Chains between bytes as tables. Where a quantised value is a function of another one alone (an activation between two
// quantisations, say), it has 256 results: they are computed here, and looked up when the model runs.
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

constexpr std::int64_t kBytes = 256;
constexpr int kWorth = 40;           // operations, from which on a look-up costs less
constexpr int kTranscendental = 12;  // operations behind one
constexpr int kDivision = 4;
constexpr std::size_t kMostNodes = 64;

int cost_of(const Node& node) {
  const graph::Family family = graph::info(node.op).family;
  if (node.op == GOp::Div) return kDivision;
  if (family == graph::Family::Binary) return node.op == GOp::Pow ? 2 * kTranscendental : 1;
  if (family != graph::Family::Unary) return 1;
  switch (node.op) {
    case GOp::Abs:
    case GOp::Neg:
    case GOp::Ceil:
    case GOp::Floor:
    case GOp::Round:
    case GOp::Trunc: return 1;
    default: return kTranscendental;
  }
}

// A byte as a function of another one.
struct Table {
  ValueId of = graph::kInvalid;
  Tensor results;  // by the other's bits
  int cost = 0;
};

// All bytes, by their bits.
Tensor identity(DType t) {
  Tensor x = Tensor::zeros(t, {kBytes}).value();
  for (std::int64_t i = 0; i < kBytes; ++i) x.set_i64(i, t == DType::I8 && i >= kBytes / 2 ? i - kBytes : i);
  return x;
}

// The tables of one graph's bytes.
class Tables {
 public:
  explicit Tables(const Graph& g) : g_(g) {
    for (const Node& node : g.nodes()) {
      if (node.op != GOp::Cast || !is_byte(g.type(node.results[0]).dtype)) continue;
      if (!is_float(g.type(node.operands[0]).dtype)) continue;
      Chain chain(*this, g.type(node.results[0]).shape);
      const auto results = chain.computed(node.results[0]);
      if (results && chain.root >= 0) known_[node.results[0]] = {chain.root, *results, chain.cost};
    }
  }

  const Table* of(ValueId v) const {
    const auto it = known_.find(v);
    return it == known_.end() ? nullptr : &it->second;
  }

 private:
  struct Chain {
    Chain(const Tables& around, const Shape& s) : tables(around), g(around.g_), shape(s) {}

    // The 256 elements of v, by those of the root.
    std::optional<Tensor> evaluate(ValueId v) {
      if (const auto it = done.find(v); it != done.end()) return it->second;
      if (const Tensor* one = splat_of(g, v)) return spread(*one);
      if (!(g.type(v).shape == shape)) return std::nullopt;
      return is_byte(g.type(v).dtype) ? leaf(v) : computed(v);
    }

    std::optional<Tensor> computed(ValueId v) {
      const Node* node = g.def(v);
      if (!node || !graph::info(node->op).elementwise || !graph::info(node->op).pure) return std::nullopt;
      if (node->results.size() != 1 || ++nodes > kMostNodes) return std::nullopt;
      std::vector<Tensor> operands;
      for (ValueId x : node->operands) {
        auto elements = evaluate(x);
        if (!elements) return std::nullopt;
        operands.push_back(std::move(*elements));
      }
      cost += cost_of(*node);
      auto elements = on_table(*node, operands);
      if (!elements) return std::nullopt;
      return done[v] = std::move(*elements);
    }

    static std::optional<Tensor> on_table(const Node& node, const std::vector<Tensor>& operands) {
      Graph one;
      graph::Builder b(one);
      std::vector<ValueId> values;
      for (const Tensor& x : operands) values.push_back(b.constant(x));
      const ValueId y = b.node(node.op, values, node.attrs);
      const Node* made = b.status().ok() ? one.def(y) : nullptr;
      if (!made) return std::nullopt;
      Bindings none;
      auto results = graph::interpret_node(one, *made, operands, none);
      return results.ok() ? std::optional((*results)[0]) : std::nullopt;
    }

    std::optional<Tensor> leaf(ValueId v) {
      const Table* inner = tables.of(v);
      const ValueId from = inner ? inner->of : v;
      if (root >= 0 && root != from) return std::nullopt;
      root = from;
      if (inner) cost += inner->cost;
      return done[v] = inner ? inner->results : identity(g.type(v).dtype);
    }

    static std::optional<Tensor> spread(const Tensor& one) {
      if (is_string(one.dtype()) || is_complex(one.dtype())) return std::nullopt;
      Tensor all = Tensor::zeros(one.dtype(), {kBytes}).value();
      for (std::int64_t i = 0; i < kBytes; ++i) is_float(one.dtype()) ? all.set_f64(i, one.f64(0)) : all.set_i64(i, one.i64(0));
      return all;
    }

    const Tables& tables;
    const Graph& g;
    const Shape& shape;
    std::map<ValueId, Tensor> done;
    ValueId root = graph::kInvalid;
    int cost = 0;
    std::size_t nodes = 0;
  };

  const Graph& g_;
  std::map<ValueId, Table> known_;
};

}  // namespace

Result<Graph> look_up(const Graph& graph, const PassOptions&) {
  std::map<const Graph*, Tables> tables;  // regions are rewritten in the middle of the graph around them
  graph::Rewriter rewriter([&](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
    if (c.node.op != GOp::Cast) return std::nullopt;
    const Table* table = tables.try_emplace(&c.from, c.from).first->second.of(c.node.results[0]);
    if (!table || table->cost < kWorth) return std::nullopt;
    graph::Builder& b = c.builder;
    ValueId index = c.values[table->of];
    if (b.dtype(index) == DType::I8) index = b.node(GOp::Bitcast, {index}, graph::Attrs().set(Attr::DType, DType::U8));
    Tensor wide = Tensor::zeros(DType::I32, {kBytes}).value();  // which is gathered fastest
    for (std::int64_t i = 0; i < kBytes; ++i) wide.set_i64(i, table->results.i64(i));
    return std::vector<ValueId>{b.cast(b.gather(b.constant(std::move(wide)), index, 0), table->results.dtype())};
  });
  Graph made = WEFT_TRY(rewriter.run(graph));
  if (rewriter.replaced() == 0) return made;
  return graph::dce(made);
}

}  // namespace weft::transform
