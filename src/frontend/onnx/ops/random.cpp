// Random operators. Each node draws from a stream of its own; the numbers depend on the seed attribute and on the
// node's place in the graph only, so that every run and every target gives the same.
#include "ops/random.h"

#include <bit>
#include <fmt/format.h>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;

ValueId key_of(NodeContext& c) {
  std::uint64_t seed = std::bit_cast<std::uint32_t>(static_cast<float>(c.real("seed", 0)));
  // With a seed of its own a node does not depend on where it stands.
  std::uint64_t stream = c.has_attr("seed") ? 0 : c.b.graph().nodes().size() + 1;
  return ops::random_key(c.b, seed, stream);
}

Result<DType> result_type(NodeContext& c, DType fallback) {
  if (!c.has_attr("dtype")) return fallback;
  auto t = dtype_from_onnx(c.integer("dtype", 1));
  if (!t) return c.bad("unknown element type");
  return *t;
}

Result<void> give(NodeContext& c, Shape shape, DType t, bool normal) {
  if (!is_float(t)) return c.bad("the result must be a float");
  ValueId key = key_of(c);
  ValueId x = normal ? ops::random_normal(c.b, key, shape) : ops::random_uniform(c.b, key, shape);
  double from = normal ? c.real("mean", 0) : c.real("low", 0);
  double by = normal ? c.real("scale", 1) : c.real("high", 1) - from;
  x = c.b.binary(Op::Add, c.b.binary(Op::Mul, x, c.b.scalar(DType::F32, by)), c.b.scalar(DType::F32, from));
  c.out(0, c.b.cast(x, t));
  return {};
}

template <bool normal>
Result<void> random(NodeContext& c) {
  Shape shape;
  for (std::int64_t d : c.integers("shape")) {
    if (d < 0) return c.bad("a size is negative");
    shape.push_back(d);
  }
  return give(c, shape, WEFT_TRY(result_type(c, DType::F32)), normal);
}

template <bool normal>
Result<void> random_like(NodeContext& c) {
  return give(c, c.shape(0), WEFT_TRY(result_type(c, is_float(c.dtype(0)) ? c.dtype(0) : DType::F32)), normal);
}

Result<void> bernoulli(NodeContext& c) {
  DType t = WEFT_TRY(result_type(c, c.dtype(0)));
  ValueId u = ops::random_uniform(c.b, key_of(c), c.shape(0));
  c.out(0, c.b.cast(c.b.binary(Op::Lt, u, c.b.cast(c.in(0), DType::F32)), t));
  return {};
}

constexpr OpEntry kRandomOps[] = {
    {"RandomNormal", 1, kOpsetMax, 0, 0, "dtype mean scale seed shape", random<true>},
    {"RandomNormalLike", 1, kOpsetMax, 1, 1, "dtype mean scale seed", random_like<true>},
    {"RandomUniform", 1, kOpsetMax, 0, 0, "dtype high low seed shape", random<false>},
    {"RandomUniformLike", 1, kOpsetMax, 1, 1, "dtype high low seed", random_like<false>},
    {"Bernoulli", 15, kOpsetMax, 1, 1, "dtype seed", bernoulli},
};

}  // namespace

OpTable random_ops() { return {kRandomOps, std::size(kRandomOps)}; }

}  // namespace weft::onnx
