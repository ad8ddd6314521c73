// Group normalisation joins channels and positions into one axis: [N, C, D...] -> [N, G, C/G * D...], which no order of
// the axes survives. Here such a value is held with the joined axes apart, [N, G, C/G, D...], as far as elementwise
// operations and reductions go, so that the layout pass may keep its order through them.
#include <algorithm>
#include <map>

#include "transform/forms.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// A value held with axes apart: its axis i is the fine axes starts[i] to starts[i + 1] of `value`.
struct Fine {
  ValueId value = graph::kInvalid;
  Axes starts;
  std::int64_t width(std::size_t axis) const { return starts[axis + 1] - starts[axis]; }
};

class Splitter {
 public:
  std::optional<std::vector<ValueId>> operator()(const RewriteContext& c) {
    auto& fine = fine_[&c.from];
    if (&c.node == c.from.nodes().data()) fine.clear();
    if (c.node.results.size() != 1 || c.operands.empty()) return std::nullopt;
    std::optional<Fine> made;
    if (info(c.node.op).elementwise) {
      made = elementwise(c, fine);
    } else if (c.node.op == GOp::Reshape) {
      const auto held = fine.find(c.node.operands[0]);
      if (held == fine.end()) {
        made = split(c);
      } else {
        return std::vector<ValueId>{c.builder.reshape(held->second.value, c.node.attrs.dims(Attr::Shape))};
      }
    } else if (info(c.node.op).family == graph::Family::Reduce && c.node.attrs.has(Attr::Axes)) {
      const auto held = fine.find(c.node.operands[0]);
      if (held != fine.end()) made = reduce(c, held->second);
    }
    if (!made) return std::nullopt;
    const ValueId plain = c.builder.reshape(made->value, c.from.type(c.node.results[0]).shape);
    if (plain != made->value) fine[c.node.results[0]] = std::move(*made);
    return std::vector<ValueId>{plain};
  }

 private:
  using Held = std::map<ValueId, Fine>;

  static std::optional<Fine> split(const RewriteContext& c);
  static std::optional<Fine> elementwise(const RewriteContext& c, const Held& held);
  static std::optional<Fine> reduce(const RewriteContext& c, const Fine& x);
  static ValueId apart(const RewriteContext& c, const Held& held, ValueId old, const Fine& like);

  std::map<const Graph*, Held> fine_;
};

// [N, C, D...] -> [N, G, C/G * D...]
std::optional<Fine> Splitter::split(const RewriteContext& c) {
  const Shape from = c.builder.shape(c.operands[0]);
  const Shape& to = c.node.attrs.dims(Attr::Shape);
  const DimFacts& facts = c.builder.graph().facts;
  if (from.size() < 3 || to.size() != 3 || !facts.known_equal(from[0], to[0])) return std::nullopt;
  if (!from[1].is_const() || !to[1].is_const() || to[1].value() < 1 || from[1].value() % to[1].value() != 0) {
    return std::nullopt;
  }
  // One group, or as many as channels, joins nothing that an order could not follow.
  if (to[1].is(1) || to[1] == from[1]) return std::nullopt;
  Shape fine{from[0], to[1], from[1].value() / to[1].value()};
  fine.insert(fine.end(), from.begin() + 2, from.end());
  if (!facts.known_equal(product(Shape(fine.begin() + 2, fine.end())), to[2])) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(fine.size());
  return Fine{c.builder.reshape(c.operands[0], fine), {0, 1, 2, rank}};
}

// The operand with its axes apart as those of `like`.
ValueId Splitter::apart(const RewriteContext& c, const Held& held, ValueId old, const Fine& like) {
  const auto own = held.find(old);
  if (own != held.end() && own->second.starts == like.starts) return own->second.value;
  graph::Builder& b = c.builder;
  const Shape shape = b.shape(like.value);
  const graph::Node* def = c.from.def(old);
  if (!def || def->op != GOp::Broadcast) return b.reshape(c.values[old], shape);
  const Shape source = c.from.type(def->operands[0]).shape;
  Shape squeezed;
  Axes axes;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto axis = static_cast<std::size_t>(def->attrs.ints(Attr::Axes)[i]);
    if (source[i].is(1)) continue;
    if (like.width(axis) != 1) return b.reshape(c.values[old], shape);
    squeezed.push_back(source[i]);
    axes.push_back(like.starts[axis]);
  }
  return b.broadcast_in(b.reshape(c.values[def->operands[0]], squeezed), shape, axes);
}

std::optional<Fine> Splitter::elementwise(const RewriteContext& c, const Held& held) {
  for (ValueId first : c.node.operands) {
    const auto like = held.find(first);
    if (like == held.end()) continue;
    std::vector<ValueId> operands;
    for (ValueId v : c.node.operands) operands.push_back(apart(c, held, v, like->second));
    return Fine{c.builder.node(c.node.op, std::move(operands), c.node.attrs), like->second.starts};
  }
  return std::nullopt;
}

std::optional<Fine> Splitter::reduce(const RewriteContext& c, const Fine& x) {
  const Axes& gone = c.node.attrs.ints(Attr::Axes);
  Axes axes, starts{0};
  for (std::size_t i = 0; i + 1 < x.starts.size(); ++i) {
    if (!std::count(gone.begin(), gone.end(), static_cast<std::int64_t>(i))) {
      starts.push_back(starts.back() + x.width(i));
      continue;
    }
    for (std::int64_t a = x.starts[i]; a < x.starts[i + 1]; ++a) axes.push_back(a);
  }
  Attrs attrs = c.node.attrs;
  attrs.set(Attr::Axes, std::move(axes));
  return Fine{c.builder.node(c.node.op, {x.value}, std::move(attrs)), std::move(starts)};
}

}  // namespace

Result<Graph> split_axes(const Graph& graph, const PassOptions&) {
  const auto& nodes = graph.nodes();
  const bool useful = std::any_of(nodes.begin(), nodes.end(), [](const auto& n) { return n.op == GOp::Conv; });
  if (!useful) return graph;
  return graph::dce(WEFT_TRY(graph::Rewriter(Splitter()).run(graph)));
}

}  // namespace weft::transform
