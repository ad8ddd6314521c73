#include <fmt/format.h>

#include <algorithm>

#include "graph/interpret/combine.h"
#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {

Meet meet_of(Op op) {
  switch (op) {
    case Op::ReduceSum:
    case Op::CumSum: return Meet::Add;
    case Op::ReduceProd:
    case Op::CumProd: return Meet::Mul;
    case Op::ReduceMax:
    case Op::CumMax: return Meet::Max;
    case Op::ReduceMin:
    case Op::CumMin: return Meet::Min;
    case Op::ReduceAnd: return Meet::And;
    default: return Meet::Or;
  }
}

namespace {

struct Layout {
  Sizes result_shape;
  Sizes result_steps;  // per operand axis, in result elements; 0 on reduced axes
};

Layout layout_of(const Sizes& shape, const Sizes& axes) {
  Layout l;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    if (!std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(a))) l.result_shape.push_back(shape[a]);
  }
  const Sizes strides = row_major_strides(l.result_shape);
  std::size_t kept = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    const bool reduced = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(a)) > 0;
    l.result_steps.push_back(reduced ? 0 : strides[kept++]);
  }
  return l;
}

// The rows of the last axis, one after the other, met into the results.
template <class W>
void reduce_rows(const Tensor& x, const Layout& l, Meet how, std::vector<W>& results) {
  const Sizes outer(x.shape().begin(), x.shape().end() - 1);
  const std::int64_t n = x.shape().back(), step = l.result_steps.back();
  std::vector<W> row(static_cast<std::size_t>(n));
  Sizes index(outer.size(), 0);
  std::int64_t at = 0;
  do {
    load_wide(x, at, n, row.data());
    at += n;
    std::int64_t to = 0;
    for (std::size_t a = 0; a < outer.size(); ++a) to += index[a] * l.result_steps[a];
    if (how == Meet::Add && step == 0) {
      W sum{};
      for (const W& v : row) sum = meet(Meet::Add, sum, v);
      results[to] = meet(Meet::Add, results[to], sum);
      continue;
    }
    for (std::int64_t i = 0; i < n; ++i) results[to + i * step] = meet(how, results[to + i * step], row[i]);
  } while (next_index(index, outer));
}

Result<Tensor> reduce(Eval& e) {
  const Tensor& x = e.in[0];
  const Layout l = layout_of(x.shape(), e.attrs().ints(Attr::Axes));
  const Meet how = meet_of(e.op());
  WEFT_TRY(Tensor::empty(x.dtype(), l.result_shape));
  return with_wide(x.dtype(), [&](auto w) -> Result<Tensor> {
    using W = decltype(w);
    std::vector<W> results(static_cast<std::size_t>(count_of(l.result_shape)), neutral<W>(how, x.dtype()));
    if (x.rank() == 0) return x;
    if (x.size() > 0) reduce_rows(x, l, how, results);
    return narrow(x.dtype(), l.result_shape, results);
  });
}

// Whether b takes a's place as the extreme; a NaN is never replaced, and replaces what is none.
template <class W>
bool replaces(const W& a, const W& b, bool largest_wanted, bool last) {
  if constexpr (std::is_same_v<W, double>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  if (a == b) return last;
  return largest_wanted ? a < b : b < a;
}

Result<Tensor> arg_reduce(Eval& e) {
  const Tensor& x = e.in[0];
  const std::int64_t axis = e.attrs().integer(Attr::Axis);
  const bool last = e.attrs().flag(Attr::Last), wanted = e.op() == Op::ArgMax;
  Sizes shape = x.shape();
  const std::int64_t extent = shape[axis];
  const std::int64_t outer = count_of(shape, 0, axis), inner = count_of(shape, axis + 1, shape.size());
  if (extent == 0) return e.error("empty-axis", fmt::format("axis {} has no elements", axis));
  shape.erase(shape.begin() + axis);
  Tensor y = WEFT_TRY(Tensor::empty(DType::I64, shape));
  auto* out = y.as_mutable<std::int64_t>();
  with_real(x.dtype(), [&](auto w) {
    using W = decltype(w);
    const std::vector<W> values = widen<W>(x);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        const W* lane = values.data() + o * extent * inner + i;
        std::int64_t best = 0;
        for (std::int64_t j = 1; j < extent; ++j) {
          if (replaces(lane[best * inner], lane[j * inner], wanted, last)) best = j;
        }
        out[o * inner + i] = best;
      }
    }
  });
  return y;
}

}  // namespace

Result<Tensors> eval_reduce(Eval& e) {
  if (e.op() == Op::ArgMax || e.op() == Op::ArgMin) return one(arg_reduce(e));
  return one(reduce(e));
}

}  // namespace weft::graph::interpreter
