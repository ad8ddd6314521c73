#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/wide.h"
#include "runtime/hostops/hostops.h"

namespace weft::runtime {
namespace {

// Indices of a lane's first k elements in order; equal elements keep their order in both directions.
template <class W>
void order_lane(const std::vector<W>& lane, std::int64_t k, bool descending, std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int64_t a, std::int64_t b) {
    const W &x = lane[a], &y = lane[b];
    if (descending ? sorts_before(y, x) : sorts_before(x, y)) return true;
    if (descending ? sorts_before(x, y) : sorts_before(y, x)) return false;
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
}

template <class W>
Result<Tensors> sort_as(const Tensor& x, std::int64_t axis, std::int64_t k, bool descending) {
  const std::vector<W> values = widen<W>(x);
  std::vector<std::int64_t> shape = x.shape();
  std::int64_t outer = 1, inner = 1;
  const std::int64_t extent = shape[axis];
  for (std::int64_t a = 0; a < x.rank(); ++a) (a < axis ? outer : a > axis ? inner : k) *= a == axis ? 1 : shape[a];
  shape[axis] = k;
  Tensor sorted = WEFT_TRY(result_tensor(x.dtype(), shape));
  Tensor indices = WEFT_TRY(result_tensor(DType::I64, shape));
  std::vector<W> results(static_cast<std::size_t>(sorted.size()));
  auto* index = indices.as_mutable<std::int64_t>();
  std::vector<W> lane(static_cast<std::size_t>(extent));
  std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t j = 0; j < extent; ++j) lane[j] = values[(o * extent + j) * inner + i];
      order_lane(lane, k, descending, order);
      for (std::int64_t j = 0; j < k; ++j) {
        results[(o * k + j) * inner + i] = lane[order[j]];
        index[(o * k + j) * inner + i] = order[j];
      }
    }
  }
  store_wide(sorted, 0, sorted.size(), results.data());
  return Tensors{sorted, indices};
}

}  // namespace

Result<Tensors> top_k(const Tensor& x, std::int64_t axis, std::int64_t k, bool descending) {
  if (axis < 0 || axis >= x.rank()) {
    return user_error("axis-out-of-range", fmt::format("axis {} of a tensor of rank {}", axis, x.rank()));
  }
  if (k < 0 || k > x.shape()[axis]) {
    return user_error("k-out-of-range", fmt::format("top_k of {} elements on axis {} of extent {}", k, axis,
                                                    x.shape()[axis]));
  }
  return with_real(x.dtype(), [&](auto w) { return sort_as<decltype(w)>(x, axis, k, descending); });
}

Result<Tensors> sort(const Tensor& x, std::int64_t axis, bool descending) {
  const bool known = axis >= 0 && axis < x.rank();
  return top_k(x, axis, known ? x.shape()[axis] : 0, descending);
}

}  // namespace weft::runtime
