#include "ops/resize.h"

#include <cmath>

#include "ops/activation.h"

namespace weft::ops {

using graph::Op;

namespace {

constexpr DType kReal = DType::F32;  // of coordinates and weights
constexpr int kMaxTaps = 128;

// One axis: scalars and vectors of kReal over the output's positions.
class AxisResize {
 public:
  AxisResize(Builder& b, ValueId x, const ResizeAxis& axis, const ResizeMode& mode)
      : b_(b), x_(x), axis_(axis), mode_(mode), in_(b.shape(x)[axis.axis]) {}

  ValueId run() {
    ValueId at = coordinates();
    ValueId y = mode_.interpolation == Interpolation::Nearest ? gather(nearest(at)) : interpolate(at);
    if (mode_.coordinates != Coordinates::CropAndResize) return y;
    ValueId outside = b_.binary(Op::Or, b_.binary(Op::Lt, at, number(0)), b_.binary(Op::Gt, at, size(in_ - 1)));
    return b_.select(along(outside), b_.scalar(b_.dtype(y), mode_.extrapolation), y);
  }

 private:
  ValueId number(double v) { return b_.scalar(kReal, v); }
  ValueId size(const Dim& d) {
    if (d.is_const()) return number(static_cast<double>(d.value()));
    return b_.cast(b_.reshape(b_.shape_value({d}), {}), kReal);
  }
  ValueId add(ValueId x, ValueId y) { return b_.binary(Op::Add, x, y); }
  ValueId sub(ValueId x, ValueId y) { return b_.binary(Op::Sub, x, y); }
  ValueId mul(ValueId x, ValueId y) { return b_.binary(Op::Mul, x, y); }
  ValueId div(ValueId x, ValueId y) { return b_.binary(Op::Div, x, y); }

  // A vector over the output's positions, spread over the output.
  ValueId along(ValueId v) {
    Shape shape = b_.shape(x_);
    shape[axis_.axis] = axis_.out;
    return b_.broadcast_in(v, std::move(shape), {axis_.axis});
  }

  // x / scale. By sizes: x * in / out, which is exact where the result is an integer.
  ValueId unscaled(ValueId v) { return axis_.scale ? div(v, number(*axis_.scale)) : div(mul(v, size(in_)), size(axis_.out)); }
  // The output's length before it was rounded down.
  ValueId width() { return axis_.scale ? mul(number(*axis_.scale), size(in_)) : size(axis_.out); }

  // positions * span / (width - 1), or `single` where the width is 1.
  ValueId spread(ValueId positions, ValueId span, ValueId width, ValueId single) {
    ValueId one = b_.binary(Op::Eq, width, number(1));
    ValueId steps = b_.select(one, number(1), sub(width, number(1)));
    return b_.select(one, single, div(mul(positions, span), steps));
  }

  ValueId coordinates() {
    ValueId i = b_.iota(kReal, {axis_.out}, 0);
    ValueId half = number(0.5);
    ValueId centred = sub(unscaled(add(i, half)), half);
    switch (mode_.coordinates) {
      case Coordinates::HalfPixel: return centred;
      case Coordinates::HalfPixelForNearest: return unscaled(add(i, half));
      case Coordinates::Asymmetric: return unscaled(i);
      case Coordinates::AlignCorners: return spread(i, size(in_ - 1), width(), number(0));
      case Coordinates::PytorchHalfPixel: {
        return b_.select(b_.binary(Op::Eq, width(), number(1)), number(-0.5), centred);
      }
      case Coordinates::HalfPixelSymmetric: {
        ValueId adjustment = div(size(axis_.out), width());
        return add(centred, mul(mul(size(in_), half), sub(number(1), adjustment)));
      }
      case Coordinates::CropAndResize: {
        ValueId last = size(in_ - 1);
        ValueId span = mul(sub(axis_.roi_end, axis_.roi_start), last);
        return add(spread(i, span, size(axis_.out), mul(span, half)), mul(axis_.roi_start, last));
      }
    }
    return -1;
  }

  ValueId nearest(ValueId at) {
    switch (mode_.rule) {
      case NearestRule::RoundPreferFloor: return b_.unary(Op::Ceil, sub(at, number(0.5)));
      case NearestRule::RoundPreferCeil: return b_.unary(Op::Floor, add(at, number(0.5)));
      case NearestRule::Floor: return b_.unary(Op::Floor, at);
      case NearestRule::Ceil: return b_.unary(Op::Ceil, at);
    }
    return -1;
  }

