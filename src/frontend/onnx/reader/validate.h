// Checks that a model is one that Weft may import: versions, names, order. What operators mean is the importer's.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "frontend/onnx/model.h"

namespace weft::onnx {

// The versions that Weft reads. Opsets are those of the domain ai.onnx; ones of other domains are the importer's.
inline constexpr std::int64_t kIrVersionMin = 3, kIrVersionMax = 13;
inline constexpr std::int64_t kOpsetMin = 1, kOpsetMax = 27;

// IR and opset versions in range, a graph present, each node's domain imported, every value defined once and before
// its use (subgraphs see the outer values that precede their node), outputs defined, functions unique and not
// recursive, attributes given once, attribute references only in functions.
Result<void> validate(const Model& model);

}  // namespace weft::onnx
