// Constants in fewer bits. Private to transform/.
#pragma once

#include "base/tensor.h"

namespace weft::transform {

// f32 to bf16, to nearest even; what is finite stays finite where `bounded` says so.
Result<Tensor> rounded_to_bf16(const Tensor& data, bool bounded);

}  // namespace weft::transform
