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

Tensor filled_up(const Tensor& data, std::int64_t axis, std::int64_t size) {
  std::vector<std::int64_t> shape = data.shape();
  std::int64_t outer = 1, inner = bits(data.dtype()) / 8;
  for (std::int64_t d = 0; d < data.rank(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : shape[d];
  const std::int64_t rows = shape[axis];
  shape[axis] = size;
  Tensor to = Tensor::zeros(data.dtype(), shape).value();
  const auto* from = static_cast<const char*>(data.data());
  for (std::int64_t o = 0; o < outer; ++o) {
    std::copy_n(from + o * rows * inner, rows * inner, static_cast<char*>(to.mutable_data()) + o * size * inner);
  }
  return to;
}

Result<Grouped> in_four_bits(const Tensor& weights, std::int64_t axis) {
  constexpr std::int64_t kGroup = Grouped::kGroup, kHalf = kGroup / 2;
  const auto& shape = weights.shape();
  std::int64_t outer = 1, inner = 1;
  std::vector<std::int64_t> codes{shape[axis] / kGroup, kHalf}, scales{shape[axis] / kGroup};
  for (std::int64_t d = 0; d < weights.rank(); ++d) {
    if (d == axis) continue;
    (d < axis ? outer : inner) *= shape[d];
    codes.push_back(shape[d]);
    scales.push_back(shape[d]);
  }
  Grouped g;
  g.codes = WEFT_TRY(Tensor::empty(DType::I8, codes));
  g.scales = WEFT_TRY(Tensor::empty(DType::F32, scales));
  const float* x = weights.as<float>();
  auto* code = g.codes.as_mutable<std::uint8_t>();
  auto* scale = g.scales.as_mutable<float>();
  const std::int64_t free = outer * inner;
  double off = 0, all = 0;
  for (std::int64_t group = 0; group < codes[0]; ++group) {
    for (std::int64_t n = 0; n < free; ++n) {
      const float* first = x + n / inner * shape[axis] * inner + group * kGroup * inner + n % inner;
      float extreme = 0;  // what lies furthest from zero becomes -8
      for (std::int64_t k = 0; k < kGroup; ++k) extreme = std::fabs(first[k * inner]) > std::fabs(extreme) ? first[k * inner] : extreme;
      const float s = scale[group * free + n] = extreme == 0 ? 1.0F : extreme / -8;
      const auto quantised = [&](std::int64_t k) {
        const float value = first[k * inner], q = std::clamp(std::nearbyint(value / s), -8.0F, 7.0F);
        off += (double{q} * s - value) * (double{q} * s - value);
        all += double{value} * value;
        return static_cast<unsigned>(static_cast<int>(q)) & 15U;
      };
      for (std::int64_t k = 0; k < kHalf; ++k) {
        const unsigned low = quantised(k), high = quantised(k + kHalf);
        code[(group * kHalf + k) * free + n] = static_cast<std::uint8_t>(low | high << 4);
      }
    }
  }
  g.error = all > 0 ? std::sqrt(off / all) : 0;
  return g;
}

}  // namespace weft::transform
