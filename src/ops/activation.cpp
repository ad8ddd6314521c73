#include "ops/activation.h"

#include <cmath>

namespace weft::ops {

using graph::Op;

ValueId relu(Builder& b, ValueId x) { return b.binary(Op::Max, x, b.scalar(b.dtype(x), 0)); }

ValueId leaky_relu(Builder& b, ValueId x, double slope) {
  DType t = b.dtype(x);
  ValueId negative = b.binary(Op::Lt, x, b.scalar(t, 0));
  return b.select(negative, b.binary(Op::Mul, x, b.scalar(t, slope)), x);
}

ValueId clip(Builder& b, ValueId x, ValueId lo, ValueId hi) {
  if (lo >= 0) x = b.binary(Op::Max, x, lo);
  if (hi >= 0) x = b.binary(Op::Min, x, hi);
  return x;
}

ValueId hard_sigmoid(Builder& b, ValueId x, double alpha, double beta) {
  DType t = b.dtype(x);
  ValueId y = b.binary(Op::Add, b.binary(Op::Mul, x, b.scalar(t, alpha)), b.scalar(t, beta));
  return clip(b, y, b.scalar(t, 0), b.scalar(t, 1));
}

ValueId gelu(Builder& b, ValueId x, bool tanh_form) {
  return composite1(b, "gelu", {x}, [&](Builder& b, const std::vector<ValueId>& in) {
    ValueId x = in[0];
    DType t = b.dtype(x);
    ValueId half = b.binary(Op::Mul, x, b.scalar(t, 0.5));
    ValueId inner;
    if (tanh_form) {
      ValueId cube = b.binary(Op::Mul, b.binary(Op::Mul, x, x), x);
      inner = b.binary(Op::Add, x, b.binary(Op::Mul, cube, b.scalar(t, 0.044715)));
      inner = b.unary(Op::Tanh, b.binary(Op::Mul, inner, b.scalar(t, std::sqrt(2.0 / M_PI))));
    } else {
      inner = b.unary(Op::Erf, b.binary(Op::Mul, x, b.scalar(t, std::sqrt(0.5))));
    }
    return b.binary(Op::Mul, half, b.binary(Op::Add, inner, b.scalar(t, 1)));
  });
}

ValueId silu(Builder& b, ValueId x) { return b.binary(Op::Mul, x, b.unary(Op::Sigmoid, x)); }

ValueId softplus(Builder& b, ValueId x) {
  // max(x, 0) + log1p(exp(-|x|))
  ValueId tail = b.unary(Op::Log1p, b.unary(Op::Exp, b.unary(Op::Neg, b.unary(Op::Abs, x))));
  return b.binary(Op::Add, relu(b, x), tail);
}

ValueId elu(Builder& b, ValueId x, double alpha) {
  DType t = b.dtype(x);
  ValueId negative = b.binary(Op::Lt, x, b.scalar(t, 0));
  return b.select(negative, b.binary(Op::Mul, b.unary(Op::Expm1, x), b.scalar(t, alpha)), x);
}

}  // namespace weft::ops
