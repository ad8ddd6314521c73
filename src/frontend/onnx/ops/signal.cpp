// Windows, DFT and STFT. A transform is a product with a matrix of cosines and sines, which is a constant when the
// length is known.
#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;

ValueId real(NodeContext& c, const Dim& d) {
  if (d.is_const()) return c.b.scalar(DType::F64, static_cast<double>(d.value()));
  return c.b.cast(c.b.reshape(c.b.shape_value({d}), {}), DType::F64);
}

// a - b cos(2 pi i / n) + d cos(4 pi i / n), n being the size, or one less when not periodic.
Result<void> window(NodeContext& c, double a, double b, double d) {
  Shape size = WEFT_TRY(c.dims_or_bind(0, "size"));
  if (size.size() != 1) return c.bad("size must have one element");
  auto t = dtype_from_onnx(c.integer("output_datatype", 1));
  if (!t) return c.bad("unknown element type");
  Dim n = c.integer("periodic", 1) != 0 ? size[0] : size[0] - 1;
  auto number = [&](double v) { return c.b.scalar(DType::F64, v); };
  ValueId turn = c.b.binary(Op::Mul, c.b.iota(DType::F64, size, 0), number(2 * M_PI));
  turn = c.b.binary(Op::Div, turn, c.b.binary(Op::Max, real(c, n), number(1)));
  auto term = [&](double factor, double times) {
    return c.b.binary(Op::Mul, c.b.unary(Op::Cos, c.b.binary(Op::Mul, turn, number(times))), number(factor));
  };
  ValueId y = c.b.binary(Op::Add, number(a), term(-b, 1));
  if (d != 0) y = c.b.binary(Op::Add, y, term(d, 2));
  c.out(0, c.b.cast(y, *t));
  return {};
}

