#include "ops/norm.h"

namespace weft::ops {

using graph::Op;

namespace {

// The number of elements reduced, as a scalar of dtype t.
ValueId count(Builder& b, ValueId x, const std::vector<std::int64_t>& axes, DType t) {
  Dim n = 1;
  for (std::int64_t a : axes) n = n * b.shape(x)[a];
  if (n.is_const()) return b.scalar(t, static_cast<double>(n.value()));
  return b.cast(b.reshape(b.shape_value({n}), {}), t);
}

}  // namespace

ValueId mean(Builder& b, ValueId x, std::vector<std::int64_t> axes, bool keepdims) {
  // The sum of narrow floats may overflow where their mean does not.
  DType t = b.dtype(x), wide = is_float(t) && bits(t) < 32 ? DType::F32 : t;
  ValueId sum = b.reduce(Op::ReduceSum, b.cast(x, wide), axes, keepdims);
  return b.cast(b.binary(Op::Div, sum, count(b, x, axes, wide)), t);
}

ValueId softmax(Builder& b, ValueId x, std::vector<std::int64_t> axes) {
  return composite1(b, "softmax", {x}, [&](Builder& b, const std::vector<ValueId>& in) {
    ValueId shifted = b.binary(Op::Sub, in[0], b.reduce(Op::ReduceMax, in[0], axes, true));
    ValueId e = b.unary(Op::Exp, shifted);
    return b.binary(Op::Div, e, b.reduce(Op::ReduceSum, e, axes, true));
  });
}

ValueId log_softmax(Builder& b, ValueId x, std::vector<std::int64_t> axes) {
  return composite1(b, "log_softmax", {x}, [&](Builder& b, const std::vector<ValueId>& in) {
    ValueId shifted = b.binary(Op::Sub, in[0], b.reduce(Op::ReduceMax, in[0], axes, true));
    ValueId sum = b.reduce(Op::ReduceSum, b.unary(Op::Exp, shifted), axes, true);
    return b.binary(Op::Sub, shifted, b.unary(Op::Log, sum));
  });
}

Normalized normalize(Builder& b, ValueId x, std::vector<std::int64_t> axes, double epsilon, DType compute) {
  auto results = composite(b, "normalize", {x}, [&](Builder& b, const std::vector<ValueId>& in) {
    ValueId wide = b.cast(in[0], compute);
    ValueId m = mean(b, wide, axes, true);
    ValueId d = b.binary(Op::Sub, wide, m);
    ValueId variance = mean(b, b.binary(Op::Mul, d, d), axes, true);
    ValueId deviation = b.unary(Op::Sqrt, b.binary(Op::Add, variance, b.scalar(compute, epsilon)));
    ValueId inverse = b.unary(Op::Reciprocal, deviation);
    return std::vector<ValueId>{b.cast(b.binary(Op::Div, d, deviation), b.dtype(in[0])), m, inverse};
  });
  if (results.size() != 3) return {-1, -1, -1};
  return {results[0], results[1], results[2]};
}

ValueId rms_normalize(Builder& b, ValueId x, std::vector<std::int64_t> axes, double epsilon, DType compute) {
  return composite1(b, "rms_normalize", {x}, [&](Builder& b, const std::vector<ValueId>& in) {
    ValueId wide = b.cast(in[0], compute);
    ValueId square = mean(b, b.binary(Op::Mul, wide, wide), axes, true);
    ValueId deviation = b.unary(Op::Sqrt, b.binary(Op::Add, square, b.scalar(compute, epsilon)));
    return b.cast(b.binary(Op::Div, wide, deviation), b.dtype(in[0]));
  });
}

}  // namespace weft::ops
