// Elements of less than a byte, and floats of at most one: what they may not be where memory is written or combined.
#pragma once

#include "graph/graph.h"

namespace weft::graph {

// Whether kernels do the node on wider elements only, `t` being the dtype of its first result: they store and combine
// whole bytes. The pass "widen" puts casts around such nodes; elementwise and movement ops need none.
bool wants_wider(const Node& node, DType t);

}  // namespace weft::graph
