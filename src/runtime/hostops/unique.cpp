#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/wide.h"
#include "runtime/hostops/hostops.h"

namespace weft::runtime {
namespace {

// `count` keys of `width` elements each, one after the other.
template <class E>
struct Keys {
  std::vector<E> elements;
  std::int64_t count, width;
  bool before(std::int64_t a, std::int64_t b) const {
    for (std::int64_t i = 0; i < width; ++i) {
      const E &x = elements[a * width + i], &y = elements[b * width + i];
      if (sorts_before(x, y)) return true;
      if (sorts_before(y, x)) return false;
    }
    return false;
  }
};

struct Groups {
  std::vector<std::int64_t> first, inverse, counts;
};

template <class E>
Groups group(const Keys<E>& keys, bool sorted) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(keys.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return keys.before(a, b); });
  Groups g;
  g.inverse.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || keys.before(order[i - 1], order[i])) {
      g.first.push_back(order[i]);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.inverse[order[i]] = static_cast<std::int64_t>(g.first.size()) - 1;
  }
  if (sorted) return g;
  // In order of first appearance.
  std::vector<std::int64_t> rank(g.first.size()), place(g.first.size());
  std::iota(rank.begin(), rank.end(), 0);
  std::sort(rank.begin(), rank.end(), [&](auto a, auto b) { return g.first[a] < g.first[b]; });
  Groups by_first{{}, std::move(g.inverse), {}};
  for (std::size_t i = 0; i < rank.size(); ++i) {
    place[rank[i]] = static_cast<std::int64_t>(i);
    by_first.first.push_back(g.first[rank[i]]);
    by_first.counts.push_back(g.counts[rank[i]]);
  }
  for (std::int64_t& i : by_first.inverse) i = place[i];
  return by_first;
}

// x as [outer, extent, inner] with the slices along the middle axis as keys.
struct Split {
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::int64_t source(std::int64_t key, std::int64_t element) const {
    return (element / inner * extent + key) * inner + element % inner;
  }
};

template <class E>
std::vector<E> elements_of(const Tensor& x) {
  if constexpr (std::is_same_v<E, std::string>) {
    return x.string_values();
  } else {
    return widen<E>(x);
  }
}

template <class E>
Result<Tensor> tensor_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<E>& values) {
  if constexpr (std::is_same_v<E, std::string>) {
    return Tensor::strings(std::move(shape), values);
  } else {
    return narrow(dtype, std::move(shape), values);
  }
}

template <class E>
Result<Tensors> unique_as(const Tensor& x, bool sorted, const Split& split, std::vector<std::int64_t> shape,
                          std::int64_t axis) {
  const std::vector<E> values = elements_of<E>(x);
  Keys<E> keys{{}, split.extent, split.outer * split.inner};
  keys.elements.reserve(values.size());
  for (std::int64_t k = 0; k < keys.count; ++k) {
    for (std::int64_t e = 0; e < keys.width; ++e) keys.elements.push_back(values[split.source(k, e)]);
  }
  const Groups g = group(keys, sorted);
  const auto n = static_cast<std::int64_t>(g.first.size());
  shape[axis] = n;
  const Split result{split.outer, n, split.inner};
  std::vector<E> kept(static_cast<std::size_t>(n * keys.width));
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t e = 0; e < keys.width; ++e) {
      kept[result.source(k, e)] = keys.elements[g.first[k] * keys.width + e];
    }
  }
  Tensor y = WEFT_TRY(tensor_of(x.dtype(), std::move(shape), kept));
  return Tensors{y, Tensor::of(g.first), Tensor::of(g.inverse), Tensor::of(g.counts)};
}

}  // namespace

Result<Tensors> unique(const Tensor& x, bool sorted, std::optional<std::int64_t> axis) {
  if (axis && (*axis < 0 || *axis >= x.rank())) {
    return user_error("axis-out-of-range", fmt::format("axis {} of a tensor of rank {}", *axis, x.rank()));
  }
  Split split;
  std::vector<std::int64_t> shape{0};
  if (axis) {
    shape = x.shape();
    split.extent = shape[*axis];
    for (std::int64_t a = 0; a < x.rank(); ++a) {
      if (a != *axis) (a < *axis ? split.outer : split.inner) *= shape[a];
    }
  } else {
    split.extent = x.size();
  }
  const std::int64_t at = axis.value_or(0);
  if (is_string(x.dtype())) return unique_as<std::string>(x, sorted, split, std::move(shape), at);
  return with_real(x.dtype(), [&](auto w) { return unique_as<decltype(w)>(x, sorted, split, shape, at); });
}

}  // namespace weft::runtime
