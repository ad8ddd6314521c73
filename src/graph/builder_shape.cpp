// The builder's broadcasting and movement helpers.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/builder.h"
#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

using Axes = std::vector<std::int64_t>;

void count_from_front(Axes& axes, int rank) {
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
}

Axes iota_axes(std::int64_t first, std::size_t count) {
  Axes axes(count);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// The common size of two sizes, neither of which is 1. Sizes that may be equal are taken to be: the reshape that
// assert_sizes() puts in is checked when the sizes are known.
Result<Dim> common_size(const DimFacts& facts, const Dim& a, const Dim& b) {
  if (known_different(facts, a, b)) {
    return user_error("shape-mismatch", "the sizes of an axis do not broadcast").expected(a.str()).found(b.str());
  }
  return b.is_const() ? b : a;
}

}  // namespace

Result<Shape> Builder::broadcast_shapes(const std::vector<Shape>& shapes) const {
  Shape common;
  for (const Shape& s : shapes) {
    if (s.size() > common.size()) common.insert(common.begin(), s.size() - common.size(), Dim(1));
    const std::size_t offset = common.size() - s.size();
    for (std::size_t i = 0; i < s.size(); ++i) {
      Dim& size = common[offset + i];
      if (s[i].is(1)) continue;
      size = size.is(1) ? s[i] : WEFT_TRY(common_size(graph_.facts, size, s[i]));
    }
  }
  return common;
}

// One axis at a time, so that equal element counts mean equal sizes: [a, b] claimed to be [b, a] must not pass.
ValueId Builder::assert_shape(ValueId x, const Shape& target) {
  const int rank = static_cast<int>(target.size());
  for (int axis = 0; x >= 0 && type(x).rank() == rank && axis < rank; ++axis) {
    Shape sizes = shape(x);
    if (graph_.facts.known_equal(sizes[axis], target[axis]) || known_different(graph_.facts, sizes[axis], target[axis])) continue;
    sizes[axis] = target[axis];
    x = reshape(x, std::move(sizes));
  }
  return x;
}

// x with its sizes replaced by those that they must equal for x to broadcast to `shape`.
ValueId Builder::assert_sizes(ValueId x, const Shape& target) {
  Shape sizes = shape(x);
  const std::size_t offset = target.size() - sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is(1)) sizes[i] = target[offset + i];
  }
  return assert_shape(x, sizes);
}

// The same for one axis of x, whatever its size.
ValueId Builder::assert_size(ValueId x, std::size_t axis, const Dim& size) {
  if (x < 0 || axis >= shape(x).size()) return x;
  Shape sizes = shape(x);
  sizes[axis] = size;
  return assert_shape(x, sizes);
}

ValueId Builder::broadcast_to(ValueId x, Shape target) {
  if (x < 0) return node(Op::Broadcast, {x});
  if (target.size() < shape(x).size()) {
    fail(user_error("rank-mismatch", "a value broadcasts to a shape of lower rank")
             .expected(str(target))
             .found(str(shape(x))));
    return kInvalid;
  }
  x = assert_sizes(x, target);
  const std::size_t rank = shape(x).size();
  Axes axes = iota_axes(static_cast<std::int64_t>(target.size() - rank), rank);
  return broadcast_in(x, std::move(target), std::move(axes));
}

ValueId Builder::broadcast_in(ValueId x, Shape target, Axes axes) {
  count_from_front(axes, static_cast<int>(target.size()));
  if (x >= 0 && known_equal(graph_.facts, shape(x), target)) return x;
  return node(Op::Broadcast, {x},
              Attrs().set(Attr::Shape, std::move(target)).set(Attr::Axes, std::move(axes)));
}

ValueId Builder::reshape(ValueId x, Shape target) {
  if (x >= 0 && known_equal(graph_.facts, shape(x), target)) return x;
  return node(Op::Reshape, {x}, Attrs().set(Attr::Shape, std::move(target)));
}

