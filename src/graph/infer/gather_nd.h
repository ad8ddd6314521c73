// Conditions that gathers and scatters share.
#pragma once

#include "graph/infer/infer.h"

namespace weft::graph {

// Operand 1 indexes operand 0 along `axis`: equal ranks, no other axis longer than operand 0's.
Result<void> check_elements_index(const InferInput& in);
// Operand 1's last axis holds coordinates into operand 0 after `batch` axes; the shape of all the
// slices named.
Result<Shape> nd_slice_shape(const InferInput& in, std::int64_t batch);

}  // namespace weft::graph
