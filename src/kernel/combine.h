// Reductions as scalar ops.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace weft::kernel {

ScalarOp combining_op(Combine combine, DType dtype);
Combine lane_combine(Combine combine, DType dtype);  // for bool, greatest and least are or and and
ValueId combine_pairwise(Builder& b, Combine combine, std::vector<ValueId> parts);

}  // namespace weft::kernel