Result<void> hann(NodeContext& c) { return window(c, 0.5, 0.5, 0); }
Result<void> hamming(NodeContext& c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
Result<void> blackman(NodeContext& c) { return window(c, 0.42, 0.5, 0.08); }

struct Complex {
  ValueId re, im;  // im < 0: zero
};

// cos and sin of 2 pi j k / length, [rows, columns]; the product is taken modulo the length, which keeps it exact.
Complex rotations(NodeContext& c, std::int64_t rows, std::int64_t columns, std::int64_t length, DType t) {
  Shape shape{Dim(rows), Dim(columns)};
  ValueId jk = c.b.binary(Op::Mul, c.b.iota(DType::I64, shape, 0), c.b.iota(DType::I64, shape, 1));
  jk = c.b.binary(Op::Mod, jk, c.b.scalar(DType::I64, static_cast<double>(length)));
  ValueId step = c.b.scalar(DType::F64, 2 * M_PI / static_cast<double>(length));
  ValueId angle = c.b.binary(Op::Mul, c.b.cast(jk, DType::F64), step);
  return {c.b.cast(c.b.unary(Op::Cos, angle), t), c.b.cast(c.b.unary(Op::Sin, angle), t)};
}

// The last axis, cut or padded with zeros to n.
ValueId fitted(NodeContext& c, ValueId x, std::int64_t n) {
  if (x < 0) return x;
  const Shape s = c.b.shape(x);
  std::int64_t last = static_cast<std::int64_t>(s.size()) - 1;
  std::int64_t have = s[last].value();
  if (have > n) return c.b.slice_axis(x, last, 0, n);
  Shape lo(s.size(), Dim(0)), hi(s.size(), Dim(0));
  hi[last] = n - have;
  return c.b.pad(x, lo, hi, c.b.scalar(c.b.dtype(x), 0));
}

struct Transform {
  std::int64_t length;
  bool inverse, onesided;
};

// Over the last axis of both parts.
Complex transformed(NodeContext& c, Complex x, const Transform& f) {
  DType t = c.b.dtype(x.re);
  std::int64_t half = f.length / 2 + 1;
  bool to_real = f.inverse && f.onesided;
  std::int64_t rows = to_real ? half : f.length, columns = f.onesided && !f.inverse ? half : f.length;
  x = {fitted(c, x.re, rows), fitted(c, x.im, rows)};
  Complex w = rotations(c, rows, columns, f.length, t);
  auto times = [&](ValueId v, ValueId m) { return v < 0 ? -1 : c.b.matmul(v, m); };
  auto joined = [&](Op op, ValueId a, ValueId b) { return b < 0 ? a : c.b.binary(op, a, b); };
  if (to_real) {
    // All but the first and (of an even length) the last frequency stand for two.
    auto weights = Tensor::zeros(DType::F64, {rows, 1});
    if (!weights.ok()) return {-1, -1};
    for (std::int64_t j = 0; j < rows; ++j) weights->set_f64(j, j == 0 || 2 * j == f.length ? 1 : 2);
    ValueId twice = c.b.cast(c.b.constant(std::move(weights).value()), t);
    w = {c.b.binary(Op::Mul, w.re, twice), c.b.binary(Op::Mul, w.im, twice)};
  }
  ValueId rr = times(x.re, w.re), ri = times(x.re, w.im), ir = times(x.im, w.re), ii = times(x.im, w.im);
  // Forward: (re + i im)(cos - i sin); inverse: (re + i im)(cos + i sin) / length.
  Complex y{joined(f.inverse ? Op::Sub : Op::Add, rr, ii), -1};
  if (!to_real) y.im = joined(Op::Add, f.inverse ? ri : c.b.unary(Op::Neg, ri), ir);
  if (f.inverse) {
    ValueId n = c.b.scalar(t, static_cast<double>(f.length));
    y.re = c.b.binary(Op::Div, y.re, n);
    if (y.im >= 0) y.im = c.b.binary(Op::Div, y.im, n);
  }
  return y;
}

// [..., axis, ..., 1 or 2] with the axis moved last, as parts.
Result<Complex> parts_of(NodeContext& c, ValueId x, std::int64_t axis) {
  const Shape s = c.b.shape(x);
  std::int64_t rank = static_cast<std::int64_t>(s.size());
  if (!s[rank - 1].is(1) && !s[rank - 1].is(2)) return c.bad("the last axis must hold 1 or 2 parts").found(s[rank - 1].str());
  if (!s[axis].is_const()) return c.missing("a transform over a symbolic size");
  std::vector<std::int64_t> order;
  for (std::int64_t d = 0; d < rank - 1; ++d) {
    if (d != axis) order.push_back(d);
  }
  order.push_back(axis);
  auto part = [&](std::int64_t k) {
    Shape shape(s.begin(), s.end() - 1);
    return c.b.transpose(c.b.reshape(c.b.slice_axis(x, rank - 1, k, 1), shape), order);
  };
  return Complex{part(0), s[rank - 1].is(2) ? part(1) : -1};
}

// The last axis moved back, and the parts joined on an axis at the end.
ValueId joined_parts(NodeContext& c, const Complex& y, std::int64_t axis) {
  std::int64_t rank = c.b.type(y.re).rank();
  std::vector<std::int64_t> order;
  for (std::int64_t d = 0; d < rank; ++d) order.push_back(d < axis ? d : d == axis ? rank - 1 : d - 1);
  auto column = [&](ValueId v) {
    v = c.b.transpose(v, order);
    Shape shape = c.b.shape(v);
    shape.push_back(1);
    return c.b.reshape(v, shape);
  };
  if (y.im < 0) return column(y.re);
  return c.b.concat({column(y.re), column(y.im)}, rank);
}

Result<std::int64_t> length_operand(NodeContext& c, int i, const char* what) {
  std::vector<std::int64_t> v = WEFT_TRY(c.ints(i, what));
  if (v.size() != 1) return c.bad(fmt::format("{} must have one element", what));
  return v[0];
}

Result<void> dft(NodeContext& c) {
  int rank = c.rank(0);
  if (rank < 2) return c.bad("the input must have rank 2 or more");
  std::int64_t axis = c.opset() < 20 ? c.integer("axis", 1) : c.has(2) ? WEFT_TRY(length_operand(c, 2, "axis")) : -2;
  axis = WEFT_TRY(c.axis(axis, rank));
  if (axis == rank - 1) return c.bad("the last axis holds the parts of a number");
  Complex x = WEFT_TRY(parts_of(c, c.in(0), axis));
  Transform f{c.shape(0)[axis].value(), c.integer("inverse", 0) != 0, c.integer("onesided", 0) != 0};
  if (f.inverse && f.onesided) f.length = 2 * (f.length - 1);
  if (c.has(1)) f.length = WEFT_TRY(length_operand(c, 1, "dft_length"));
  if (f.length < 1 || f.length > 1 << 20) return c.bad("the length must be at least 1").found(std::to_string(f.length));
  c.out(0, joined_parts(c, transformed(c, x, f), axis));
  return {};
}

// Frames of the signal, each times the window, transformed over their samples.
Result<void> stft(NodeContext& c) {
  const Shape s = c.shape(0);
  if (s.size() != 3) return c.bad("the signal must be [batch, length, 1 or 2]");
  std::int64_t step = WEFT_TRY(length_operand(c, 1, "frame_step"));
  Dim frame = c.has(2) ? c.shape(2)[0] : s[1];
  if (c.has(3)) frame = WEFT_TRY(length_operand(c, 3, "frame_length"));
  if (step < 1 || !frame.is_const() || frame.value() < 1) return c.bad("frame_step and frame_length must be known, and at least 1");
  Dim frames = c.b.graph().facts.simplify(floor_div(s[1] - frame, Dim(step)) + 1);
  Shape grid{frames, frame};
  ValueId start = c.b.binary(Op::Mul, c.b.iota(DType::I64, grid, 0), c.b.scalar(DType::I64, static_cast<double>(step)));
  ValueId x = c.b.gather(c.in(0), c.b.binary(Op::Add, start, c.b.iota(DType::I64, grid, 1)), 1);
  if (c.has(2)) x = c.b.binary(Op::Mul, x, c.b.broadcast_in(c.in(2), c.b.shape(x), {2}));
  Complex parts = WEFT_TRY(parts_of(c, x, 2));
  c.out(0, joined_parts(c, transformed(c, parts, {frame.value(), false, c.integer("onesided", 1) != 0}), 2));
  return {};
}

constexpr OpEntry kSignalOps[] = {
    {"HannWindow", 17, kOpsetMax, 1, 1, "output_datatype periodic", hann},
    {"HammingWindow", 17, kOpsetMax, 1, 1, "output_datatype periodic", hamming},
    {"BlackmanWindow", 17, kOpsetMax, 1, 1, "output_datatype periodic", blackman},
    {"DFT", 17, 19, 1, 2, "axis inverse onesided", dft},
    {"DFT", 20, kOpsetMax, 1, 3, "inverse onesided", dft},
    {"STFT", 17, kOpsetMax, 2, 4, "onesided", stft},
};

}  // namespace

OpTable signal_ops() { return {kSignalOps, std::size(kSignalOps)}; }

}  // namespace weft::onnx
