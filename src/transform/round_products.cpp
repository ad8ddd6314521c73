// Products of f32 with constant weights, from bf16 and summed in f32: at precision `medium`, where the machine gains by it.
//
// Rounding to bf16 turns no finite value into an infinity: what lies above the largest bf16 is cut instead. The operand
// that is computed is rounded where it is made, below what only moves its elements, so that its kernel stores it rounded.
#include <algorithm>
#include <map>

#include "graph/rewrite.h"
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
using Axes = std::vector<std::int64_t>;
using GOp = graph::Op;

namespace {

constexpr double kLargestBf16 = 0x1.fep127;

bool is_wide(DType t) { return t == DType::F32 || t == DType::F16; }

class Rounder {
 public:
  explicit Rounder(const ProductChooser& choose) : choose_(choose) {}

  std::optional<std::vector<ValueId>> operator()(const RewriteContext& c) {
    const auto shape = product_shape(c.from, c.node);
    if (!shape) return std::nullopt;
    const ValueId w = c.node.operands[1];
    const Tensor* weights = weights_of(c.from, w);
    if (weights == nullptr) return std::nullopt;
    const ProductForm form = choose_(*shape, c.from.facts).form;
    if (form == ProductForm::Wide || (form == ProductForm::Weights && weights->dtype() == DType::BF16)) return std::nullopt;
    Builder& b = c.builder;
    auto narrow = narrow_weights(*weights);
    if (!narrow.ok()) {
      b.fail(narrow.error());
      return std::nullopt;
    }
    ValueId left = c.operands[0];
    if (form == ProductForm::Pairs) left = rounded(c, c.node.operands[0]);
    if (form == ProductForm::Pairs && c.node.op == GOp::Conv) fill_up(b, left, *narrow);
    ValueId right = b.constant(*narrow);
    if (form == ProductForm::Weights) right = b.cast(right, c.from.type(w).dtype);
    return std::vector<ValueId>{b.node(c.node.op, {left, right}, c.node.attrs)};
  }

 private:
  // Of bf16 already, when they were widened to be multiplied.
  static const Tensor* weights_of(const Graph& g, ValueId v) {
    const Tensor* data = g.constant(v);
    const Node* def = g.def(v);
    if (data == nullptr && def && def->op == GOp::Cast) data = g.constant(def->operands[0]);
    if (data == nullptr) return nullptr;
    return data->dtype() == DType::BF16 || is_wide(data->dtype()) ? data : nullptr;
  }

  static Result<Tensor> narrow_weights(const Tensor& w) {
    if (w.dtype() == DType::BF16) return w;
    if (w.dtype() == DType::F32) return rounded_to_bf16(w, true);
    Tensor wide = WEFT_TRY(Tensor::empty(DType::F32, w.shape()));
    for (std::int64_t i = 0; i < w.size(); ++i) wide.set_f64(i, w.f64(i));
    return rounded_to_bf16(wide, true);
  }

  // Channels come in pairs: there may be one of zeros more.
  static void fill_up(Builder& b, ValueId& x, Tensor& w) {
    const std::int64_t axis = w.rank() - 2, channels = w.shape()[axis];
    if (channels % 2 == 0) return;
    const Shape none(b.shape(x).size(), Dim(0));
    Shape one = none;
    one.back() = 1;
    x = b.pad(x, none, one, b.scalar(DType::BF16, 0));
    w = filled_up(w, axis, channels + 1);
  }

  // `old` in bf16, in the new graph.
  ValueId rounded(const RewriteContext& c, ValueId old) {
    std::vector<const Node*> moves;
    const Node* def = c.from.def(old);
    for (; def && (def->op == GOp::Reshape || def->op == GOp::Transpose); def = c.from.def(old)) {
      moves.push_back(def);
      old = def->operands[0];
    }
    ValueId v = rounded_there(c, old, def);
    for (std::size_t k = moves.size(); k-- > 0;) v = c.builder.node(moves[k]->op, {v}, moves[k]->attrs);
    return v;
  }

