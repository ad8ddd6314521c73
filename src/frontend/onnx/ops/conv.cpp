#include "frontend/onnx/ops/conv.h"

#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/ops/window.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

Result<std::vector<std::int64_t>> kernel_of(NodeContext& c, const Shape& weights) {
  auto kernel = static_sizes(spatial_of(weights));
  if (!kernel) return c.missing("a kernel of symbolic size");
  if (c.has_attr("kernel_shape") && c.integers("kernel_shape") != *kernel) {
    return c.bad("kernel_shape differs from the weights' shape");
  }
  return *kernel;
}

ValueId add_bias(NodeContext& c, ValueId y, int operand) {
  if (!c.has(operand)) return y;
  return c.b.binary(Op::Add, y, c.b.broadcast_in(c.in(operand), c.b.shape(y), {1}));
}

Result<void> conv(NodeContext& c) {
  c.out(0, add_bias(c, WEFT_TRY(convolution(c, c.in(0), c.in(1), c.dtype(0))), 2));
  return {};
}

// A transposed convolution is a convolution of the spread-out input with the mirrored weights, input and output
// channels exchanged within each group.
Result<void> conv_transpose(NodeContext& c) {
  if (c.rank(0) < 3 || c.rank(1) != c.rank(0)) return c.bad("X and W must have the same rank, at least 3");
  std::vector<std::int64_t> kernel = WEFT_TRY(kernel_of(c, c.shape(1)));
  std::size_t n = kernel.size();
  std::vector<std::int64_t> strides = c.integers("strides", std::vector<std::int64_t>(n, 1));
  std::vector<std::int64_t> dilations = c.integers("dilations", std::vector<std::int64_t>(n, 1));
  std::vector<std::int64_t> extra = c.integers("output_padding", std::vector<std::int64_t>(n, 0));
  std::vector<std::int64_t> pads = c.integers("pads", std::vector<std::int64_t>(2 * n, 0));
  std::vector<std::int64_t> wanted = c.integers("output_shape");
  std::string automatic = c.text("auto_pad", "NOTSET");
  std::int64_t groups = c.integer("group", 1);
  if (groups < 1 || strides.size() != n || dilations.size() != n || extra.size() != n || pads.size() != 2 * n) {
    return c.bad(fmt::format("strides, dilations, output_padding and pads must fit {} spatial axes", n));
  }
  if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != n) return c.bad("output_shape does not fit the spatial axes");
  Shape lo, hi;
  for (std::size_t d = 0; d < n; ++d) {
    if (strides[d] < 1 || dilations[d] < 1) return c.bad("strides and dilations must be at least 1");
    Dim in = c.shape(0)[2 + d];
    std::int64_t reach = (kernel[d] - 1) * dilations[d];
    Dim natural = (in - 1) * strides[d] + reach + 1 + extra[d];  // without any cropping
    Dim crop_lo = pads[d], crop_hi = pads[n + d];
    if (!wanted.empty() || automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      Dim size = wanted.empty() ? in * strides[d] : Dim(wanted[d]);
      Dim total = natural - size;
      Dim less = floor_div(total, 2);
      bool start_small = automatic == "SAME_UPPER";
      // The odd cell is cropped at the end for SAME_UPPER, at the start otherwise; a negative total adds cells at the end.
      crop_lo = start_small ? less : total - less;
      crop_hi = total - crop_lo;
      if (total.is_const() && total.value() < 0) {
        crop_lo = 0;
        crop_hi = total;
      }
    } else if (automatic == "VALID") {
      crop_lo = crop_hi = 0;
    } else if (automatic != "NOTSET") {
      return c.bad(fmt::format("unknown auto_pad '{}'", automatic));
    }
    lo.push_back(Dim(reach) - crop_lo);
    hi.push_back(Dim(reach) - crop_hi + extra[d]);
  }
  // [C, O/g, k...] -> [g, C/g, O/g, k...] -> [g, O/g, C/g, k...] -> [O, C/g, k...], mirrored
  const Shape ws = c.shape(1);
  Shape split{Dim(groups), floor_div(ws[0], Dim(groups)), ws[1]}, joined{ws[1] * groups, floor_div(ws[0], Dim(groups))};
  std::vector<std::int64_t> axes{0, 2, 1}, mirrored;
  for (std::size_t d = 0; d < n; ++d) {
    split.push_back(ws[2 + d]);
    joined.push_back(ws[2 + d]);
    axes.push_back(static_cast<std::int64_t>(3 + d));
    mirrored.push_back(static_cast<std::int64_t>(2 + d));
  }
  ValueId w = c.b.reshape(c.b.transpose(c.b.reshape(c.in(1), split), axes), joined);
  w = c.b.node(Op::Reverse, {w}, Attrs().set(Attr::Axes, mirrored));
  Shape xs = c.shape(0);
  if (!xs[1].is_const()) xs[1] = ws[0];
  ValueId x = c.b.reshape(c.in(0), xs);
  Attrs attrs;
  attrs.set(Attr::Strides, std::vector<std::int64_t>(n, 1)).set(Attr::Lo, lo).set(Attr::Hi, hi);
  attrs.set(Attr::Dilations, dilations).set(Attr::BaseDilations, strides).set(Attr::Groups, groups);
  attrs.set(Attr::ChannelsLast, false).set(Attr::DType, c.dtype(0));
  c.out(0, add_bias(c, c.b.node(Op::Conv, {x, w}, std::move(attrs)), 2));
  return {};
}

constexpr OpEntry kConvOps[] = {
    {"Conv", 1, kOpsetMax, 2, 3, "auto_pad dilations group kernel_shape pads strides", conv},
    {"ConvTranspose", 1, kOpsetMax, 2, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides", conv_transpose},
};

}  // namespace

Result<ValueId> convolution(NodeContext& c, ValueId x, ValueId w, DType result) {
  Shape xs = c.b.shape(x);
  const Shape ws = c.b.shape(w);
  if (xs.size() < 3 || ws.size() != xs.size()) return c.bad("X and W must have the same rank, at least 3");
  Window window = WEFT_TRY(window_of(c, spatial_of(xs), WEFT_TRY(kernel_of(c, ws))));
  std::int64_t groups = c.integer("group", 1);
  if (groups < 1) return c.bad("group must be at least 1");
  // A symbolic number of channels is what the weights say.
  if (!xs[1].is_const()) {
    xs[1] = ws[1] * groups;
    x = c.b.reshape(x, xs);
  }
  Attrs attrs;
  attrs.set(Attr::Strides, window.strides).set(Attr::Lo, window.lo).set(Attr::Hi, window.hi);
  attrs.set(Attr::Dilations, window.dilations).set(Attr::Groups, groups).set(Attr::ChannelsLast, false);
  attrs.set(Attr::BaseDilations, std::vector<std::int64_t>(window.kernel.size(), 1)).set(Attr::DType, result);
  // A symbolic number of channels is what the weights say.
  Shape shape = c.b.shape(x);
  if (!shape[1].is_const()) shape[1] = c.b.shape(w)[1] * groups;
  return c.b.node(Op::Conv, {c.b.reshape(x, shape), w}, std::move(attrs));
}

OpTable conv_ops() { return {kConvOps, std::size(kConvOps)}; }

}  // namespace weft::onnx
