// A long reduction with few results is one program of the grid, which one core runs. Here it becomes kParts partial
// ones, which the grid runs side by side, and one over those: the numbers stay the same for any number of threads. A
// dot is split along a contracted axis the same way, the parts being a batch.
#include <algorithm>

#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Builder;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;
using Axes = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t kParts = 16;
constexpr std::int64_t kFewResults = 8;                // more of them fill a grid, one program each
constexpr std::int64_t kFewProducts = 256;             // of a dot, whose programs make many each
constexpr std::int64_t kWorthwhileBytes = 512 << 10;   // read by the whole: some ten times what a launch costs

std::int64_t known_elements(const Shape& shape) {  // -1: not known
  const Dim n = product(shape);
  return n.is_const() ? n.value() : -1;
}

Axes shifted(Axes axes, std::int64_t from) {
  for (std::int64_t& a : axes) a += a >= from ? 1 : 0;
  return axes;
}

// [.., n, ..] -> [.., parts, n / parts, ..]
ValueId in_parts(Builder& b, ValueId x, std::int64_t axis, std::int64_t parts) {
  Shape shape = b.shape(x);
  shape[axis] = shape[axis].value() / parts;
  shape.insert(shape.begin() + axis, parts);
  return b.reshape(x, shape);
}

// The op's value over an axis that cannot be cut into equal parts: over the part of it that can, and the rest.
template <class Whole, class Part>
ValueId with_rest(Builder& b, std::int64_t length, GOp combine, Whole whole, Part part) {
  const std::int64_t even = length / kParts * kParts;
  const ValueId most = whole(even);
  return even == length ? most : b.binary(combine, most, part(even, length - even));
}

std::optional<GOp> combine_of(GOp reduce) {
  switch (reduce) {
    case GOp::ReduceSum: return GOp::Add;
    case GOp::ReduceProd: return GOp::Mul;
    case GOp::ReduceMax: return GOp::Max;
    case GOp::ReduceMin: return GOp::Min;
    case GOp::ReduceAnd: return GOp::And;
    case GOp::ReduceOr: return GOp::Or;
    default: return std::nullopt;
  }
}

std::optional<ValueId> split_reduce(const RewriteContext& c, GOp combine) {
  Builder& b = c.builder;
  ValueId x = c.operands[0];
  const Shape shape = b.shape(x);
  const DType dtype = b.dtype(x);
  const std::int64_t results = known_elements(c.from.type(c.node.results[0]).shape), all = known_elements(shape);
  if (results < 1 || results > kFewResults || all < 0 || all * bits(dtype) / 8 < kWorthwhileBytes) return std::nullopt;
  const Axes& axes = c.node.attrs.ints(Attr::Axes);
  // The first that is long enough: each part then reads one stretch of memory.
  const auto long_enough = std::find_if(axes.begin(), axes.end(), [&](std::int64_t a) { return shape[a].value() >= 2 * kParts; });
  if (long_enough == axes.end()) return std::nullopt;
  const std::int64_t axis = *long_enough, length = shape[axis].value();
  if (is_float(dtype) && bits(dtype) < 32) x = b.cast(x, DType::F32);  // partial sums are not rounded
  const std::int64_t place = axis - std::count_if(axes.begin(), axes.end(), [&](std::int64_t a) { return a < axis; });
  const GOp op = c.node.op;
  const ValueId y = with_rest(
      b, length, combine,
      [&](std::int64_t even) {
        const ValueId parts = in_parts(b, b.slice_axis(x, axis, 0, even), axis, kParts);
        Axes inner = shifted(axes, axis);
        return b.reduce(op, b.reduce(op, parts, std::move(inner)), {place});
      },
      [&](std::int64_t start, std::int64_t size) { return b.reduce(op, b.slice_axis(x, axis, start, size), axes); });
  return b.cast(y, dtype);
}

std::optional<ValueId> split_dot(const RewriteContext& c) {
  Builder& b = c.builder;
  const graph::Attrs& attrs = c.node.attrs;
  const Axes &lhs_axes = attrs.ints(Attr::LhsContract), &rhs_axes = attrs.ints(Attr::RhsContract);
  const std::int64_t results = known_elements(c.from.type(c.node.results[0]).shape);
  const std::int64_t lhs = known_elements(b.shape(c.operands[0])), rhs = known_elements(b.shape(c.operands[1]));
  const DType dtype = attrs.dtype(Attr::DType);
  if (lhs_axes.empty() || results < 1 || results > kFewProducts || lhs < 0 || rhs < 0) return std::nullopt;
  if ((lhs + rhs) * bits(dtype) / 8 < kWorthwhileBytes) return std::nullopt;
  std::size_t k = 0;
  const auto length_of = [&](std::size_t n) { return b.shape(c.operands[0])[lhs_axes[n]].value(); };
  for (std::size_t n = 1; n < lhs_axes.size(); ++n) k = length_of(n) > length_of(k) ? n : k;
  const std::int64_t length = length_of(k), lhs_axis = lhs_axes[k], rhs_axis = rhs_axes[k];
  if (length < 2 * kParts) return std::nullopt;
  const DType wide = is_float(dtype) && bits(dtype) < 32 ? DType::F32 : dtype;
  const Axes &lhs_batch = attrs.ints(Attr::LhsBatch), &rhs_batch = attrs.ints(Attr::RhsBatch);
  const ValueId y = with_rest(
      b, length, GOp::Add,
      [&](std::int64_t even) {
        const auto operand = [&](int n, std::int64_t axis) {
          return in_parts(b, b.slice_axis(c.operands[n], axis, 0, even), axis, kParts);
        };
        Axes left = shifted(lhs_batch, lhs_axis), right = shifted(rhs_batch, rhs_axis);
        left.push_back(lhs_axis);
        right.push_back(rhs_axis);
        const std::int64_t place = static_cast<std::int64_t>(lhs_batch.size());  // batch axes come first
        const ValueId parts = b.dot(operand(0, lhs_axis), operand(1, rhs_axis), left, right, shifted(lhs_axes, lhs_axis),
                                    shifted(rhs_axes, rhs_axis), wide);
        return b.reduce(GOp::ReduceSum, parts, {place});
      },
      [&](std::int64_t start, std::int64_t size) {
        return b.dot(b.slice_axis(c.operands[0], lhs_axis, start, size), b.slice_axis(c.operands[1], rhs_axis, start, size),
                     lhs_batch, rhs_batch, lhs_axes, rhs_axes, wide);
      });
  return b.cast(y, dtype);
}

}  // namespace

Result<Graph> split_sums(const Graph& graph, const PassOptions&) {
  return graph::Rewriter([](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           std::optional<ValueId> y;
           if (const auto combine = combine_of(c.node.op)) y = split_reduce(c, *combine);
           if (c.node.op == GOp::Dot) y = split_dot(c);
           if (!y) return std::nullopt;
           return std::vector<ValueId>{*y};
         })
      .run(graph);
}

}  // namespace weft::transform