  ValueId rounded_there(const RewriteContext& c, ValueId old, const Node* def) {
    const auto [known, fresh] = rounded_.try_emplace({&c.from, old}, graph::kInvalid);
    if (!fresh) return known->second;
    Builder& b = c.builder;
    if (def && def->op == GOp::Cast && c.from.type(def->operands[0]).dtype == DType::BF16) return known->second = c.values[def->operands[0]];
    const ValueId x = b.cast(c.values[old], DType::F32);
    const auto bits_as = [&](ValueId v, DType t) { return b.node(GOp::Bitcast, {v}, Attrs().set(Attr::DType, t)); };
    const ValueId large = b.binary(GOp::Gt, b.unary(GOp::Abs, x), b.scalar(DType::F32, kLargestBf16));
    const ValueId cut = bits_as(b.binary(GOp::And, bits_as(x, DType::U32), b.scalar(DType::U32, 0xffff0000)), DType::F32);
    return known->second = b.cast(b.select(large, cut, x), DType::BF16);
  }

  const ProductChooser& choose_;
  std::map<std::pair<const Graph*, ValueId>, ValueId> rounded_;  // in the new graph
};

}  // namespace

std::optional<ProductShape> product_shape(const Graph& g, const Node& node) {
  if (node.op != GOp::Dot && node.op != GOp::Conv) return std::nullopt;
  const graph::Type &x = g.type(node.operands[0]), &w = g.type(node.operands[1]);
  if (!is_wide(x.dtype) || !is_wide(w.dtype) || !is_wide(node.attrs.dtype(Attr::DType)) || g.constant(node.operands[0])) return std::nullopt;
  ProductShape shape{Dim(1), 1, 1, 0};
  const auto times = [](std::int64_t& n, const Dim& d) { return d.is_const() && !__builtin_mul_overflow(n, d.value(), &n); };
  if (node.op == GOp::Conv) {
    if (!node.attrs.flag(Attr::ChannelsLast) || node.attrs.integer(Attr::Groups) != 1) return std::nullopt;
    const Shape& y = g.type(node.results[0]).shape;
    for (std::size_t d = 0; d + 1 < y.size(); ++d) shape.rows = shape.rows * y[d];
    for (std::size_t d = 0; d + 1 < w.shape.size(); ++d) {
      if (!times(shape.depth, w.shape[d])) return std::nullopt;
    }
    if (!times(shape.lanes, w.shape.back())) return std::nullopt;
    const std::int64_t channels = w.shape[w.shape.size() - 2].value();
    if (channels > 0) shape.words = shape.depth / channels * ((channels + 1) / 2);
    return shape;
  }
  const Axes &lc = node.attrs.ints(Attr::LhsContract), &rc = node.attrs.ints(Attr::RhsContract);
  if (!node.attrs.ints(Attr::RhsBatch).empty() || rc.empty()) return std::nullopt;
  const auto among = [](const Axes& axes, std::size_t d) { return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end(); };
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (!among(lc, d)) shape.rows = shape.rows * x.shape[d];
  }
  for (std::size_t d = 0; d < w.shape.size(); ++d) {
    if (!times(among(rc, d) ? shape.depth : shape.lanes, w.shape[d])) return std::nullopt;
  }
  if (mod(w.shape[rc.back()], Dim(2)).is(0)) shape.words = shape.depth / 2;
  return shape;
}

Result<Graph> round_products(const Graph& graph, const PassOptions& options) {
  if (options.precision != Precision::Medium || !options.products) return graph;
  graph::Rewriter rewriter{Rounder(options.products)};
  Graph made = WEFT_TRY(rewriter.run(graph));
  return rewriter.replaced() == 0 ? made : graph::dce(made);
}

}  // namespace weft::transform
