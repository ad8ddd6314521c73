// Products of f32 with constant weights as sums of products of bf16 parts, where the machine has a unit for such products
// that makes up for their number. x = h + m + l, each the bf16 nearest to what those before it leave: six products (all
// but m l, l m and l l) are as exact as f32, three (h and m, without m m) err by about 1e-5. Source: Henry, Tang and
// Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype for Higher-Precision Computations", 2019.
//
// Not so for all values: what is not finite, or becomes infinite as bf16, spreads, and units flush parts and products below
// 2^-126 to zero, which shows where a whole row is small. Weights are looked at here; each row of the other operand is looked at
// where it is split, and one branch at the end has the run repeated without this form.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "graph/rewrite.h"
#include "runtime/kernel_abi.h"
#include "transform/narrow.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using Parts = std::vector<ValueId>;
using GOp = graph::Op;

namespace {

constexpr double kLargest = 3.38e38;  // above, a bf16 may be infinite
// The least that the largest magnitudes of a row and of a column of weights may be: units flush products of parts below
// 2^-126 as well, and the last that count are 2^-24 of the largest.
constexpr double kLeastRow = 0x1p-72, kLeastColumn = 0x1p-30;
constexpr std::int64_t kDepth = 32, kLanes = 16;  // multiples that the unit multiplies without a rest
constexpr int kLookBack = 24;  // nodes that are looked at for the product that a value is made with

// Whether a move keeps rows along the axis as they are; `axis` becomes that of its operand.
bool moves_rows(const Graph& g, const Node& move, std::int64_t& axis) {
  if (move.op != GOp::Reshape && move.op != GOp::Pad && move.op != GOp::Slice) return false;
  const Shape &from = g.type(move.operands[0]).shape, &to = g.type(move.results[0]).shape;
  if (from.empty() || axis + 1 != static_cast<std::int64_t>(to.size()) || !(from.back() == to.back())) return false;
  if (move.op == GOp::Slice && move.attrs.ints(Attr::Steps).back() != 1) return false;
  if (move.op == GOp::Pad) {
    const Tensor* fill = g.constant(move.operands[1]);
    if (move.attrs.str(Attr::Mode) != "constant" || !fill || fill->f64(0) != 0 || !move.attrs.dims(Attr::Lo).back().is(0)) return false;
  }
  axis = static_cast<std::int64_t>(from.size()) - 1;
  return true;
}

std::int64_t depth_axis(const Graph& g, const Node& node) {
  return node.op == GOp::Dot ? node.attrs.ints(Attr::LhsContract)[0] : g.type(node.operands[0]).rank() - 1;
}

// Whether the value is made element by element from a product of its shape, whose kernel may then make its parts, too: not
// with what is computed for a whole row or column of it, which may come after the product.
bool ends_product(const Graph& g, ValueId v) {
  const Shape& shape = g.type(v).shape;
  bool ends = false;
  std::vector<ValueId> open{v};
  for (int seen = 0; seen < kLookBack && !open.empty(); ++seen) {
    const Node* def = g.def(open.back());
    const ValueId at = open.back();
    open.pop_back();
    if (!def || g.constant(at)) continue;
    if (def->op == GOp::Broadcast && !g.constant(def->operands[0])) return false;
    if (!(g.type(at).shape == shape)) continue;
    ends = ends || def->op == GOp::Dot || def->op == GOp::Conv || def->op == GOp::WindowMax;
    if (graph::info(def->op).elementwise) open.insert(open.end(), def->operands.begin(), def->operands.end());
  }
  return ends;
}

class Splitter {
 public:
  Splitter(const Graph& graph, const ProductChooser& choose, int parts) : graph_(graph), choose_(choose), parts_(parts) {
    for (const Node& node : graph.nodes()) {
      if (!fits(node)) continue;
      std::int64_t axis = depth_axis(graph, node);
      taken_.insert(unmoved(node.operands[0], axis).back());
    }
  }

  std::optional<std::vector<ValueId>> operator()(const RewriteContext& c) {
    if (&c.from != &graph_ || !fits(c.node)) return std::nullopt;
    const auto right = weights(c);
    if (!right) return std::nullopt;
    const Parts left = split(c, c.node.operands[0], depth_axis(c.from, c.node));
    ValueId sum = graph::kInvalid;
    for (int b = 0; b < parts_; ++b) {
      for (int a = parts_ - 1 - b; a >= 0; --a) {
        const ValueId product = c.builder.node(c.node.op, {left[a], (*right)[b]}, c.node.attrs);
        sum = sum < 0 ? product : c.builder.binary(GOp::Add, sum, product);
      }
    }
    return std::vector<ValueId>{sum};
  }

