#include "transform/narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft::transform {

Result<Tensor> rounded_to_bf16(const Tensor& data, bool bounded) {
  constexpr std::uint32_t kInfinity = 0x7f80, kLargest = 0x7f7f, kSign = 0x8000;
  Tensor narrow = WEFT_TRY(Tensor::empty(DType::BF16, data.shape()));
  const auto* x = static_cast<const float*>(data.data());
  auto* to = static_cast<std::uint16_t*>(narrow.mutable_data());
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i]);
    std::uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    if (bounded && (nearest & ~kSign) == kInfinity && std::isfinite(x[i])) nearest = (nearest & kSign) | kLargest;
    to[i] = static_cast<std::uint16_t>(std::isnan(x[i]) ? (bits >> 16) | 0x40 : nearest);
  }
  return narrow;
}

}  // namespace weft::transform