  // x at whole positions, which are held inside the axis.
  ValueId gather(ValueId position) {
    ValueId index = b_.cast(clip(b_, position, number(0), size(in_ - 1)), DType::I64);
    return b_.gather(x_, index, axis_.axis);
  }

  ValueId interpolate(ValueId at) {
    double scale = 1;
    if (mode_.antialias) {
      std::optional<double> known = axis_.scale;
      if (!known && in_.is_const() && axis_.out.is_const() && !in_.is(0)) {
        known = static_cast<double>(axis_.out.value()) / static_cast<double>(in_.value());
      }
      if (!known) {
        b_.fail(unsupported("symbolic-antialias", "an antialiased resize by a factor that is not known"));
        return -1;
      }
      scale = std::min(*known, 1.0);
    }
    double reach = mode_.interpolation == Interpolation::Linear ? 1 : 2;
    if (!(reach / scale < kMaxTaps / 2.0)) {
      b_.fail(unsupported("many-taps", "an antialiased resize by a very small factor"));
      return -1;
    }
    int first = static_cast<int>(std::floor(-reach / scale)) + 1;
    ValueId base = b_.unary(Op::Floor, at), fraction = sub(at, base);
    std::vector<ValueId> positions, weights;
    for (int k = first; k <= 1 - first; ++k) {
      positions.push_back(add(base, number(k)));
      ValueId distance = b_.unary(Op::Abs, mul(sub(number(k), fraction), number(scale)));
      weights.push_back(weight(distance));
    }
    normalise(positions, weights);
    ValueId sum = -1;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      ValueId value = gather(positions[k]);
      ValueId term = mul(value, b_.cast(along(weights[k]), b_.dtype(value)));
      sum = sum < 0 ? term : add(sum, term);
    }
    return sum;
  }

  // The kernel at a distance of 0 or more.
  ValueId weight(ValueId d) {
    if (mode_.interpolation == Interpolation::Linear) return b_.binary(Op::Max, sub(number(1), d), number(0));
    double a = mode_.cubic_a;
    // ((c3 d + c2) d + c1) d + c0
    auto cubic = [&](double c3, double c2, double c1, double c0) {
      ValueId v = add(mul(number(c3), d), number(c2));
      v = add(mul(v, d), number(c1));
      return add(mul(v, d), number(c0));
    };
    ValueId near = cubic(a + 2, -(a + 3), 0, 1), far = cubic(a, -5 * a, 8 * a, -4 * a);
    ValueId beyond = b_.select(b_.binary(Op::Lt, d, number(2)), far, number(0));
    return b_.select(b_.binary(Op::Le, d, number(1)), near, beyond);
  }

  void normalise(const std::vector<ValueId>& positions, std::vector<ValueId>& weights) {
    if (!mode_.exclude_outside && !mode_.antialias) return;
    ValueId sum = -1;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (mode_.exclude_outside) {
        ValueId low = b_.binary(Op::Ge, positions[k], number(0));
        ValueId inside = b_.binary(Op::And, low, b_.binary(Op::Le, positions[k], size(in_ - 1)));
        weights[k] = b_.select(inside, weights[k], number(0));
      }
      sum = sum < 0 ? weights[k] : add(sum, weights[k]);
    }
    sum = b_.select(b_.binary(Op::Eq, sum, number(0)), number(1), sum);
    for (ValueId& w : weights) w = div(w, sum);
  }

  Builder& b_;
  ValueId x_;
  const ResizeAxis& axis_;
  const ResizeMode& mode_;
  Dim in_;
};

}  // namespace

ValueId resize(Builder& b, ValueId x, const std::vector<ResizeAxis>& axes, const ResizeMode& mode) {
  DType t = b.dtype(x);
  bool exact = mode.interpolation == Interpolation::Nearest;
  bool narrow = !exact && t != DType::F64;
  if (narrow) x = b.cast(x, DType::F32);
  for (const ResizeAxis& axis : axes) {
    x = AxisResize(b, x, axis, mode).run();
    if (!b.status().ok()) return -1;
  }
  if (narrow && is_int(t)) x = b.unary(Op::Round, x);
  return narrow ? b.cast(x, t) : x;
}

}  // namespace weft::ops
