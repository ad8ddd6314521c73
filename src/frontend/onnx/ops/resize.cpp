// Resize and Upsample: sizes and scales per axis; the resampling itself is ops/resize.h.
#include "ops/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;
using ops::Coordinates;
using ops::Interpolation;
using ops::NearestRule;
using ops::ResizeAxis;
using ops::ResizeMode;

template <class E>
struct Word {
  const char* text;
  E value;
};

constexpr Word<Interpolation> kInterpolations[] = {
    {"nearest", Interpolation::Nearest}, {"linear", Interpolation::Linear}, {"cubic", Interpolation::Cubic}};
constexpr Word<Coordinates> kCoordinates[] = {
    {"half_pixel", Coordinates::HalfPixel},
    {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
    {"pytorch_half_pixel", Coordinates::PytorchHalfPixel},
    {"tf_half_pixel_for_nn", Coordinates::HalfPixelForNearest},
    {"align_corners", Coordinates::AlignCorners},
    {"asymmetric", Coordinates::Asymmetric},
    {"tf_crop_and_resize", Coordinates::CropAndResize}};
constexpr Word<NearestRule> kRules[] = {
    {"round_prefer_floor", NearestRule::RoundPreferFloor},
    {"round_prefer_ceil", NearestRule::RoundPreferCeil},
    {"floor", NearestRule::Floor},
    {"ceil", NearestRule::Ceil}};

template <class E, std::size_t N>
Result<E> word(NodeContext& c, const char* attribute, const char* fallback, const Word<E> (&words)[N]) {
  std::string text = c.text(attribute, fallback);
  for (const auto& w : words) {
    if (text == w.text) return w.value;
  }
  return c.missing(fmt::format("{} '{}'", attribute, text));
}

Result<ResizeMode> mode_of(NodeContext& c) {
  bool old = c.opset() < 11;  // no choice of coordinates: x / scale, rounded down
  ResizeMode m;
  m.interpolation = WEFT_TRY(word(c, "mode", "nearest", kInterpolations));
  m.coordinates = WEFT_TRY(word(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", kCoordinates));
  m.rule = WEFT_TRY(word(c, "nearest_mode", old ? "floor" : "round_prefer_floor", kRules));
  m.cubic_a = c.real("cubic_coeff_a", -0.75);
  m.exclude_outside = c.integer("exclude_outside", 0) != 0;
  m.antialias = c.integer("antialias", 0) != 0;
  m.extrapolation = c.real("extrapolation_value", 0);
  if (m.antialias && m.interpolation == Interpolation::Nearest) return c.bad("antialias needs linear or cubic");
  return m;
}

// floor(size * scale). Of a symbolic size: by the fraction that the scale stands for.
Result<Dim> scaled(NodeContext& c, const Dim& size, float scale) {
  if (size.is_const()) {
    float product = std::floor(static_cast<float>(size.value()) * scale);
    if (!(product < 9e15f)) return c.bad("the result is too large");
    return Dim(static_cast<std::int64_t>(product));
  }
  for (std::int64_t q = 1; q <= 4096; ++q) {
    double p = std::round(static_cast<double>(scale) * static_cast<double>(q));
    if (p < 1 || p > 1e9 || static_cast<float>(p / static_cast<double>(q)) != scale) continue;
    return c.b.graph().facts.simplify(floor_div(size * static_cast<std::int64_t>(p), Dim(q)));
  }
  return c.missing("a scale that is no simple fraction, on a symbolic size");
}

// A known list of reals, one per axis.
Result<std::vector<float>> floats(NodeContext& c, int operand, const char* what) {
  const Tensor* t = c.constant(operand);
  if (!t) return c.missing(fmt::format("{} known only at run time", what));
  std::vector<float> list;
  for (std::int64_t k = 0; k < t->size(); ++k) list.push_back(static_cast<float>(t->f64(k)));
  return list;
}

// Whether the operand is there and not empty.
bool given(NodeContext& c, int operand) { return c.has(operand) && !product(c.shape(operand)).is(0); }

// Regions of interest, as scalars: starts of the axes, then ends.
Result<void> set_regions(NodeContext& c, std::vector<ResizeAxis>& axes) {
  if (!given(c, 1)) return c.bad("tf_crop_and_resize needs roi");
  std::int64_t n = static_cast<std::int64_t>(axes.size());
  if (c.rank(1) != 1 || (c.shape(1)[0].is_const() && !c.shape(1)[0].is(2 * n))) {
    return c.bad("roi must have two entries per axis").expected(std::to_string(2 * n)).found(str(c.shape(1)));
  }
  ValueId roi = c.b.cast(c.in(1), DType::F32);
  auto entry = [&](std::int64_t k) { return c.b.reshape(c.b.slice_axis(roi, 0, k, 1), {}); };
  for (std::int64_t k = 0; k < n; ++k) {
    axes[k].roi_start = entry(k);
    axes[k].roi_end = entry(n + k);
  }
  return {};
}

// The part of an axis that its region covers, when known.
Result<float> covered(NodeContext& c, const ResizeAxis& a) {
  const Tensor* start = c.b.graph().constant(a.roi_start);
  const Tensor* end = c.b.graph().constant(a.roi_end);
  if (!start || !end) return c.missing("scales of a region known only at run time");
  return static_cast<float>(end->f64(0) - start->f64(0));
}

Result<void> set_scales(NodeContext& c, std::vector<ResizeAxis>& axes, const std::vector<float>& scales, const ResizeMode& mode) {
  if (scales.size() != axes.size()) {
    return c.bad("scales must have one entry per axis").expected(std::to_string(axes.size())).found(std::to_string(scales.size()));
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (!(scales[k] > 0) || std::isinf(scales[k])) return c.bad("scales must be positive").found(fmt::format("{}", scales[k]));
    float part = mode.coordinates == Coordinates::CropAndResize ? WEFT_TRY(covered(c, axes[k])) : 1;
    axes[k].scale = scales[k];
    axes[k].out = WEFT_TRY(scaled(c, c.shape(0)[axes[k].axis], scales[k] * part));
  }
  return {};
}

// One scale for all axes, so that none (or every one) gets larger than its size asks for.
Result<void> keep_ratio(NodeContext& c, std::vector<ResizeAxis>& axes, bool not_larger) {
  std::optional<double> scale;
  for (const ResizeAxis& a : axes) {
    const Dim& in = c.shape(0)[a.axis];
    if (!in.is_const() || !a.out.is_const()) return c.missing("keep_aspect_ratio_policy on symbolic sizes");
    if (in.is(0)) return c.bad("an empty axis has no aspect ratio");
    double s = static_cast<double>(a.out.value()) / static_cast<double>(in.value());
    scale = !scale ? s : not_larger ? std::min(*scale, s) : std::max(*scale, s);
  }
  for (ResizeAxis& a : axes) {
    a.scale = *scale;
    a.out = static_cast<std::int64_t>(*scale * static_cast<double>(c.shape(0)[a.axis].value()) + 0.5);
  }
  return {};
}

Result<void> set_sizes(NodeContext& c, std::vector<ResizeAxis>& axes) {
  Shape sizes = WEFT_TRY(c.dims_or_bind(3, "sizes"));
  if (sizes.size() != axes.size()) {
    return c.bad("sizes must have one entry per axis").expected(std::to_string(axes.size())).found(std::to_string(sizes.size()));
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (sizes[k].is_const() && sizes[k].value() < 0) return c.bad("a size is negative");
    axes[k].out = sizes[k];
  }
  std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return {};
  if (policy != "not_larger" && policy != "not_smaller") return c.bad(fmt::format("unknown keep_aspect_ratio_policy '{}'", policy));
  return keep_ratio(c, axes, policy == "not_larger");
}

// Axes that keep their size under a scale of 1 are left alone.
Result<void> finish(NodeContext& c, std::vector<ResizeAxis> axes, const ResizeMode& mode) {
  std::vector<ResizeAxis> changed;
  for (const ResizeAxis& a : axes) {
    bool same = a.out == c.shape(0)[a.axis] && a.scale.value_or(1) == 1;
    if (same && mode.coordinates == Coordinates::CropAndResize) {
      const Tensor* start = c.b.graph().constant(a.roi_start);
      const Tensor* end = c.b.graph().constant(a.roi_end);
      same = start && end && start->f64(0) == 0 && end->f64(0) == 1;
    }
    if (!same) changed.push_back(a);
  }
  c.out(0, ops::resize(c.b, c.in(0), changed, mode));
  return {};
}

std::vector<ResizeAxis> all_axes(NodeContext& c) {
  std::vector<ResizeAxis> axes;
  for (std::int64_t d = 0; d < c.rank(0); ++d) axes.push_back({d, c.shape(0)[d], {}, -1, -1});
  return axes;
}

Result<void> resize(NodeContext& c) {
  ResizeMode mode = WEFT_TRY(mode_of(c));
  std::vector<ResizeAxis> axes = all_axes(c);
  if (c.has_attr("axes")) {
    std::vector<std::int64_t> named = WEFT_TRY(c.axes(c.integers("axes"), c.rank(0)));
    std::vector<ResizeAxis> chosen;
    for (std::int64_t a : named) chosen.push_back(axes[a]);
    axes = std::move(chosen);
  }
  if (mode.coordinates == Coordinates::CropAndResize) WEFT_TRY(set_regions(c, axes));
  bool by_scales = given(c, 2), by_sizes = given(c, 3);
  if (by_scales == by_sizes) return c.bad("either scales or sizes must be given");
  if (by_scales) {
    WEFT_TRY(set_scales(c, axes, WEFT_TRY(floats(c, 2, "scales")), mode));
  } else {
    WEFT_TRY(set_sizes(c, axes));
  }
  return finish(c, std::move(axes), mode);
}

// Resize-10 and Upsample: scales only, as the second operand (an attribute before opset 9).
Result<void> upsample(NodeContext& c) {
  ResizeMode mode = WEFT_TRY(mode_of(c));
  std::vector<float> scales = c.opset() >= 9 ? WEFT_TRY(floats(c, 1, "scales")) : c.reals("scales");
  if (c.opset() < 7) {
    if (c.rank(0) != 4) return c.bad("the input is [N, C, H, W]");
    scales = {1, 1, static_cast<float>(c.real("height_scale", 1)), static_cast<float>(c.real("width_scale", 1))};
  }
  std::vector<ResizeAxis> axes = all_axes(c);
  WEFT_TRY(set_scales(c, axes, scales, mode));
  return finish(c, std::move(axes), mode);
}

constexpr OpEntry kResizeOps[] = {
    {"Upsample", 1, 6, 1, 1, "height_scale mode width_scale", upsample},
    {"Upsample", 7, 8, 1, 1, "mode scales", upsample},
    {"Upsample", 9, 9, 2, 2, "mode", upsample},
    {"Resize", 10, 10, 2, 2, "mode", upsample},
    {"Resize", 11, kOpsetMax, 1, 4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
     "keep_aspect_ratio_policy mode nearest_mode",
     resize},
};

}  // namespace

OpTable resize_ops() { return {kResizeOps, std::size(kResizeOps)}; }

}  // namespace weft::onnx
