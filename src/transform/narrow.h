// Constants in fewer bits. Private to transform/.
#pragma once

#include "base/tensor.h"

namespace weft::transform {

// f32 to bf16, to nearest even; what is finite stays finite where `bounded` says so.
Result<Tensor> rounded_to_bf16(const Tensor& data, bool bounded);

// `axis` filled up to `size` by zeros.
Tensor filled_up(const Tensor& data, std::int64_t axis, std::int64_t size);

// Weights in groups of 32 along the axis that is summed over, each with a scale: q scale, q in [-8, 7].
struct Grouped {
  static constexpr std::int64_t kGroup = 32;
  Tensor codes;   // i8 [groups, 16, free axes...]: steps k and k + 16 of a group, in the lower and upper four bits
  Tensor scales;  // f32 [groups, free axes...]
  double error = 0;  // root mean square, of the weights' own
};
Result<Grouped> in_four_bits(const Tensor& weights, std::int64_t axis);  // whose size is a multiple of a group's

}  // namespace weft::transform
