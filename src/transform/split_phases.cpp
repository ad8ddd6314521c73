// Transposed convolutions: an input spread by s with zeros between, of whose products s - 1 of s are with zeros. Result
// t = q * s + p reads the kernel's elements that are p apart from a multiple of s, so that the s phases p are channels of a
// convolution over the input as it is, which a reshape puts side by side.
//
// With lo + e = s - 1 mod s, phase p of position q - e / s sums x[q + m - a] * w[s * m + s - 1 - p] over m: all phases
// read the same elements of x. Kernels whose size is no multiple of s are left alone: an added zero times infinity is NaN.
#include <algorithm>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;
using Axes = std::vector<std::int64_t>;

namespace {

std::int64_t floor_div_of(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Of one spatial axis.
struct Phases {
  std::int64_t count = 1;  // s
  std::int64_t taps = 1;   // of the kernel, for each phase
  std::int64_t begin = 0;  // e: results before the first that is wanted
  std::int64_t lo = 0, hi = 0;
};

bool each_is(const Axes& values, std::int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == wanted; });
}

bool is_transposed(const RewriteContext& c) {
  const Attrs& a = c.node.attrs;
  if (c.node.op != GOp::Conv || !a.flag(Attr::ChannelsLast) || a.integer(Attr::Groups) != 1) return false;
  if (!each_is(a.ints(Attr::Strides), 1) || !each_is(a.ints(Attr::Dilations), 1) || each_is(a.ints(Attr::BaseDilations), 1)) return false;
  return c.from.constant(c.node.operands[1]) != nullptr;
}

// Few models have one: the others are spared a copy.
bool has_spread_input(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const graph::Node& node) {
    if (node.op == GOp::Conv && !each_is(node.attrs.ints(Attr::BaseDilations), 1)) return true;
    return std::any_of(node.regions.begin(), node.regions.end(), [](const auto& region) { return has_spread_input(*region); });
  });
}

std::optional<Phases> phases_of(const RewriteContext& c, std::size_t axis) {
  const Attrs& a = c.node.attrs;
  const Dim &lo = a.dims(Attr::Lo)[axis], &hi = a.dims(Attr::Hi)[axis];
  const Dim& kernel = c.from.type(c.node.operands[1]).shape[axis];
  if (!lo.is_const() || !hi.is_const() || !kernel.is_const()) return std::nullopt;
  Phases p;
  p.count = a.ints(Attr::BaseDilations)[axis];
  if (kernel.value() % p.count != 0) return std::nullopt;
  p.taps = kernel.value() / p.count;
  const std::int64_t in_phase = lo.value() - floor_div_of(lo.value(), p.count) * p.count;
  p.begin = p.count - 1 - in_phase;
  p.lo = (lo.value() + p.begin + 1) / p.count - 1;
  if (lo.value() + p.begin + 1 < 0) return std::nullopt;
  // Positions of the result beyond those of x, so that what is wanted is there; of an empty x, one more.
  const std::int64_t wanted = 2 - p.count + lo.value() + hi.value() - kernel.value() + p.begin;
  std::int64_t more = -floor_div_of(-wanted, p.count);
  if (c.from.facts.range(c.from.type(c.node.operands[0]).shape[1 + axis]).lo < 1) ++more;
  p.hi = more - p.lo + p.taps - 1;
  return p;
}

// [taps * s .., C, O] -> [taps .., C, s .. * O]
ValueId split_weights(Builder& b, ValueId w, const std::vector<Phases>& phases) {
  const Shape shape = b.shape(w);
  const std::size_t n = phases.size();
  Shape apart, joined;
  Axes reversed, order;
  Dim outputs = shape[n + 1];
  for (std::size_t i = 0; i < n; ++i) {
    apart.push_back(phases[i].taps);
    apart.push_back(phases[i].count);
    joined.push_back(phases[i].taps);
    outputs = outputs * Dim(phases[i].count);
    reversed.push_back(static_cast<std::int64_t>(2 * i + 1));
    order.push_back(static_cast<std::int64_t>(2 * i));
  }
  apart.push_back(shape[n]);
  apart.push_back(shape[n + 1]);
  joined.push_back(shape[n]);
  joined.push_back(outputs);
  order.push_back(static_cast<std::int64_t>(2 * n));
  order.insert(order.end(), reversed.begin(), reversed.end());
  order.push_back(static_cast<std::int64_t>(2 * n + 1));
  Attrs axes;
  axes.set(Attr::Axes, reversed);
  return b.reshape(b.transpose(b.node(GOp::Reverse, {b.reshape(w, apart)}, std::move(axes)), order), joined);
}

// [N, Q .., s .. * O] -> [N, Q * s .., O]
ValueId side_by_side(Builder& b, ValueId y, const std::vector<Phases>& phases, const Dim& outputs) {
  const Shape shape = b.shape(y);
  const std::size_t n = phases.size();
  Shape apart(shape.begin(), shape.end() - 1), joined{shape[0]};
  Axes order{0};
  for (std::size_t i = 0; i < n; ++i) {
    apart.push_back(phases[i].count);
    joined.push_back(shape[1 + i] * Dim(phases[i].count));
    order.push_back(static_cast<std::int64_t>(1 + i));
    order.push_back(static_cast<std::int64_t>(1 + n + i));
  }
  apart.push_back(outputs);
  joined.push_back(outputs);
  order.push_back(static_cast<std::int64_t>(1 + 2 * n));
  ValueId spread = b.reshape(y, apart);
  if (!std::is_sorted(order.begin(), order.end())) spread = b.transpose(spread, order);
  return b.reshape(spread, joined);
}

std::optional<std::vector<ValueId>> by_phases(const RewriteContext& c) {
  if (!is_transposed(c)) return std::nullopt;
  const graph::Type& result = c.from.type(c.node.results[0]);
  std::vector<Phases> phases;
  for (std::size_t i = 0; i + 2 < result.shape.size(); ++i) {
    const auto p = phases_of(c, i);
    if (!p) return std::nullopt;
    phases.push_back(*p);
  }
  Builder& b = c.builder;
  Shape lo, hi, starts{0};
  for (const Phases& p : phases) lo.push_back(p.lo), hi.push_back(p.hi), starts.push_back(p.begin);
  starts.push_back(0);
  const Axes ones(phases.size(), 1);
  Attrs attrs = c.node.attrs;
  attrs.set(Attr::BaseDilations, ones).set(Attr::Lo, lo).set(Attr::Hi, hi);
  const ValueId y = b.node(GOp::Conv, {c.operands[0], split_weights(b, c.operands[1], phases)}, std::move(attrs));
  const ValueId whole = side_by_side(b, y, phases, result.shape.back());
  return std::vector<ValueId>{b.slice(whole, starts, result.shape, Axes(result.shape.size(), 1))};
}

}  // namespace

Result<Graph> split_phases(const Graph& graph, const PassOptions&) {
  if (!has_spread_input(graph)) return graph;
  return graph::Rewriter(by_phases).run(graph);
}

}  // namespace weft::transform
