// One function over the elements of a tensor, in wide types.
#pragma once

#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {

// y[i] = f(x[i]), computed in the wide type W; the result has dtype `to`, whose wide type is V.
template <class W, class V, class F>
Result<Tensor> map_wide(const Tensor& x, DType to, F f) {
  Tensor y = WEFT_TRY(result_tensor(to, x.shape()));
  W in[kWideChunk];
  V out[kWideChunk];
  for (std::int64_t at = 0; at < x.size(); at += kWideChunk) {
    const std::int64_t n = std::min(kWideChunk, x.size() - at);
    load_wide(x, at, n, in);
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[i]);
    store_wide(y, at, n, out);
  }
  return y;
}

}  // namespace weft::graph::interpreter
