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

constexpr double kSplitGain = 1.15;  // times faster, to be worth the change: the operand is split, too
constexpr double kLargest = 3.38e38;  // above, a bf16 may be infinite
// The least that the largest magnitudes of a row and of a column of weights may be: units flush products of parts below
// 2^-126 as well, and the last that count are 2^-24 of the largest.
constexpr double kLeastRow = 0x1p-72, kLeastColumn = 0x1p-30;
constexpr std::int64_t kDepth = 32, kLanes = 16;  // multiples that the unit multiplies without a rest

class Splitter {
 public:
  Splitter(const Graph& graph, const ProductChooser& choose, int parts) : graph_(graph), choose_(choose), parts_(parts) {}

  std::optional<std::vector<ValueId>> operator()(const RewriteContext& c) {
    if (&c.from != &graph_ || !fits(c)) return std::nullopt;
    const auto right = weights(c);
    if (!right) return std::nullopt;
    const Parts left = split(c, c.node.operands[0], c.node.attrs.ints(Attr::LhsContract)[0]);
    ValueId sum = graph::kInvalid;
    for (int b = 0; b < parts_; ++b) {
      for (int a = parts_ - 1 - b; a >= 0; --a) {
        const ValueId product = c.builder.node(GOp::Dot, {left[a], (*right)[b]}, c.node.attrs);
        sum = sum < 0 ? product : c.builder.binary(GOp::Add, sum, product);
      }
    }
    return std::vector<ValueId>{sum};
  }

  // The branch that has the run repeated, at the end of the new graph.
  Result<void> guard(Graph& made) const {
    if (exact_.empty()) return {};
    Builder b(made);
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
  bool fits(const RewriteContext& c) const {
    if (c.node.op != GOp::Dot || c.node.attrs.dtype(Attr::DType) != DType::F32) return false;
    const auto f32 = [&](ValueId v) { return c.from.type(v).dtype == DType::F32; };
    if (!f32(c.node.operands[0]) || !f32(c.node.operands[1]) || c.from.type(c.node.operands[1]).rank() != 2) return false;
    if (c.node.attrs.ints(Attr::LhsContract).size() != 1 || c.from.constant(c.node.operands[1]) == nullptr) return false;
    auto shape = product_shape(c.from, c.node);
    if (!shape || shape->depth % kDepth != 0 || shape->lanes % kLanes != 0) return false;
    shape->parts = parts_;
    const ProductChoice choice = choose_(*shape, c.from.facts);
    return choice.form == ProductForm::Pairs && choice.gain >= kSplitGain;
  }

  // Nothing: some column is not exact as parts.
  std::optional<Parts> weights(const RewriteContext& c) {
    const std::int64_t depth_axis = c.node.attrs.ints(Attr::RhsContract)[0];
    const auto [known, fresh] = weights_.try_emplace({c.node.operands[1], depth_axis});
    if (!fresh) return known->second;
    Tensor rest = *c.from.constant(c.node.operands[1]);
    if (!exact_columns(rest, depth_axis)) return std::nullopt;
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

  static bool exact_columns(const Tensor& w, std::int64_t depth_axis) {
    const auto* x = static_cast<const float*>(w.data());
    const std::int64_t rows = w.shape()[0], columns = w.shape()[1];
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

  // The operand's parts, made below reshapes that keep its rows: there its kernel may make them.
  Parts split(const RewriteContext& c, ValueId old, std::int64_t axis) {
    std::vector<const Node*> moves;
    for (const Node* def = c.from.def(old); def && def->op == GOp::Reshape; def = c.from.def(old)) {
      const Shape &from = c.from.type(def->operands[0]).shape, &to = c.from.type(old).shape;
      if (from.empty() || axis != static_cast<std::int64_t>(to.size()) - 1 || !(from.back() == to.back())) break;
      moves.push_back(def);
      old = def->operands[0];
      axis = static_cast<std::int64_t>(from.size()) - 1;
    }
    Parts parts = split_there(c, old, axis);
    for (ValueId& part : parts) {
      for (std::size_t k = moves.size(); k-- > 0;) part = c.builder.node(GOp::Reshape, {part}, moves[k]->attrs);
    }
    return parts;
  }

  const Parts& split_there(const RewriteContext& c, ValueId old, std::int64_t axis) {
    const auto [known, fresh] = split_.try_emplace({old, axis});
    if (!fresh) return known->second;
    Builder& b = c.builder;
    ValueId rest = checked(b, c.values[old], axis);
    for (int k = 0; k < parts_; ++k) {
      known->second.push_back(b.cast(rest, DType::BF16));
      if (k + 1 < parts_) rest = b.binary(GOp::Sub, rest, b.cast(known->second.back(), DType::F32));
    }
    return known->second;
  }

  // x, where its row is exact as parts; elsewhere the run is repeated, whatever stands there.
  ValueId checked(Builder& b, ValueId x, std::int64_t axis) {
    const ValueId largest = b.reduce(GOp::ReduceMax, b.unary(GOp::Abs, x), {axis});
    const auto is = [&](GOp op, double bound) { return b.binary(op, largest, b.scalar(DType::F32, bound)); };
    ValueId exact = b.binary(GOp::Or, is(GOp::Eq, 0), b.binary(GOp::And, is(GOp::Ge, kLeastRow), is(GOp::Lt, kLargest)));
    std::vector<std::int64_t> rows, of_rows;
    for (std::int64_t d = 0; d < b.graph().type(x).rank(); ++d) {
      if (d == axis) continue;
      of_rows.push_back(static_cast<std::int64_t>(rows.size()));
      rows.push_back(d);
    }
    exact_.push_back(b.reduce(GOp::ReduceAnd, exact, of_rows));
    return b.select(b.broadcast_in(exact, b.shape(x), rows), x, b.scalar(DType::F32, 0));
  }

  const Graph& graph_;
  const ProductChooser& choose_;
  const int parts_;
  std::map<std::pair<ValueId, std::int64_t>, std::optional<Parts>> weights_;  // by old value and the axis that is summed over
  std::map<std::pair<ValueId, std::int64_t>, Parts> split_;
  std::vector<ValueId> exact_;  // bools of rank 0, in the new graph
};

}  // namespace

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
