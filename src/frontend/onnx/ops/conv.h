// What the float and the integer convolutions share.
#pragma once

#include "frontend/onnx/import/node_context.h"

namespace weft::onnx {

// x [N, C, ...] with w [O, C/group, ...] by the node's window attributes and group.
Result<ValueId> convolution(NodeContext& c, ValueId x, ValueId w, DType result);

}  // namespace weft::onnx
