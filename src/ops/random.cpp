#include "ops/random.h"

#include <cmath>

namespace weft::ops {

using graph::Attr;
using graph::Attrs;
using graph::Op;

ValueId random_key(Builder& b, std::uint64_t seed, std::uint64_t stream) {
  auto key = Tensor::zeros(DType::U64, {2});
  if (!key.ok()) {
    b.fail(key.error());
    return -1;
  }
  key->set_i64(0, static_cast<std::int64_t>(seed));
  key->set_i64(1, static_cast<std::int64_t>(stream));
  return b.constant(std::move(key).value());
}

ValueId random_uniform(Builder& b, ValueId key, Shape shape) {
  Attrs attrs;
  attrs.set(Attr::DType, DType::U32).set(Attr::Shape, shape);
  ValueId bits = b.node(Op::RandomBits, {key}, std::move(attrs));
  ValueId high = b.binary(Op::Shr, bits, b.scalar(DType::U32, 8));
  return b.binary(Op::Mul, b.cast(high, DType::F32), b.scalar(DType::F32, std::ldexp(1.0, -24)));
}

// Box and Muller: sqrt(-2 ln(1 - u)) cos(2 pi v), u and v being the two halves of one draw.
ValueId random_normal(Builder& b, ValueId key, Shape shape) {
  Shape pairs = shape;
  pairs.insert(pairs.begin(), Dim(2));
  ValueId both = random_uniform(b, key, pairs);
  ValueId u = b.reshape(b.slice_axis(both, 0, 0, 1), shape), v = b.reshape(b.slice_axis(both, 0, 1, 1), shape);
  ValueId log = b.unary(Op::Log, b.binary(Op::Sub, b.scalar(DType::F32, 1), u));
  ValueId radius = b.unary(Op::Sqrt, b.binary(Op::Mul, log, b.scalar(DType::F32, -2)));
  ValueId angle = b.binary(Op::Mul, v, b.scalar(DType::F32, 2 * M_PI));
  return b.binary(Op::Mul, radius, b.unary(Op::Cos, angle));
}

}  // namespace weft::ops