ValueId Builder::transpose(ValueId x, Axes axes) {
  const std::size_t rank = shape(x).size();
  count_from_front(axes, static_cast<int>(rank));
  if (x >= 0 && axes == iota_axes(0, rank)) return x;
  return node(Op::Transpose, {x}, Attrs().set(Attr::Axes, std::move(axes)));
}

ValueId Builder::slice(ValueId x, Shape starts, Shape sizes, Axes steps) {
  const bool whole =
      std::all_of(starts.begin(), starts.end(), [](const Dim& d) { return d.is(0); }) &&
      std::all_of(steps.begin(), steps.end(), [](std::int64_t s) { return s == 1; });
  if (x >= 0 && whole && known_equal(graph_.facts, shape(x), sizes)) return x;
  return node(Op::Slice, {x},
              Attrs()
                  .set(Attr::Starts, std::move(starts))
                  .set(Attr::Sizes, std::move(sizes))
                  .set(Attr::Steps, std::move(steps)));
}

ValueId Builder::slice_axis(ValueId x, std::int64_t axis, Dim start, Dim size, std::int64_t step) {
  const auto rank = static_cast<std::int64_t>(shape(x).size());
  if (axis < 0) axis += rank;
  if (x < 0 || axis < 0 || axis >= rank) {
    fail(user_error("bad-axis", fmt::format("axis {} of a value of rank {}", axis, rank)));
    return kInvalid;
  }
  Shape starts(rank, Dim(0)), sizes = shape(x);
  Axes steps(rank, 1);
  starts[axis] = std::move(start);
  sizes[axis] = std::move(size);
  steps[axis] = step;
  return slice(x, std::move(starts), std::move(sizes), std::move(steps));
}

ValueId Builder::pad(ValueId x, Shape lo, Shape hi, ValueId value) {
  const auto zero = [](const Dim& d) { return d.is(0); };
  if (x >= 0 && lo.size() == shape(x).size() && hi.size() == lo.size() &&
      std::all_of(lo.begin(), lo.end(), zero) && std::all_of(hi.begin(), hi.end(), zero)) {
    return x;
  }
  return node(Op::Pad, {x, value},
              Attrs()
                  .set(Attr::Lo, std::move(lo))
                  .set(Attr::Hi, std::move(hi))
                  .set(Attr::Mode, std::string("constant")));
}

ValueId Builder::concat(std::vector<ValueId> xs, std::int64_t axis) {
  if (xs.size() == 1) return xs[0];
  if (axis < 0 && !xs.empty()) axis += static_cast<std::int64_t>(shape(xs[0]).size());
  for (std::size_t d = 0; !xs.empty() && xs[0] >= 0 && d < shape(xs[0]).size(); ++d) {
    if (static_cast<std::int64_t>(d) == axis) continue;
    Dim common = shape(xs[0])[d];
    for (ValueId x : xs) {
      if (x >= 0 && d < shape(x).size() && shape(x)[d].is_const()) common = shape(x)[d];
    }
    for (ValueId& x : xs) x = assert_size(x, d, common);
  }
  return node(Op::Concat, std::move(xs), Attrs().set(Attr::Axis, axis));
}

ValueId Builder::gather(ValueId x, ValueId indices, std::int64_t axis) {
  if (axis < 0) axis += static_cast<std::int64_t>(shape(x).size());
  return node(Op::Gather, {x, indices}, Attrs().set(Attr::Axis, axis));
}

ValueId Builder::reduce(Op op, ValueId x, Axes axes, bool keepdims) {
  if (axes.empty() && x >= 0) return x;
  Shape kept = shape(x);
  count_from_front(axes, static_cast<int>(kept.size()));
  std::sort(axes.begin(), axes.end());
  for (std::int64_t axis : axes) {
    if (axis >= 0 && axis < static_cast<std::int64_t>(kept.size())) kept[axis] = 1;
  }
  Attrs attrs;
  if (info(op).dtype_rule == DTypeRule::Own) {
    WEFT_CHECK(axes.size() == 1, std::string(info(op).name) + " over several axes");
    attrs.set(Attr::Axis, axes[0]).set(Attr::Last, false);
  } else {
    attrs.set(Attr::Axes, std::move(axes));
  }
  const ValueId result = node(op, {x}, std::move(attrs));
  return keepdims && result >= 0 ? reshape(result, std::move(kept)) : result;
}

