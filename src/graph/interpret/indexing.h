// Where gathers read and scatters write: element offsets, indices checked.
#pragma once

#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {

// Negative indices count from the end; out of range is a user error.
Result<std::int64_t> checked_index(const Eval& e, std::int64_t index, std::int64_t axis, std::int64_t extent);
// gather_elements: one offset into x per element of `indices`.
Result<Sizes> element_offsets(const Eval& e, const Tensor& x, const Tensor& indices, std::int64_t axis);
// gather_nd: one offset per coordinate tuple; the slice that starts there has the axes of x after batch and tuple.
Result<Sizes> tuple_offsets(const Eval& e, const Tensor& x, const Tensor& indices, std::int64_t batch);

}  // namespace weft::graph::interpreter
