#include "base/wide.h"
#include "runtime/hostops/hostops.h"

namespace weft::runtime {

Result<Tensors> non_zero(const Tensor& x) {
  const std::vector<std::int64_t> hits = with_real(x.dtype(), [&](auto w) {
    using W = decltype(w);
    const std::vector<W> values = widen<W>(x);
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != W{}) found.push_back(static_cast<std::int64_t>(i));
    }
    return found;
  });
  const auto count = static_cast<std::int64_t>(hits.size());
  Tensor coordinates = WEFT_TRY(Tensor::empty(DType::I64, {x.rank(), count}));
  auto* out = coordinates.as_mutable<std::int64_t>();
  const auto strides = row_major_strides(x.shape());
  for (int a = 0; a < x.rank(); ++a) {
    for (std::int64_t i = 0; i < count; ++i) out[a * count + i] = hits[i] / strides[a] % x.shape()[a];
  }
  return Tensors{coordinates};
}

}  // namespace weft::runtime
