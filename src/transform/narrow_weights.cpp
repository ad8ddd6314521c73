// Weights of products in fewer bits, where that was asked for: a product with few rows takes as long as reading its
// weights does. bf16 rounds each weight; int8 has a scale per output channel, which multiplies the result; int4 has one per
// group of weights of a channel, and is decoded while it is read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "graph/rewrite.h"
#include "transform/narrow.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Builder;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;
using Axes = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t kFewWeights = 16 << 10;  // stay as they are
constexpr double kLargest = 127;                // of int8, so that zero is in the middle

bool contains(const Axes& axes, std::int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// The output channels of weights: the axes that are not contracted.
struct Channels {
  std::vector<std::int64_t> free;     // their sizes
  std::vector<std::int64_t> strides;  // by axis, of a channel's number; 0: contracted
};

Channels channels_of(const Tensor& w, const Axes& contracted) {
  Channels c;
  c.strides.assign(w.shape().size(), 0);
  std::int64_t stride = 1;
  for (std::size_t axis = w.shape().size(); axis-- > 0;) {
    if (contains(contracted, static_cast<std::int64_t>(axis))) continue;
    c.free.insert(c.free.begin(), w.shape()[axis]);
    c.strides[axis] = stride;
    stride *= w.shape()[axis];
  }
  return c;
}

// Calls visit(element, channel) for all elements in row-major order.
template <class Visit>
void each(const Tensor& w, const Channels& c, Visit visit) {
  const auto& shape = w.shape();
  std::vector<std::int64_t> at(shape.size(), 0);
  const std::int64_t row = shape.back(), step = c.strides.back();
  for (std::int64_t first = 0; first < w.size(); first += row) {
    std::int64_t channel = 0;
    for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) channel += at[axis] * c.strides[axis];
    for (std::int64_t i = 0; i < row; ++i) visit(first + i, channel + i * step);
    for (std::size_t axis = shape.size() - 1; axis-- > 0 && ++at[axis] == shape[axis];) at[axis] = 0;
  }
}

struct Quantised {
  Tensor weights;  // i8
  Tensor scales;   // f32, one per channel
  double error = 0;  // root mean square, of the weights' own
};

Result<Quantised> quantised(const Tensor& w, const Channels& c) {
  Quantised q;
  q.weights = WEFT_TRY(Tensor::empty(DType::I8, w.shape()));
  q.scales = WEFT_TRY(Tensor::zeros(DType::F32, c.free));
  const auto* x = static_cast<const float*>(w.data());
  auto* to = static_cast<std::int8_t*>(q.weights.mutable_data());
  auto* scale = static_cast<float*>(q.scales.mutable_data());
  each(w, c, [&](std::int64_t i, std::int64_t channel) { scale[channel] = std::max(scale[channel], std::fabs(x[i])); });
  for (std::int64_t k = 0; k < q.scales.size(); ++k) scale[k] = scale[k] == 0 ? 1.0F : static_cast<float>(scale[k] / kLargest);
  double off = 0, all = 0;
  each(w, c, [&](std::int64_t i, std::int64_t channel) {
    const float rounded = std::nearbyint(x[i] / scale[channel]);
    to[i] = static_cast<std::int8_t>(std::clamp(rounded, -127.0F, 127.0F));
    const double d = static_cast<double>(to[i]) * scale[channel] - x[i];
    off += d * d;
    all += static_cast<double>(x[i]) * x[i];
  });
  q.error = all > 0 ? std::sqrt(off / all) : 0;
  return q;
}

bool all_finite(const Tensor& w) {
  const auto* x = static_cast<const float*>(w.data());
  return std::all_of(x, x + w.size(), [](float v) { return std::isfinite(v); });
}

class Narrower {
 public:
  explicit Narrower(Weights kind) : kind_(kind) {}

  std::optional<std::vector<ValueId>> operator()(const RewriteContext& c) {
    const graph::Node& node = c.node;
    if (node.op != GOp::Dot || !node.attrs.ints(Attr::RhsBatch).empty()) return std::nullopt;
    const Tensor* w = c.from.constant(node.operands[1]);
    if (w == nullptr || w->dtype() != DType::F32 || w->size() < kFewWeights || node.attrs.dtype(Attr::DType) != DType::F32) return std::nullopt;
    const Axes& contracted = node.attrs.ints(Attr::RhsContract);
    if (kind_ != Weights::Bf16 && (!all_finite(*w) || contracted.size() >= w->shape().size())) return std::nullopt;
    if (kind_ == Weights::Bf16) return std::vector<ValueId>{as_bf16(c, *w)};
    const bool groups = kind_ == Weights::Int4 && contracted.size() == 1 && w->shape()[contracted[0]] % Grouped::kGroup == 0;
    return std::vector<ValueId>{groups ? as_int4(c, *w) : as_int8(c, *w, channels_of(*w, contracted))};
  }

