// 3 x 3 convolutions in Winograd's form: fewer multiplications, more traffic. Weighed for each convolution, and only at
// precision `high`: a tile shares its rounding, so that small values beside large ones lose digits.
#include "graph/winograd.h"

#include "base/likely.h"
#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;
using graph::Winograd;
using Axes = std::vector<std::int64_t>;
using GOp = graph::Op;

namespace {

// What a byte costs in multiplications: of values between kernels, which mostly stay in a cache, and of weights, which
// come from memory.
constexpr double kCachedByte = 3, kWeightByte = 8;
constexpr double kGain = 1.2;  // that is worth the change
constexpr double kPairsGain = 1.6;  // over products of bf16, which lose less to traffic than is counted here

struct Sizes {
  double positions, channels, outputs;
};

// `gain`: of the fastest way to compute it directly.
double direct_cost(const Sizes& s, double gain) {
  return (2 * 9 * s.positions * s.channels * s.outputs + kWeightByte * 4 * 9 * s.channels * s.outputs) / gain;
}

double winograd_cost(const Sizes& s, const Winograd& form) {
  const double tiles = s.positions / (form.m * form.m), points = form.points();
  const double between = points * tiles * (s.channels + s.outputs) * 4 * 2;  // written and read
  return 2 * points * tiles * s.channels * s.outputs + kCachedByte * between + kWeightByte * 4 * points * s.channels * s.outputs;
}

bool fits(const RewriteContext& c) {
  const graph::Node& node = c.node;
  const Attrs& a = node.attrs;
  if (node.op != GOp::Conv || !a.flag(Attr::ChannelsLast) || a.integer(Attr::Groups) != 1) return false;
  const graph::Type &x = c.from.type(node.operands[0]), &w = c.from.type(node.operands[1]);
  if (x.rank() != 4 || x.dtype != DType::F32 || w.dtype != DType::F32 || a.dtype(Attr::DType) != DType::F32) return false;
  const Axes ones{1, 1};
  if (a.ints(Attr::Strides) != ones || a.ints(Attr::Dilations) != ones || a.ints(Attr::BaseDilations) != ones) return false;
  return w.shape[0].is(3) && w.shape[1].is(3) && c.from.constant(node.operands[1]) != nullptr;
}

// The cheapest form whose tiles fill the result; null: none is worth it.
const Winograd* choose(const RewriteContext& c, const PassOptions& options) {
  const Shape& y = c.from.type(c.node.results[0]).shape;
  const DimFacts& facts = c.from.facts;
  const Sizes sizes{likely_size(y[0]) * likely_size(y[1]) * likely_size(y[2]), likely_size(c.from.type(c.node.operands[0]).shape[3]), likely_size(y[3])};
  double gain = 1, worth = kGain;
  if (options.products) {  // the direct form may be products of bf16: of two parts each, or of what is rounded
    const auto shape = options.precision == Precision::High ? split_shape(c.from, c.node, 2) : product_shape(c.from, c.node);
    if (shape) gain = options.products(*shape, facts).gain;
    if (gain > 1) worth = kPairsGain;
  }
  double best = direct_cost(sizes, gain) / worth;
  const Winograd* chosen = nullptr;
  for (const std::int64_t m : {2, 4}) {
    const bool whole = facts.simplify(mod(y[1], m)).is(0) && facts.simplify(mod(y[2], m)).is(0);
    const Winograd* form = graph::winograd(m);
    const double cost = winograd_cost(sizes, *form);
    if (!whole || cost >= best) continue;
    best = cost;
    chosen = form;
  }
  return chosen;
}

}  // namespace

Result<Graph> winograd(const Graph& graph, const PassOptions& options) {
  if (options.precision == Precision::Highest) return graph;
  return graph::Rewriter([&](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           if (!fits(c)) return std::nullopt;
           const Winograd* form = choose(c, options);
           if (form == nullptr) return std::nullopt;
           auto weights = graph::winograd_weights(*c.from.constant(c.node.operands[1]), *form);
           if (!weights.ok()) {
             c.builder.fail(weights.error());
             return std::nullopt;
           }
           Attrs attrs;
           attrs.set(Attr::Tile, std::int64_t{form->m}).set(Attr::Lo, c.node.attrs.dims(Attr::Lo)).set(Attr::Hi, c.node.attrs.dims(Attr::Hi));
           attrs.set(Attr::DType, DType::F32);
           return std::vector<ValueId>{c.builder.node(GOp::ConvWinograd, {c.operands[0], c.builder.constant(*weights)}, std::move(attrs))};
         })
      .run(graph);
}

}  // namespace weft::transform
