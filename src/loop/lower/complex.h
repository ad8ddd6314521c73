// Complex numbers are pairs of reals: memory holds the parts side by side, as one more axis of 2, and kernels compute one
// part at a time. Private to loop/lower.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "loop/group.h"

namespace weft::loop {

DType part_dtype(DType t);  // of a complex dtype's real and imaginary parts

struct Pair {
  ExprId re = -1, im = -1;
};

// Part `part` (0 real, 1 imaginary) of an elementwise op on numbers of the complex dtype `t`, or a comparison.
ExprId complex_op(Group& g, graph::Op op, DType t, const std::vector<Pair>& x, int part);

}  // namespace weft::loop
