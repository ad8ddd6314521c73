// GridSample, AffineGrid and RoiAlign.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/activation.h"
#include "ops/grid_sample.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

Result<void> grid_sample(NodeContext& c) {
  if (c.rank(0) < 3 || c.rank(1) != c.rank(0)) return c.bad("X and grid must have the same rank, at least 3");
  std::int64_t spatial = c.rank(0) - 2;
  if (!c.shape(1).back().is(spatial)) {
    return c.bad("the grid's last axis must hold one coordinate per spatial axis").expected(std::to_string(spatial)).found(c.shape(1).back().str());
  }
  using Mode = ops::GridSampleMode;
  Mode m;
  std::string mode = c.text("mode", "linear"), padding = c.text("padding_mode", "zeros");
  if (mode == "linear" || mode == "bilinear") m.interpolation = Mode::Interpolation::Linear;
  else if (mode == "nearest") m.interpolation = Mode::Interpolation::Nearest;
  else if (mode == "cubic" || mode == "bicubic") m.interpolation = Mode::Interpolation::Cubic;
  else return c.bad(fmt::format("unknown mode '{}'", mode));
  if (padding == "zeros") m.padding = Mode::Padding::Zeros;
  else if (padding == "border") m.padding = Mode::Padding::Border;
  else if (padding == "reflection") m.padding = Mode::Padding::Reflection;
  else return c.bad(fmt::format("unknown padding_mode '{}'", padding));
  m.align_corners = c.integer("align_corners", 0) != 0;
  c.out(0, ops::grid_sample(c.b, c.in(0), c.in(1), m));
  return {};
}

// The coordinates of an axis' cells between -1 and 1.
ValueId coordinates(NodeContext& c, const Dim& n, bool align_corners) {
  ValueId i = c.b.iota(DType::F32, {n}, 0);
  auto size = [&](const Dim& d) { return c.b.cast(c.b.reshape(c.b.shape_value({d}), {}), DType::F32); };
  ValueId one = c.b.scalar(DType::F32, 1), two = c.b.scalar(DType::F32, 2);
  ValueId doubled = c.b.binary(Op::Mul, i, two);
  if (align_corners) {
    ValueId steps = c.b.binary(Op::Max, size(n - 1), one);
    return c.b.binary(Op::Sub, c.b.binary(Op::Div, doubled, steps), one);
  }
  return c.b.binary(Op::Sub, c.b.binary(Op::Div, c.b.binary(Op::Add, doubled, one), size(n)), one);
}

// theta [N, k, k + 1] applied to the homogeneous coordinates of every cell.
Result<void> affine_grid(NodeContext& c) {
  Shape size = WEFT_TRY(c.dims_or_bind(1, "size"));
  std::int64_t k = static_cast<std::int64_t>(size.size()) - 2;
  if ((k != 2 && k != 3) || c.rank(0) != 3) return c.bad("size must be [N, C, H, W] or [N, C, D, H, W], and theta of rank 3");
  bool align_corners = c.integer("align_corners", 0) != 0;
  Shape cells(size.begin() + 2, size.end());
  Dim count = product(cells);
  std::vector<ValueId> columns;
  for (std::int64_t d = k - 1; d >= 0; --d) {
    ValueId v = c.b.broadcast_in(coordinates(c, cells[d], align_corners), cells, {d});
    columns.push_back(c.b.reshape(v, {count, Dim(1)}));
  }
  columns.push_back(c.b.splat({DType::F32, {count, Dim(1)}}, 1));
  DType t = c.dtype(0);
  ValueId points = c.b.cast(c.b.concat(columns, 1), t);
  ValueId moved = c.b.dot(c.in(0), points, {}, {}, {2}, {1}, t);  // [N, k, count]
  Shape result{c.shape(0)[0]};
  result.insert(result.end(), cells.begin(), cells.end());
  result.push_back(k);
  c.out(0, c.b.reshape(c.b.transpose(moved, {0, 2, 1}), result));
  return {};
}

// What one axis of RoiAlign reads: for each roi and sample, two cells and how much of the second.
struct Bilinear {
  ValueId low, high, part, inside;  // [rois, samples]; cells i64, part f32, inside bool
};

struct Rois {
  ValueId boxes;  // f32 [rois, 4]: x1, y1, x2, y2
  double scale, offset;
  std::int64_t samples;  // per bin and axis
  bool at_least_one;
};

