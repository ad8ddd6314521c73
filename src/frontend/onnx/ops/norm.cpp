// Normalisation over batches, layers, groups and instances.
#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/norm.h"

namespace weft::onnx {

namespace {

using graph::Op;

// A per-channel vector spread over the input, channels on axis 1.
ValueId per_channel(NodeContext& c, ValueId v, const Shape& shape) { return c.b.broadcast_in(v, shape, {1}); }

struct Moments {
  ValueId mean, variance;  // per channel
};

// Of the batch, in f32 at least; the running ones move towards them.
Moments batch_moments(NodeContext& c) {
  const DType t = c.dtype(0), wide = bits(t) < 32 ? DType::F32 : t;
  const ValueId x = c.b.cast(c.in(0), wide);
  std::vector<std::int64_t> axes{0};
  for (std::int64_t a = 2; a < c.rank(0); ++a) axes.push_back(a);
  const ValueId centre = ops::mean(c.b, x, axes, false);
  const ValueId off = c.b.binary(Op::Sub, x, per_channel(c, centre, c.shape(0)));
  const ValueId variance = ops::mean(c.b, c.b.binary(Op::Mul, off, off), axes, false);
  const Moments found{c.b.cast(centre, c.dtype(3)), c.b.cast(variance, c.dtype(4))};
  const double momentum = c.real("momentum", 0.9);
  const auto moved = [&](ValueId old, ValueId now) {
    const DType own = c.b.dtype(old);
    return c.b.binary(Op::Add, c.b.binary(Op::Mul, old, c.b.scalar(own, momentum)), c.b.binary(Op::Mul, now, c.b.scalar(own, 1 - momentum)));
  };
  c.out(1, moved(c.in(3), found.mean));
  c.out(2, moved(c.in(4), found.variance));
  return found;
}

Result<void> batch_norm(NodeContext& c) {
  const bool training = c.opset() < 7 ? c.integer("is_test", 0) == 0 : c.integer("training_mode", 0) != 0;
  if (training && c.opset() < 14) return c.missing("training mode");
  if (c.opset() < 9 && c.integer("spatial", 1) == 0) return c.missing("spatial = 0");
  if (c.opset() < 14 && c.output_count() > 1 && (c.wants(1) || c.wants(2))) return c.missing("outputs beside Y");
  DType t = c.dtype(0), wide = c.dtype(3);
  if (c.rank(0) < 1) return c.bad("X has no channel axis");
  if (c.rank(0) == 1) return c.missing("an input of rank 1");
  const Moments by = training ? batch_moments(c) : Moments{c.in(3), c.in(4)};
  // One multiplier and one offset per channel: both fold when the statistics are constants.
  ValueId deviation = c.b.unary(Op::Sqrt, c.b.binary(Op::Add, by.variance, c.b.scalar(c.dtype(4), c.real("epsilon", 1e-5))));
  ValueId scale = c.b.binary(Op::Div, c.b.cast(c.in(1), wide), c.b.cast(deviation, wide));
  ValueId offset = c.b.binary(Op::Sub, c.b.cast(c.in(2), wide), c.b.binary(Op::Mul, by.mean, scale));
  const Shape shape = c.shape(0);
  ValueId y = c.b.binary(Op::Mul, c.b.cast(c.in(0), wide), per_channel(c, scale, shape));
  c.out(0, c.b.cast(c.b.binary(Op::Add, y, per_channel(c, offset, shape)), t));
  return {};
}

DType stash(NodeContext& c) {
  DType t = c.dtype(0);
  auto wanted = dtype_from_onnx(c.integer("stash_type", 1));
  if (wanted && is_float(*wanted) && bits(*wanted) > bits(t)) return *wanted;
  return t;
}

std::vector<std::int64_t> axes_from(std::int64_t first, std::int64_t rank) {
  std::vector<std::int64_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Result<void> layer_norm(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", -1), c.rank(0)));
  auto n = ops::normalize(c.b, c.in(0), axes_from(axis, c.rank(0)), c.real("epsilon", 1e-5), stash(c));
  ValueId y = c.b.binary(Op::Mul, n.y, c.b.broadcast_to(c.in(1), c.shape(0)));
  if (c.has(2)) y = c.b.binary(Op::Add, y, c.b.broadcast_to(c.in(2), c.shape(0)));
  c.out(0, y);
  c.out(1, n.mean);
  c.out(2, n.inverse_deviation);
  return {};
}

Result<void> rms_norm(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", -1), c.rank(0)));
  ValueId y = ops::rms_normalize(c.b, c.in(0), axes_from(axis, c.rank(0)), c.real("epsilon", 1e-5), stash(c));
  c.out(0, c.b.binary(Op::Mul, y, c.b.broadcast_to(c.in(1), c.shape(0))));
  return {};
}

Result<void> instance_norm(NodeContext& c) {
  if (c.rank(0) < 3) return c.bad("the input needs at least one spatial axis");
  auto n = ops::normalize(c.b, c.in(0), axes_from(2, c.rank(0)), c.real("epsilon", 1e-5), stash(c));
  const Shape shape = c.shape(0);
  ValueId y = c.b.binary(Op::Mul, n.y, per_channel(c, c.in(1), shape));
  c.out(0, c.b.binary(Op::Add, y, per_channel(c, c.in(2), shape)));
  return {};
}

Result<void> group_norm(NodeContext& c) {
  std::int64_t groups = c.integer("num_groups", 0);
  const Shape shape = c.shape(0);
  if (groups < 1 || c.rank(0) < 2) return c.bad("num_groups must be at least 1");
  Shape split{shape[0], Dim(groups), floor_div(shape[1], Dim(groups))};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  ValueId x = c.b.reshape(c.in(0), split);
  auto n = ops::normalize(c.b, x, axes_from(2, static_cast<std::int64_t>(split.size())), c.real("epsilon", 1e-5), stash(c));
  // Scale and bias are per channel; before opset 21 they were per group.
  auto affine = [&](ValueId v) {
    if (c.opset() >= 21) return c.b.broadcast_in(v, shape, {1});
    return c.b.reshape(c.b.broadcast_in(v, split, {1}), shape);
  };
  ValueId y = c.b.binary(Op::Mul, c.b.reshape(n.y, shape), affine(c.in(1)));
  c.out(0, c.b.binary(Op::Add, y, affine(c.in(2))));
  return {};
}

Result<void> mean_variance_norm(NodeContext& c) {
  std::vector<std::int64_t> axes = WEFT_TRY(c.axes(c.integers("axes", {0, 2, 3}), c.rank(0)));
  ValueId x = c.in(0);
  ValueId d = c.b.binary(Op::Sub, x, ops::mean(c.b, x, axes, true));
  ValueId deviation = c.b.unary(Op::Sqrt, ops::mean(c.b, c.b.binary(Op::Mul, d, d), axes, true));
  c.out(0, c.b.binary(Op::Div, d, c.b.binary(Op::Add, deviation, c.b.scalar(c.dtype(0), 1e-9))));
  return {};
}

Result<void> lp_norm(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", -1), c.rank(0))), p = c.integer("p", 2);
  if (p != 1 && p != 2) return c.bad("p must be 1 or 2");
  ValueId x = c.in(0);
  ValueId sum = c.b.reduce(Op::ReduceSum, p == 1 ? c.b.unary(Op::Abs, x) : c.b.binary(Op::Mul, x, x), {axis}, true);
  ValueId length = p == 1 ? sum : c.b.unary(Op::Sqrt, sum);
  // A zero vector stays zero.
  ValueId zero = c.b.binary(Op::Eq, length, c.b.scalar(c.dtype(0), 0));
  c.out(0, c.b.binary(Op::Div, x, c.b.select(zero, c.b.scalar(c.dtype(0), 1), length)));
  return {};
}

// x / (bias + alpha / size * sum of squares over nearby channels)^beta
Result<void> lrn(NodeContext& c) {
  std::int64_t size = c.integer("size", 0);
  if (size < 1 || c.rank(0) < 2) return c.bad("size must be at least 1");
  DType t = c.dtype(0);
  int rank = c.rank(0);
  std::vector<std::int64_t> window(rank, 1), ones(rank, 1);
  Shape lo(rank, Dim(0)), hi(rank, Dim(0));
  window[1] = size;
  lo[1] = (size - 1) / 2;
  hi[1] = size - 1 - (size - 1) / 2;
  graph::Attrs attrs;
  attrs.set(graph::Attr::Window, window).set(graph::Attr::Strides, ones).set(graph::Attr::Dilations, ones);
  attrs.set(graph::Attr::Lo, lo).set(graph::Attr::Hi, hi);
  ValueId sum = c.b.node(Op::WindowSum, {c.b.binary(Op::Mul, c.in(0), c.in(0))}, std::move(attrs));
  double alpha = c.real("alpha", 1e-4) / static_cast<double>(size);
  ValueId base = c.b.binary(Op::Add, c.b.binary(Op::Mul, sum, c.b.scalar(t, alpha)), c.b.scalar(t, c.real("bias", 1)));
  c.out(0, c.b.binary(Op::Div, c.in(0), c.b.binary(Op::Pow, base, c.b.scalar(t, c.real("beta", 0.75)))));
  return {};
}

// At inference dropout is the identity and nothing is dropped.
Result<void> dropout(NodeContext& c) {
  if (c.opset() < 7 && c.integer("is_test", 0) == 0) return c.missing("training mode");
  if (c.opset() >= 12 && c.has(2)) {
    auto training = c.dims(2);
    const Tensor* ratio = c.has(1) ? c.constant(1) : nullptr;
    const bool drops_none = ratio && ratio->size() == 1 && ratio->f64(0) == 0;
    const bool inference = training && training->size() == 1 && (*training)[0].is(0);
    if (!inference && !drops_none) return c.missing("training mode");
  }
  c.out(0, c.in(0));
  c.out(1, c.b.splat({c.opset() < 10 ? c.dtype(0) : DType::Bool, c.shape(0)}, 1));
  return {};
}

constexpr OpEntry kNormOps[] = {
    {"BatchNormalization", 1, 6, 5, 5, "epsilon is_test momentum spatial", batch_norm},
    {"BatchNormalization", 7, kOpsetMax, 5, 5, "epsilon momentum spatial training_mode", batch_norm},
    {"LayerNormalization", 17, kOpsetMax, 2, 3, "axis epsilon stash_type", layer_norm},
    {"RMSNormalization", 23, kOpsetMax, 2, 2, "axis epsilon stash_type", rms_norm},
    {"InstanceNormalization", 1, kOpsetMax, 3, 3, "epsilon", instance_norm},
    {"GroupNormalization", 18, kOpsetMax, 3, 3, "epsilon num_groups stash_type", group_norm},
    {"MeanVarianceNormalization", 9, kOpsetMax, 1, 1, "axes", mean_variance_norm},
    {"LpNormalization", 1, kOpsetMax, 1, 1, "axis p", lp_norm},
    {"LRN", 1, kOpsetMax, 1, 1, "alpha beta bias size", lrn},
    {"Dropout", 1, 6, 1, 1, "is_test ratio", dropout},
    {"Dropout", 7, kOpsetMax, 1, 3, "ratio seed", dropout},
};

}  // namespace

OpTable norm_ops() { return {kNormOps, std::size(kNormOps)}; }

}  // namespace weft::onnx
