#include "ops/grid_sample.h"

#include "ops/activation.h"

namespace weft::ops {

using graph::Attr;
using graph::Attrs;
using graph::Op;

namespace {

using Padding = GridSampleMode::Padding;

// One cell that a position reads along one axis: index i64 (in range), weight f32 (< 0: one), inside bool (< 0: yes).
struct Tap {
  ValueId index, weight, inside;
};

class Sampler {
 public:
  Sampler(Builder& b, ValueId x, ValueId grid, const GridSampleMode& mode) : b_(b), x_(x), grid_(grid), mode_(mode) {}

  ValueId run() {
    const Shape xs = b_.shape(x_), gs = b_.shape(grid_);
    std::size_t spatial = xs.size() - 2;
    Dim cells = product(Shape(xs.begin() + 2, xs.end()));
    positions_ = product(Shape(gs.begin() + 1, gs.end() - 1));
    batch_ = gs[0];
    std::vector<std::vector<Tap>> taps;
    ValueId flat = b_.reshape(grid_, {batch_, positions_, Dim(static_cast<std::int64_t>(spatial))});
    for (std::size_t d = 0; d < spatial; ++d) {
      Dim last = static_cast<std::int64_t>(spatial - 1 - d);
      ValueId g = b_.reshape(b_.slice_axis(flat, 2, last, 1), {batch_, positions_});
      taps.push_back(taps_of(b_.cast(g, DType::F32), xs[2 + d]));
    }
    source_ = b_.reshape(x_, {xs[0], xs[1], cells});
    ValueId y = combine(taps, Shape(xs.begin() + 2, xs.end()));
    Shape result{xs[0], xs[1]};
    result.insert(result.end(), gs.begin() + 1, gs.end() - 1);
    return b_.reshape(y, result);
  }

 private:
  ValueId number(double v) { return b_.scalar(DType::F32, v); }
  ValueId size(const Dim& d) {
    if (d.is_const()) return number(static_cast<double>(d.value()));
    return b_.cast(b_.reshape(b_.shape_value({d}), {}), DType::F32);
  }
  ValueId add(ValueId x, ValueId y) { return b_.binary(Op::Add, x, y); }
  ValueId sub(ValueId x, ValueId y) { return b_.binary(Op::Sub, x, y); }
  ValueId mul(ValueId x, ValueId y) { return b_.binary(Op::Mul, x, y); }
  ValueId div(ValueId x, ValueId y) { return b_.binary(Op::Div, x, y); }
  ValueId within(ValueId v, ValueId lo, ValueId hi) {
    return b_.binary(Op::And, b_.binary(Op::Ge, v, lo), b_.binary(Op::Le, v, hi));
  }

  ValueId low() { return number(mode_.align_corners ? 0 : -0.5); }
  ValueId high(const Dim& n) { return mode_.align_corners ? size(n - 1) : sub(size(n), number(0.5)); }

  ValueId reflect(ValueId v, const Dim& n) {
    ValueId lo = low(), hi = high(n), span = sub(hi, lo);
    ValueId distance = b_.unary(Op::Abs, sub(v, lo));
    ValueId turns = b_.unary(Op::Floor, div(distance, span));
    ValueId rest = sub(distance, mul(turns, span));
    ValueId half = mul(turns, number(0.5));
    ValueId even = b_.binary(Op::Eq, half, b_.unary(Op::Floor, half));
    ValueId folded = b_.select(even, add(lo, rest), sub(hi, rest));
    return b_.select(within(v, lo, hi), v, folded);
  }

  // Where a position outside of the input counts as lying.
  ValueId moved(ValueId v, const Dim& n) {
    if (mode_.padding == Padding::Border) return clip(b_, v, number(0), size(n - 1));
    if (mode_.padding == Padding::Reflection) return reflect(v, n);
    return v;
  }

  Tap tap(ValueId position, ValueId weight, const Dim& n) {
    ValueId inside = mode_.padding == Padding::Zeros ? within(position, number(0), size(n - 1)) : -1;
    ValueId cell = clip(b_, moved(position, n), number(0), size(n - 1));
    return {b_.cast(cell, DType::I64), weight, inside};
  }