Bilinear axis_samples(NodeContext& c, const Rois& r, std::int64_t column, std::int64_t bins, const Dim& length) {
  graph::Builder& b = c.b;
  auto number = [&](double v) { return b.scalar(DType::F32, v); };
  auto size = [&](const Dim& d) { return b.cast(b.reshape(b.shape_value({d}), {}), DType::F32); };
  auto edge = [&](std::int64_t k) {
    ValueId v = b.binary(Op::Mul, b.slice_axis(r.boxes, 1, k, 1), number(r.scale));
    return b.binary(Op::Sub, v, number(r.offset));
  };
  ValueId start = edge(column), span = b.binary(Op::Sub, edge(column + 2), start);
  if (r.at_least_one) span = b.binary(Op::Max, span, number(1));
  ValueId bin = b.binary(Op::Div, span, number(static_cast<double>(bins)));
  ValueId i = b.iota(DType::F32, {Dim(1), Dim(bins * r.samples)}, 1);
  // Sample s of bin p lies at p + (s + 1/2) / samples, which is (i + 1/2) / samples.
  ValueId at = b.binary(Op::Div, b.binary(Op::Add, i, number(0.5)), number(static_cast<double>(r.samples)));
  at = b.binary(Op::Add, start, b.binary(Op::Mul, at, bin));
  ValueId last = size(length - 1);
  ValueId inside = b.binary(Op::And, b.binary(Op::Ge, at, number(-1)), b.binary(Op::Le, at, size(length)));
  at = ops::clip(b, at, number(0), last);
  ValueId low = b.unary(Op::Floor, at);
  ValueId high = b.binary(Op::Min, b.binary(Op::Add, low, number(1)), last);
  return {b.cast(low, DType::I64), b.cast(high, DType::I64), b.binary(Op::Sub, at, low), inside};
}

Result<void> roi_align(NodeContext& c) {
  if (c.rank(0) != 4 || c.rank(1) != 2 || c.rank(2) != 1) return c.bad("X must be [N, C, H, W], rois [R, 4], batch_indices [R]");
  std::string mode = c.text("mode", "avg");
  std::string transform = c.text("coordinate_transformation_mode", c.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  if ((mode != "avg" && mode != "max") || (transform != "half_pixel" && transform != "output_half_pixel")) {
    return c.bad("unknown mode or coordinate_transformation_mode");
  }
  std::int64_t samples = c.integer("sampling_ratio", 0), h = c.integer("output_height", 1), w = c.integer("output_width", 1);
  if (samples == 0) return c.missing("sampling_ratio 0, whose number of samples depends on the regions");
  if (samples < 0 || h < 1 || w < 1) return c.bad("sampling_ratio, output_height and output_width must be positive");
  graph::Builder& b = c.b;
  bool half = transform == "half_pixel";
  Rois rois{b.cast(c.in(1), DType::F32), c.real("spatial_scale", 1), half ? 0.5 : 0.0, samples, !half};
  const Shape xs = c.shape(0);
  Bilinear ys = axis_samples(c, rois, 1, h, xs[2]), xs_axis = axis_samples(c, rois, 0, w, xs[3]);
  Dim count = c.shape(1)[0];
  Shape points{count, Dim(h * samples), Dim(w * samples)};
  auto rows = [&](ValueId v) { return b.broadcast_in(v, points, {0, 1}); };
  auto columns = [&](ValueId v) { return b.broadcast_in(v, points, {0, 2}); };
  ValueId batch = b.broadcast_in(b.cast(c.in(2), DType::I64), points, {0});
  ValueId source = b.transpose(c.in(0), {0, 2, 3, 1});
  ValueId inside = b.binary(Op::And, rows(ys.inside), columns(xs_axis.inside));
  ValueId one = b.scalar(DType::F32, 1);
  Shape index{points[0], points[1], points[2], Dim(1)}, values{points[0], points[1], points[2], xs[1]};
  auto corner = [&](bool lower, bool right) {
    std::vector<ValueId> parts{b.reshape(batch, index), b.reshape(rows(lower ? ys.high : ys.low), index),
                               b.reshape(columns(right ? xs_axis.high : xs_axis.low), index)};
    ValueId value = b.node(Op::GatherNd, {source, b.concat(parts, 3)}, Attrs().set(Attr::Batch, std::int64_t{0}));
    ValueId wy = lower ? ys.part : b.binary(Op::Sub, one, ys.part);
    ValueId wx = right ? xs_axis.part : b.binary(Op::Sub, one, xs_axis.part);
    ValueId weight = b.select(inside, b.binary(Op::Mul, rows(wy), columns(wx)), b.scalar(DType::F32, 0));
    return b.binary(Op::Mul, value, b.cast(b.broadcast_in(weight, values, {0, 1, 2}), b.dtype(value)));
  };
  Op join = mode == "avg" ? Op::Add : Op::Max;
  ValueId y = b.binary(join, b.binary(join, corner(false, false), corner(false, true)),
                       b.binary(join, corner(true, false), corner(true, true)));
  y = b.reshape(y, {count, Dim(h), Dim(samples), Dim(w), Dim(samples), xs[1]});
  y = b.reduce(mode == "avg" ? Op::ReduceSum : Op::ReduceMax, y, {2, 4});
  if (mode == "avg") y = b.binary(Op::Div, y, b.scalar(b.dtype(y), static_cast<double>(samples * samples)));
  c.out(0, b.transpose(y, {0, 3, 1, 2}));
  return {};
}

constexpr OpEntry kSampleOps[] = {
    {"GridSample", 16, kOpsetMax, 2, 2, "align_corners mode padding_mode", grid_sample},
    {"AffineGrid", 20, kOpsetMax, 2, 2, "align_corners", affine_grid},
    {"RoiAlign", 10, kOpsetMax, 3, 3,
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale", roi_align},
};

}  // namespace

OpTable sample_ops() { return {kSampleOps, std::size(kSampleOps)}; }

}  // namespace weft::onnx