// Paired sizes that may be equal are taken to be: a reshape asserts it.
void Builder::pair_sizes(ValueId& a, const Axes& a_axes, ValueId& b, const Axes& b_axes) {
  Shape left = shape(a), right = shape(b);
  for (std::size_t i = 0; i < std::min(a_axes.size(), b_axes.size()); ++i) {
    if (a_axes[i] < 0 || a_axes[i] >= static_cast<std::int64_t>(left.size())) return;
    if (b_axes[i] < 0 || b_axes[i] >= static_cast<std::int64_t>(right.size())) return;
    Dim &x = left[a_axes[i]], &y = right[b_axes[i]];
    if (graph_.facts.known_equal(x, y) || known_different(graph_.facts, x, y)) continue;
    (x.is_const() ? y : x) = x.is_const() ? x : y;
  }
  a = assert_shape(a, left);
  b = assert_shape(b, right);
}

ValueId Builder::dot(ValueId a, ValueId b, Axes lhs_batch, Axes rhs_batch, Axes lhs_contract,
                     Axes rhs_contract, DType dtype) {
  if (valid({a, b})) {
    pair_sizes(a, lhs_batch, b, rhs_batch);
    pair_sizes(a, lhs_contract, b, rhs_contract);
  }
  const auto agree = [&](const Axes& l, const Axes& r) {
    for (std::size_t k = 0; a >= 0 && k < l.size() && k < r.size(); ++k) {
      const auto axis = static_cast<std::size_t>(l[k]);
      if (axis < shape(a).size()) b = assert_size(b, static_cast<std::size_t>(r[k]), shape(a)[axis]);
    }
  };
  agree(lhs_batch, rhs_batch);
  agree(lhs_contract, rhs_contract);
  return node(Op::Dot, {a, b},
              Attrs()
                  .set(Attr::LhsBatch, std::move(lhs_batch))
                  .set(Attr::RhsBatch, std::move(rhs_batch))
                  .set(Attr::LhsContract, std::move(lhs_contract))
                  .set(Attr::RhsContract, std::move(rhs_contract))
                  .set(Attr::DType, dtype));
}

ValueId Builder::matmul(ValueId a, ValueId b) {
  const DType dtype = this->dtype(a);
  const auto a_rank = static_cast<std::int64_t>(shape(a).size());
  const auto b_rank = static_cast<std::int64_t>(shape(b).size());
  if (!valid({a, b}) || a_rank == 0 || b_rank == 0) {
    fail(user_error("rank-mismatch", "a matrix product of a scalar"));
    return kInvalid;
  }
  // Without batch axes on the right, all of the left's leading axes are rows.
  if (b_rank <= 2) return dot(a, b, {}, {}, {a_rank - 1}, {b_rank == 1 ? 0 : b_rank - 2}, dtype);
  if (a_rank == 1) return dot(b, a, {}, {}, {b_rank - 2}, {0}, dtype);

  const auto with_batch = [this](ValueId v, const Shape& batch) {
    Shape s = batch;
    s.insert(s.end(), shape(v).end() - 2, shape(v).end());
    return broadcast_to(v, std::move(s));
  };
  auto batch = broadcast_shapes(
      {Shape(shape(a).begin(), shape(a).end() - 2), Shape(shape(b).begin(), shape(b).end() - 2)});
  if (!batch.ok()) {
    fail(batch.error());
    return kInvalid;
  }
  const auto n = static_cast<std::int64_t>(batch->size());
  const Axes axes = iota_axes(0, batch->size());
  return dot(with_batch(a, *batch), with_batch(b, *batch), axes, axes, {n + 1}, {n}, dtype);
}

}  // namespace weft::graph