  // The branch that has the run repeated, at the end of the new graph.
  Result<void> guard(Graph& made) {
    Builder b(made);
    for (const auto& [old, part] : seen_) {
      exact_.push_back(all_of(b, exact_rows(b, part, b.type(part).rank() - 1)));
    }
    if (exact_.empty()) return {};
    ValueId all = exact_.front();
    for (std::size_t k = 1; k < exact_.size(); ++k) all = b.binary(GOp::And, all, exact_[k]);
    const auto nothing = std::make_shared<Graph>(), repeat = std::make_shared<Graph>();
    Builder fails(*repeat);
    fails.nodes(GOp::Fail, {}, Attrs().set(Attr::Name, std::string(runtime::kNeedsExact)));
    WEFT_TRY(fails.status());
    b.nodes(GOp::If, {all}, {}, {nothing, repeat});
    return b.status();
  }

 private:
  bool fits(const Node& node) const {
    const auto shape = split_shape(graph_, node, parts_);
    return shape && choose_(*shape, graph_.facts).form == ProductForm::Pairs;
  }

  // Nothing: some column is not exact as parts.
  std::optional<Parts> weights(const RewriteContext& c) {
    const std::int64_t axis = c.node.op == GOp::Dot ? c.node.attrs.ints(Attr::RhsContract)[0] : 0;
    const auto [known, fresh] = weights_.try_emplace({c.node.operands[1], axis});
    if (!fresh) return known->second;
    Tensor rest = *c.from.constant(c.node.operands[1]);
    if (!exact_columns(rest, axis)) return std::nullopt;
    Parts made;
    for (int k = 0; k < parts_; ++k) {
      auto part = rounded_to_bf16(rest, false);
      auto left = part.ok() ? less(rest, *part) : part;
      if (!left.ok()) {
        c.builder.fail(left.error());
        return std::nullopt;
      }
      made.push_back(c.builder.constant(std::move(*part)));
      rest = std::move(*left);
    }
    return known->second = std::move(made);
  }

  // Axes before the last are rows.
  static bool exact_columns(const Tensor& w, std::int64_t depth_axis) {
    const auto* x = static_cast<const float*>(w.data());
    const std::int64_t columns = w.shape().back(), rows = w.size() / columns;
    std::vector<float> largest(static_cast<std::size_t>(depth_axis == 0 ? columns : rows), 0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        float& most = largest[static_cast<std::size_t>(depth_axis == 0 ? j : i)];
        const float v = std::fabs(x[i * columns + j]);
        if (!(v <= most) && !std::isnan(most)) most = v;
      }
    }
    return std::all_of(largest.begin(), largest.end(), [](double v) { return v == 0 || (v >= kLeastColumn && v < kLargest); });
  }

  static Result<Tensor> less(const Tensor& x, const Tensor& part) {
    Tensor rest = WEFT_TRY(Tensor::empty(DType::F32, x.shape()));
    const auto* from = static_cast<const float*>(x.data());
    const auto* p = static_cast<const std::uint16_t*>(part.data());
    auto* to = static_cast<float*>(rest.mutable_data());
    for (std::int64_t i = 0; i < x.size(); ++i) to[i] = from[i] - std::bit_cast<float>(static_cast<std::uint32_t>(p[i]) << 16);
    return rest;
  }

  // A value, and what it is read from through moves of whole rows: there the kernel that makes it may make the parts.
  // Through slices only where all is split anyway.
  std::vector<ValueId> unmoved(ValueId v, std::int64_t& axis) const {
    std::vector<ValueId> found{v};
    for (const Node* def = graph_.def(v); def && moves_rows(graph_, *def, axis); def = graph_.def(v)) {
      v = def->operands[0];
      if (def->op == GOp::Slice && taken_.count(v) == 0) break;
      found.push_back(v);
    }
    return found;
  }

