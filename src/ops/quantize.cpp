#include "ops/quantize.h"

#include <numeric>

namespace weft::ops {

using graph::Op;

ValueId to_integers(Builder& b, ValueId x, ValueId zero_point, DType to) {
  DType wide = b.dtype(x) == DType::F64 ? DType::F64 : DType::F32;
  ValueId y = b.cast(b.unary(Op::Round, x), wide);
  if (zero_point >= 0) y = b.binary(Op::Add, y, b.cast(zero_point, wide));
  return b.cast(y, to);
}

Quantized quantize_dynamically(Builder& b, ValueId x) {
  const DType t = b.dtype(x);
  ValueId zero = b.scalar(t, 0);
  std::vector<std::int64_t> axes(b.shape(x).size());
  std::iota(axes.begin(), axes.end(), 0);
  ValueId high = b.binary(Op::Max, b.reduce(Op::ReduceMax, x, axes), zero);
  ValueId low = b.binary(Op::Min, b.reduce(Op::ReduceMin, x, axes), zero);
  ValueId span = b.binary(Op::Sub, high, low);
  span = b.select(b.binary(Op::Eq, span, zero), b.scalar(t, 1), span);
  ValueId scale = b.binary(Op::Div, span, b.scalar(t, 255));
  ValueId zero_point = to_integers(b, b.unary(Op::Neg, b.binary(Op::Div, low, scale)), -1, DType::U8);
  return {to_integers(b, b.binary(Op::Div, x, scale), zero_point, DType::U8), scale, zero_point};
}

}  // namespace weft::ops
