// Resampling along axes: nearest, linear and cubic, with every way that ONNX has to map coordinates. Separable: one
// axis after the other, each a few gathers at small index vectors that are worked out from the sizes.
#pragma once

#include <optional>

#include "ops/composite.h"

namespace weft::ops {

enum class Interpolation : std::uint8_t { Nearest, Linear, Cubic };
enum class Coordinates : std::uint8_t {
  HalfPixel, HalfPixelSymmetric, PytorchHalfPixel, HalfPixelForNearest, AlignCorners, Asymmetric, CropAndResize,
};
enum class NearestRule : std::uint8_t { RoundPreferFloor, RoundPreferCeil, Floor, Ceil };

struct ResizeMode {
  Interpolation interpolation = Interpolation::Nearest;
  Coordinates coordinates = Coordinates::HalfPixel;
  NearestRule rule = NearestRule::RoundPreferFloor;
  double cubic_a = -0.75;
  bool exclude_outside = false;  // taps beyond the edge weigh nothing; otherwise they read the edge
  bool antialias = false;
  double extrapolation = 0;      // of what CropAndResize takes from outside
};

struct ResizeAxis {
  std::int64_t axis;
  Dim out;
  std::optional<double> scale;               // out / in, unless given; the coordinates follow it
  ValueId roi_start = -1, roi_end = -1;      // scalars, of CropAndResize
};

// Integers are interpolated in f32, rounded and clamped.
ValueId resize(Builder& b, ValueId x, const std::vector<ResizeAxis>& axes, const ResizeMode& mode);

}  // namespace weft::ops
