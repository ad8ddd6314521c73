#include <algorithm>

#include "graph/interpret/elements.h"
#include "graph/interpret/gemm.h"

namespace weft::graph::interpreter {
namespace {

// An operand with its axes in the order batch, free, contracted; the sizes of the three parts.
struct Side {
  Tensor tensor;
  Sizes batch, free, contract;
};

Result<Side> arrange(const Tensor& x, const Sizes& batch, const Sizes& contract) {
  Side s;
  Sizes order = batch;
  for (std::int64_t a : batch) s.batch.push_back(x.shape()[a]);
  for (std::int64_t a = 0; a < x.rank(); ++a) {
    if (std::count(batch.begin(), batch.end(), a) || std::count(contract.begin(), contract.end(), a)) continue;
    order.push_back(a);
    s.free.push_back(x.shape()[a]);
  }
  for (std::int64_t a : contract) s.contract.push_back(x.shape()[a]);
  order.insert(order.end(), contract.begin(), contract.end());
  s.tensor = WEFT_TRY(transposed(x, order));
  return s;
}

template <class W>
void multiply(const Side& lhs, const Side& rhs, Tensor& y) {
  const std::int64_t m = count_of(lhs.free), n = count_of(rhs.free), k = count_of(lhs.contract);
  std::vector<W> a(static_cast<std::size_t>(m * k)), c(static_cast<std::size_t>(m * n));
  for (std::int64_t b = 0; b < count_of(lhs.batch); ++b) {
    load_wide(lhs.tensor, b * m * k, m * k, a.data());
    const auto row = [&](std::int64_t j, W* out) { load_wide(rhs.tensor, (b * n + j) * k, k, out); };
    gemm(a.data(), row, m, n, k, c.data());
    store_wide(y, b * m * n, m * n, c.data());  // floats round once, integers wrap
  }
}

}  // namespace

Result<Tensors> eval_dot(Eval& e) {
  const Attrs& attrs = e.attrs();
  const Side lhs = WEFT_TRY(arrange(e.in[0], attrs.ints(Attr::LhsBatch), attrs.ints(Attr::LhsContract)));
  const Side rhs = WEFT_TRY(arrange(e.in[1], attrs.ints(Attr::RhsBatch), attrs.ints(Attr::RhsContract)));
  if (lhs.batch != rhs.batch || lhs.contract != rhs.contract) {
    return e.error("shape-mismatch", "batch or contracted sizes differ")
        .expected(shape_str(e.in[0].shape()))
        .found(shape_str(e.in[1].shape()));
  }
  Sizes shape = lhs.batch;
  shape.insert(shape.end(), lhs.free.begin(), lhs.free.end());
  shape.insert(shape.end(), rhs.free.begin(), rhs.free.end());
  Tensor y = WEFT_TRY(result_tensor(attrs.dtype(Attr::DType), shape));
  if (y.size() == 0) return Tensors{y};
  if (is_float(y.dtype())) {
    multiply<double>(lhs, rhs, y);
  } else {
    multiply<std::uint64_t>(lhs, rhs, y);
  }
  return Tensors{y};
}

}  // namespace weft::graph::interpreter