  std::vector<Tap> taps_of(ValueId g, const Dim& n) {
    ValueId one_up = add(g, number(1));
    ValueId at = mode_.align_corners ? mul(div(one_up, number(2)), size(n - 1))
                                     : div(sub(mul(one_up, size(n)), number(1)), number(2));
    if (mode_.interpolation == GridSampleMode::Interpolation::Nearest) return {tap(moved(b_.unary(Op::Round, at), n), -1, n)};
    // A cubic keeps a point outside where it is: each of its cells is moved on its own.
    bool linear = mode_.interpolation == GridSampleMode::Interpolation::Linear;
    if (linear) at = outside_moved(at, n);
    ValueId base = b_.unary(Op::Floor, at), fraction = sub(at, base);
    std::vector<Tap> taps;
    for (int k = linear ? 0 : -1; k <= (linear ? 1 : 2); ++k) {
      ValueId distance = b_.unary(Op::Abs, sub(number(k), fraction));
      taps.push_back(tap(add(base, number(k)), linear ? sub(number(1), distance) : cubic(distance), n));
    }
    return taps;
  }

  // Only what lies beyond the outermost edges moves: clamping is left to the cells.
  ValueId outside_moved(ValueId at, const Dim& n) {
    if (mode_.padding == Padding::Zeros) return at;
    return b_.select(within(at, low(), high(n)), at, moved(at, n));
  }

  // Keys' kernel with a = -0.75, at distances up to 2.
  ValueId cubic(ValueId d) {
    const double a = -0.75;
    auto polynomial = [&](double c3, double c2, double c1, double c0) {
      ValueId v = add(mul(number(c3), d), number(c2));
      v = add(mul(v, d), number(c1));
      return add(mul(v, d), number(c0));
    };
    ValueId near = polynomial(a + 2, -(a + 3), 0, 1), far = polynomial(a, -5 * a, 8 * a, -4 * a);
    return b_.select(b_.binary(Op::Le, d, number(1)), near, far);
  }

  // The sum over all combinations of taps, one per axis.
  ValueId combine(const std::vector<std::vector<Tap>>& taps, const Shape& sizes) {
    std::vector<std::size_t> choice(taps.size(), 0);
    ValueId sum = -1;
    while (true) {
      ValueId term = read(taps, choice, sizes);
      sum = sum < 0 ? term : add(sum, term);
      std::size_t d = 0;
      for (; d < choice.size(); ++d) {
        if (++choice[d] < taps[d].size()) break;
        choice[d] = 0;
      }
      if (d == choice.size()) return sum;
    }
  }

  ValueId read(const std::vector<std::vector<Tap>>& taps, const std::vector<std::size_t>& choice, const Shape& sizes) {
    ValueId index = -1, weight = -1, inside = -1;
    for (std::size_t d = 0; d < choice.size(); ++d) {
      const Tap& t = taps[d][choice[d]];
      ValueId length = b_.reshape(b_.shape_value({sizes[d]}), {});
      index = index < 0 ? t.index : add(mul(index, length), t.index);
      if (t.weight >= 0) weight = weight < 0 ? t.weight : mul(weight, t.weight);
      if (t.inside >= 0) inside = inside < 0 ? t.inside : b_.binary(Op::And, inside, t.inside);
    }
    Shape shape{batch_, b_.shape(source_)[1], positions_};
    ValueId spread = b_.broadcast_in(index, shape, {0, 2});
    ValueId value = b_.node(Op::GatherElements, {source_, spread}, Attrs().set(Attr::Axis, std::int64_t{2}));
    DType t = b_.dtype(value);
    if (inside >= 0) value = b_.select(b_.broadcast_in(inside, shape, {0, 2}), value, b_.scalar(t, 0));
    if (weight >= 0) value = mul(value, b_.cast(b_.broadcast_in(weight, shape, {0, 2}), t));
    return value;
  }

  Builder& b_;
  ValueId x_, grid_;
  const GridSampleMode& mode_;
  Dim batch_, positions_;
  ValueId source_ = -1;  // [N, C, cells]
};

}  // namespace

ValueId grid_sample(Builder& b, ValueId x, ValueId grid, const GridSampleMode& mode) {
  return composite1(b, "grid_sample", {x, grid}, [&](Builder& b, const std::vector<ValueId>& in) {
    DType t = b.dtype(in[0]);
    bool wide = mode.interpolation == GridSampleMode::Interpolation::Nearest || t == DType::F32 || t == DType::F64;
    ValueId y = Sampler(b, wide ? in[0] : b.cast(in[0], DType::F32), in[1], mode).run();
    return b.cast(y, t);
  });
}

}  // namespace weft::ops
