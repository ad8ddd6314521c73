#include "graph/interpret/elements.h"

namespace weft::graph::interpreter {

Result<Tensors> eval_select(Eval& e) {
  WEFT_TRY(check_same_shapes(e));
  const Tensor& condition = e.in[0];
  const Tensor a = WEFT_TRY(spread(e.in[1])), b = WEFT_TRY(spread(e.in[2]));
  Tensor y = WEFT_TRY(Tensor::empty(a.dtype(), a.shape()));
  with_carrier(a.dtype(), [&](auto carrier) {
    using T = decltype(carrier);
    const T *x = elements<T>(a), *z = elements<T>(b);
    const auto* holds = condition.as<std::uint8_t>();
    T* out = mutable_elements<T>(y);
    for (std::int64_t i = 0; i < condition.size(); ++i) out[i] = holds[i] ? x[i] : z[i];
  });
  return one(gathered(std::move(y), e.in[1].dtype()));
}

}  // namespace weft::graph::interpreter