  Parts split(const RewriteContext& c, ValueId old, std::int64_t axis) {
    const std::vector<ValueId> moved = unmoved(old, axis);
    Parts parts = split_there(c, moved.back(), axis);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      bool all = true;  // rows are still there
      for (std::size_t n = moved.size() - 1; n-- > 0;) {
        const Node& move = *c.from.def(moved[n]);
        all = all && move.op != GOp::Slice;
        std::vector<ValueId> operands{parts[k]};
        if (move.op == GOp::Pad) operands.push_back(c.builder.scalar(DType::BF16, 0));
        parts[k] = c.builder.node(move.op, operands, move.attrs);
        if (k == 0 && all && seen_.count(moved.back()) != 0) seen_[moved.back()] = parts[k];
      }
    }
    return parts;
  }

  const Parts& split_there(const RewriteContext& c, ValueId old, std::int64_t axis) {
    const auto [known, fresh] = split_.try_emplace({old, axis});
    if (!fresh) return known->second;
    Builder& b = c.builder;
    ValueId rest = c.values[old];
    // A product's kernel makes the parts, another one looks at them; else one kernel does both.
    const bool apart = axis + 1 == c.from.type(old).rank() && ends_product(c.from, old);
    if (!apart) rest = checked(b, rest, axis);
    for (int k = 0; k < parts_; ++k) {
      known->second.push_back(b.cast(rest, DType::BF16));
      if (k + 1 < parts_) rest = b.binary(GOp::Sub, rest, b.cast(known->second.back(), DType::F32));
    }
    if (apart) seen_[old] = known->second.front();
    return known->second;
  }

  // Whether each row along the axis is exact as parts.
  static ValueId exact_rows(Builder& b, ValueId x, std::int64_t axis) {
    const ValueId largest = b.cast(b.reduce(GOp::ReduceMax, b.unary(GOp::Abs, x), {axis}), DType::F32);
    const auto is = [&](GOp op, double bound) { return b.binary(op, largest, b.scalar(DType::F32, bound)); };
    return b.binary(GOp::Or, is(GOp::Eq, 0), b.binary(GOp::And, is(GOp::Ge, kLeastRow), is(GOp::Lt, kLargest)));
  }

  static ValueId all_of(Builder& b, ValueId exact) {
    std::vector<std::int64_t> axes;
    for (std::int64_t d = 0; d < b.type(exact).rank(); ++d) axes.push_back(d);
    return b.reduce(GOp::ReduceAnd, exact, axes);
  }

  // x, where its row is exact as parts; elsewhere the run is repeated, whatever stands there.
  ValueId checked(Builder& b, ValueId x, std::int64_t axis) {
    const ValueId exact = exact_rows(b, x, axis);
    std::vector<std::int64_t> rows;
    for (std::int64_t d = 0; d < b.type(x).rank(); ++d) {
      if (d != axis) rows.push_back(d);
    }
    exact_.push_back(all_of(b, exact));
    return b.select(b.broadcast_in(exact, b.shape(x), rows), x, b.scalar(DType::F32, 0));
  }

  const Graph& graph_;
  const ProductChooser& choose_;
  const int parts_;
  std::set<ValueId> taken_;  // old values that are split
  std::map<std::pair<ValueId, std::int64_t>, std::optional<Parts>> weights_;  // by old value and the axis that is summed over
  std::map<std::pair<ValueId, std::int64_t>, Parts> split_;
  std::vector<ValueId> exact_;         // bools of rank 0, in the new graph
  std::map<ValueId, ValueId> seen_;    // by old value: its first part, moved, which is to be looked at, row by row
};

}  // namespace

std::optional<ProductShape> split_shape(const Graph& g, const Node& node, int parts) {
  if ((node.op != GOp::Dot && node.op != GOp::Conv) || node.attrs.dtype(Attr::DType) != DType::F32) return std::nullopt;
  const auto f32 = [&](ValueId v) { return g.type(v).dtype == DType::F32; };
  const ValueId w = node.operands[1];
  if (!f32(node.operands[0]) || !f32(w) || g.constant(w) == nullptr) return std::nullopt;
  auto shape = product_shape(g, node);
  if (!shape || shape->lanes % kLanes != 0) return std::nullopt;
  shape->parts = parts;
  if (node.op == GOp::Dot) {
    const bool plain = g.type(w).rank() == 2 && node.attrs.ints(Attr::LhsContract).size() == 1;
    return plain && shape->depth % kDepth == 0 ? shape : std::nullopt;
  }
  // What lies around the input is a copy with a border by now, and what is not stays as it is.
  const auto none = [](const Shape& sides) { return std::all_of(sides.begin(), sides.end(), [](const Dim& d) { return d.is(0); }); };
  const auto& base = node.attrs.ints(Attr::BaseDilations);
  if (!none(node.attrs.dims(Attr::Lo)) || !none(node.attrs.dims(Attr::Hi))) return std::nullopt;
  if (std::any_of(base.begin(), base.end(), [](std::int64_t d) { return d != 1; })) return std::nullopt;
  const Shape &y = g.type(node.results[0]).shape, &kernel = g.type(w).shape;
  const std::int64_t channels = kernel[kernel.size() - 2].value();
  if (channels % kDepth != 0) return std::nullopt;
  shape->rows = y[y.size() - 2];
  for (std::size_t d = 0; d + 2 < y.size(); ++d) shape->runs = shape->runs * y[d];
  shape->taps = shape->depth / channels;
  return shape;
}

Result<Graph> split_products(const Graph& graph, const PassOptions& options) {
  if (options.precision == Precision::Medium || !options.products) return graph;
  Splitter splitter(graph, options.products, options.precision == Precision::Highest ? 3 : 2);
  graph::Rewriter rewriter([&](const RewriteContext& c) { return splitter(c); });
  Graph made = WEFT_TRY(rewriter.run(graph));
  if (rewriter.replaced() == 0) return made;
  WEFT_TRY(splitter.guard(made));
  return graph::dce(made);
}

}  // namespace weft::transform
