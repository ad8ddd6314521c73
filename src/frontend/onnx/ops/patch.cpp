// Operators that put pieces together again: Col2Im, MaxUnpool, CenterCropPad.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

// Columns [N, C * block, positions] are added into the padded image, which is cropped afterwards.
Result<void> col2im(NodeContext& c) {
  std::vector<std::int64_t> image = WEFT_TRY(c.ints(1, "image_shape")), block = WEFT_TRY(c.ints(2, "block_shape"));
  std::size_t n = image.size();
  std::vector<std::int64_t> ones(n, 1), none(2 * n, 0);
  auto strides = c.integers("strides", ones), dilations = c.integers("dilations", ones), pads = c.integers("pads", none);
  if (c.rank(0) != 3 || n == 0 || block.size() != n || strides.size() != n || dilations.size() != n || pads.size() != 2 * n) {
    return c.bad("the input must have rank 3, and the lists must fit the image's axes");
  }
  const Shape s = c.shape(0);
  Shape padded, grid;  // grid: block offsets, then positions
  for (std::size_t d = 0; d < n; ++d) {
    if (image[d] < 1 || block[d] < 1 || strides[d] < 1 || dilations[d] < 1 || pads[d] < 0 || pads[n + d] < 0) {
      return c.bad("shapes, strides and dilations must be at least 1, pads at least 0");
    }
    padded.push_back(image[d] + pads[d] + pads[n + d]);
    grid.push_back(block[d]);
  }
  Dim cells = product(padded), offsets = product(grid);
  for (std::size_t d = 0; d < n; ++d) {
    Dim room = padded[d] - dilations[d] * (block[d] - 1) - 1;
    if (room.value() < 0) return c.bad("the block does not fit into the image");
    grid.push_back(floor_div(room, Dim(strides[d])) + 1);
  }
  Dim taps = product(grid), channels = floor_div(s[1], offsets);
  ValueId index = -1;
  for (std::size_t d = 0; d < n; ++d) {
    auto scaled = [&](std::size_t axis, std::int64_t by) {
      ValueId i = c.b.iota(DType::I64, grid, static_cast<std::int64_t>(axis));
      return c.b.binary(Op::Mul, i, c.b.scalar(DType::I64, static_cast<double>(by)));
    };
    ValueId at = c.b.binary(Op::Add, scaled(d, dilations[d]), scaled(n + d, strides[d]));
    ValueId length = c.b.scalar(DType::I64, static_cast<double>(padded[d].value()));
    index = index < 0 ? at : c.b.binary(Op::Add, c.b.binary(Op::Mul, index, length), at);
  }
  ValueId columns = c.b.reshape(c.in(0), {s[0], channels, taps});
  index = c.b.broadcast_in(c.b.reshape(index, {taps}), {s[0], channels, taps}, {2});
  ValueId sum = c.b.splat({c.dtype(0), {s[0], channels, cells}}, 0);
  Attrs attrs;
  attrs.set(Attr::Axis, std::int64_t{2}).set(Attr::Combine, std::string("add"));
  sum = c.b.node(Op::ScatterElements, {sum, index, columns}, std::move(attrs));
  Shape full{s[0], channels}, start{Dim(0), Dim(0)}, size{s[0], channels};
  for (std::size_t d = 0; d < n; ++d) {
    full.push_back(padded[d]);
    start.push_back(pads[d]);
    size.push_back(image[d]);
  }
  c.out(0, c.b.slice(c.b.reshape(sum, full), start, size, std::vector<std::int64_t>(n + 2, 1)));
  return {};
}

// Values go where the indices, which count over the whole unpooled tensor, say; a given output shape adds cells at
// the ends.
Result<void> max_unpool(NodeContext& c) {
  if (c.rank(0) < 3 || c.rank(1) != c.rank(0)) return c.bad("X and I must have the same rank, at least 3");
  std::size_t n = static_cast<std::size_t>(c.rank(0)) - 2;
  auto kernel = c.integers("kernel_shape"), strides = c.integers("strides", std::vector<std::int64_t>(n, 1));
  auto pads = c.integers("pads", std::vector<std::int64_t>(2 * n, 0));
  if (kernel.size() != n || strides.size() != n || pads.size() != 2 * n) return c.bad("kernel_shape, strides and pads must fit the spatial axes");
  Shape shape{c.shape(0)[0], c.shape(0)[1]};
  for (std::size_t d = 0; d < n; ++d) {
    shape.push_back((c.shape(0)[2 + d] - 1) * strides[d] - pads[d] - pads[n + d] + kernel[d]);
  }
  Dim count = product(c.shape(0));
  Attrs attrs;
  attrs.set(Attr::Axis, std::int64_t{0}).set(Attr::Combine, std::string("none"));
  ValueId zeros = c.b.splat({c.dtype(0), {product(shape)}}, 0);
  ValueId y = c.b.node(Op::ScatterElements, {zeros, c.b.reshape(c.in(1), {count}), c.b.reshape(c.in(0), {count})}, std::move(attrs));
  y = c.b.reshape(y, shape);
  if (c.has(2)) {
    Shape wanted = WEFT_TRY(c.dims_or_bind(2, "output_shape"));
    if (wanted.size() != shape.size()) return c.bad("output_shape does not name every axis");
    Shape lo(shape.size(), Dim(0)), hi;
    for (std::size_t d = 0; d < shape.size(); ++d) hi.push_back(c.b.graph().facts.simplify(wanted[d] - shape[d]));
    y = c.b.pad(y, lo, hi, c.b.scalar(c.dtype(0), 0));
  }
  c.out(0, y);
  return {};
}

Result<void> center_crop_pad(NodeContext& c) {
  std::vector<std::int64_t> axes(c.rank(0));
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has_attr("axes")) axes = WEFT_TRY(c.axes(c.integers("axes"), c.rank(0)));
  Shape wanted = WEFT_TRY(c.dims_or_bind(1, "shape"));
  if (wanted.size() != axes.size()) return c.bad("shape must have one entry per axis").expected(std::to_string(axes.size())).found(std::to_string(wanted.size()));
  const DimFacts& facts = c.b.graph().facts;
  std::size_t rank = c.shape(0).size();
  Shape start(rank, Dim(0)), size = c.shape(0), lo(rank, Dim(0)), hi(rank, Dim(0));
  for (std::size_t k = 0; k < axes.size(); ++k) {
    std::int64_t d = axes[k];
    Dim cut = facts.simplify(max(size[d] - wanted[k], Dim(0))), extra = facts.simplify(max(wanted[k] - size[d], Dim(0)));
    start[d] = floor_div(cut, Dim(2));
    size[d] = facts.simplify(size[d] - cut);
    lo[d] = floor_div(extra, Dim(2));
    hi[d] = extra - lo[d];
  }
  ValueId y = c.b.slice(c.in(0), start, size, std::vector<std::int64_t>(rank, 1));
  c.out(0, c.b.pad(y, lo, hi, c.b.scalar(c.dtype(0), 0)));
  return {};
}

constexpr OpEntry kPatchOps[] = {
    {"Col2Im", 18, kOpsetMax, 3, 3, "dilations pads strides", col2im},
    {"MaxUnpool", 9, kOpsetMax, 2, 3, "kernel_shape pads strides", max_unpool},
    {"CenterCropPad", 18, kOpsetMax, 2, 2, "axes", center_crop_pad},
};

}  // namespace

OpTable patch_ops() { return {kPatchOps, std::size(kPatchOps)}; }

}  // namespace weft::onnx