 private:
  static ValueId product(const RewriteContext& c, ValueId weights) {
    return c.builder.node(GOp::Dot, {c.operands[0], c.builder.cast(weights, DType::F32)}, c.node.attrs);
  }

  static ValueId failed(const RewriteContext& c, Error error) {
    c.builder.fail(std::move(error));
    return graph::kInvalid;
  }

  static ValueId as_bf16(const RewriteContext& c, const Tensor& w) {
    auto narrow = rounded_to_bf16(w, false);
    if (!narrow.ok()) return failed(c, narrow.error());
    return product(c, c.builder.constant(*narrow));
  }

  static ValueId as_int8(const RewriteContext& c, const Tensor& w, const Channels& channels) {
    auto q = quantised(w, channels);
    if (!q.ok()) return failed(c, q.error());
    report(c, w, "int8", q->error);
    const ValueId y = product(c, c.builder.constant(q->weights));
    return c.builder.binary(GOp::Mul, y, c.builder.constant(q->scales));  // the channels are the last axes
  }

  static void report(const RewriteContext& c, const Tensor& w, const char* kind, double error) {
    if (!log_enabled("weights")) return;
    log("weights", fmt::format("'{}': {} weights in {}, error {:.4f} of their root mean square",
                               c.node.origin ? c.node.origin->node : "dot", w.size(), kind, error));
  }

  // sum over g, k, half of x[.., g, half, k] * (codes[g, k, ..] shifted to that half) scales[g, ..]
  static ValueId as_int4(const RewriteContext& c, const Tensor& w) {
    const std::int64_t axis = c.node.attrs.ints(Attr::RhsContract)[0], x_axis = c.node.attrs.ints(Attr::LhsContract)[0];
    auto q = in_four_bits(w, axis);
    if (!q.ok()) return failed(c, q.error());
    report(c, w, "int4", q->error);
    Builder& b = c.builder;
    const Shape scales(q->scales.shape().begin(), q->scales.shape().end());
    Shape wide = scales;  // [groups, 2, 16, free axes...]
    wide.insert(wide.begin() + 1, {Dim(2), Dim(Grouped::kGroup / 2)});
    Axes of_codes{0}, of_scales{0};
    for (std::size_t d = 2; d < wide.size(); ++d) of_codes.push_back(static_cast<std::int64_t>(d));
    for (std::size_t d = 3; d < wide.size(); ++d) of_scales.push_back(static_cast<std::int64_t>(d));
    const ValueId codes = b.broadcast_in(b.cast(b.constant(q->codes), DType::I32), wide, of_codes);
    // The lower bits have to go up before they come down with their sign; the upper ones are a byte's already.
    const ValueId half = b.iota(DType::I32, wide, 1);
    const auto less = [&](int from, int each) {
      return b.binary(GOp::Sub, b.scalar(DType::I32, from), b.binary(GOp::Mul, half, b.scalar(DType::I32, each)));
    };
    const ValueId values = b.binary(GOp::Shr, b.binary(GOp::Shl, codes, less(28, 28)), less(28, 24));
    const ValueId weights = b.binary(GOp::Mul, b.cast(values, DType::F32), b.broadcast_in(b.constant(q->scales), wide, of_scales));
    Shape split = b.shape(c.operands[0]);
    split[x_axis] = wide[0];
    split.insert(split.begin() + x_axis + 1, {wide[1], wide[2]});
    const ValueId x = b.reshape(c.operands[0], split);
    return b.dot(x, weights, {}, {}, {x_axis, x_axis + 2, x_axis + 1}, {0, 2, 1}, DType::F32);
  }

  Weights kind_;
};

}  // namespace

Result<Graph> narrow_weights(const Graph& graph, const PassOptions& options) {
  if (options.weights == Weights::F32) return graph;
  return graph::Rewriter(Narrower(options.weights)).run(graph);
}

}  // namespace weft::transform
