// What convolutions and pools share: kernel, strides, dilations and pads, explicit or automatic.
#pragma once

#include "frontend/onnx/import/node_context.h"

namespace weft::onnx {

struct Window {
  std::vector<std::int64_t> kernel, strides, dilations;
  Shape lo, hi;  // padding before and after, per spatial axis
};

// `spatial`: sizes of the input's spatial axes. Automatic padding: SAME gives ceil(size / stride) outputs; a negative
// total (stride larger than the dilated kernel) counts as 0; the odd cell goes to the end for SAME_UPPER.
Result<Window> window_of(NodeContext& c, const Shape& spatial, std::vector<std::int64_t> kernel);

}  // namespace weft::onnx
