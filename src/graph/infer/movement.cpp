#include <fmt/format.h>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Result<Types> infer_reshape(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& shape = in.attrs.dims(Attr::Shape);
  const Dim before = product(x.shape), after = product(shape);
  // Counts that only may be equal are accepted: the model says that they are.
  if (!in.facts.known_equal(before, after) && known_different(in.facts, before, after)) {
    return shape_error(
        in, fmt::format("{} and {} hold different numbers of elements", str(x.shape), str(shape)),
        before.str(), after.str());
  }
  return Types{{x.dtype, shape}};
}

Result<Types> infer_transpose(const InferInput& in) {
  const Type& x = in.operands[0];
  const auto& axes = in.attrs.ints(Attr::Axes);
  WEFT_TRY(expect_count(in, Attr::Axes, axes.size(), x.shape.size()));
  WEFT_TRY(expect_axes(in, axes, x.rank()));
  Type result{x.dtype, {}};
  for (std::int64_t axis : axes) result.shape.push_back(x.shape[axis]);
  return Types{result};
}

Result<Types> infer_broadcast(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& shape = in.attrs.dims(Attr::Shape);
  const auto& axes = in.attrs.ints(Attr::Axes);
  WEFT_TRY(expect_count(in, Attr::Axes, axes.size(), x.shape.size()));
  WEFT_TRY(expect_increasing(in, axes, static_cast<int>(shape.size())));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (x.shape[i].is(1)) continue;
    WEFT_TRY(expect_equal(in,
                          fmt::format("axis {} of {} does not broadcast to axis {} of {}", i,
                                      str(x.shape), axes[i], str(shape)),
                          shape[axes[i]], x.shape[i]));
  }
  return Types{{x.dtype, shape}};
}

// start and the last index lie in 0..size-1 unless nothing is taken; only what is known to be
// outside is refused.
Result<void> check_slice_axis(const InferInput& in, std::size_t axis, const Dim& size,
                              const Dim& start, const Dim& count, std::int64_t step) {
  if (!in.facts.known_less_equal(1, count)) return {};
  const Dim last = start + (count - 1) * step;
  for (const Dim& index : {start, last}) {
    if (in.facts.known_less(index, 0) || in.facts.known_less_equal(size, index)) {
      return infer_error(in, "slice-out-of-range",
                         fmt::format("index {} is outside of axis {}", index.str(), axis))
          .expected(fmt::format("0 <= index < {}", size.str()))
          .found(index.str());
    }
  }
  return {};
}

Result<Types> infer_slice(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& starts = in.attrs.dims(Attr::Starts);
  const Shape& sizes = in.attrs.dims(Attr::Sizes);
  const auto& steps = in.attrs.ints(Attr::Steps);
  WEFT_TRY(expect_count(in, Attr::Starts, starts.size(), x.shape.size()));
  WEFT_TRY(expect_count(in, Attr::Sizes, sizes.size(), x.shape.size()));
  WEFT_TRY(expect_count(in, Attr::Steps, steps.size(), x.shape.size()));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 0) return infer_error(in, "bad-attribute", "a step is 0");
    WEFT_TRY(check_slice_axis(in, i, x.shape[i], starts[i], sizes[i], steps[i]));
  }
  return Types{{x.dtype, sizes}};
}

Result<void> check_pad_axis(const InferInput& in, const std::string& mode, const Dim& size,
                            const Dim& pad) {
  if (known_negative(in.facts, pad)) {
    return infer_error(in, "bad-attribute", "padding is negative")
        .expected(">= 0")
        .found(pad.str());
  }
  const Dim limit = mode == "reflect" ? size - 1 : size;
  if (mode == "reflect" && in.facts.known_less(limit, pad) && in.facts.known_less(0, pad)) {
    return infer_error(in, "bad-attribute", mode + " padding is longer than the axis can give")
        .expected("<= " + limit.str())
        .found(pad.str());
  }
  if (mode != "constant" && in.facts.known_equal(size, 0) && in.facts.known_less(0, pad)) {
    return infer_error(in, "bad-attribute", mode + " padding of an empty axis");
  }
  return {};
}

Result<Types> infer_pad(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& lo = in.attrs.dims(Attr::Lo);
  const Shape& hi = in.attrs.dims(Attr::Hi);
  const std::string& mode = in.attrs.str(Attr::Mode);
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return infer_error(in, "bad-attribute", "unknown mode")
        .expected("constant, reflect, edge or wrap")
        .found(mode);
  }
  WEFT_TRY(expect_rank(in, 1, 0));
  WEFT_TRY(expect_count(in, Attr::Lo, lo.size(), x.shape.size()));
  WEFT_TRY(expect_count(in, Attr::Hi, hi.size(), x.shape.size()));
  Type result{x.dtype, {}};
  for (std::size_t i = 0; i < lo.size(); ++i) {
    WEFT_TRY(check_pad_axis(in, mode, x.shape[i], lo[i]));
    WEFT_TRY(check_pad_axis(in, mode, x.shape[i], hi[i]));
    result.shape.push_back(in.facts.simplify(x.shape[i] + lo[i] + hi[i]));
  }
  return Types{result};
}

Result<Types> infer_concat(const InferInput& in) {
  Type result = in.operands[0];
  const std::int64_t axis = WEFT_TRY(axis_attr(in, result.rank()));
  Dim sum = result.shape[axis];
  for (std::size_t i = 1; i < in.operands.size(); ++i) {
    const Type& x = in.operands[i];
    WEFT_TRY(expect_rank(in, static_cast<int>(i), result.rank()));
    for (int d = 0; d < result.rank(); ++d) {
      if (d == axis) continue;
      WEFT_TRY(expect_equal(
          in, fmt::format("axis {} of operand {} must have the size of operand 0's", d, i),
          result.shape[d], x.shape[d]));
    }
    sum = sum + x.shape[axis];
  }
  result.shape[axis] = in.facts.simplify(sum);
  return Types{result};
}

Result<Types> infer_reverse(const InferInput& in) {
  WEFT_TRY(expect_increasing(in, in.attrs.ints(Attr::Axes), in.operands[0].rank()));
  return Types{in.operands[0]};
}

}  // namespace

Result<Types> infer_movement(const InferInput& in) {
  switch (in.op) {
    case Op::Reshape:
      return infer_reshape(in);
    case Op::Transpose:
      return infer_transpose(in);
    case Op::Broadcast:
      return infer_broadcast(in);
    case Op::Slice:
      return infer_slice(in);
    case Op::Pad:
      return infer_pad(in);
    case Op::Concat:
      return infer_concat(in);
    case Op::Reverse:
      return infer_reverse(in);
    default:
      return internal_error("a movement op without inference");
  }
}

}  // namespace weft::graph
