// Prepared constants: a weight laid out as a schedule asks, once, when the plan is made.
#pragma once

#include "base/tensor.h"
#include "compile/jobs.h"
#include "loop/group.h"

namespace weft::compiler {

// `data` is dense row-major of `shape` (its own shape may be another view of the same elements). The result is a flat
// tensor of storage_elements(shape, map) elements, which the added jobs fill; padding is 0.
Result<Tensor> prepare_constant(const Tensor& data, const std::vector<std::int64_t>& shape, const loop::StorageMap& map,
                                std::vector<Job>& jobs);
// The same, filled.
Result<Tensor> prepare_constant(const Tensor& data, const std::vector<std::int64_t>& shape, const loop::StorageMap& map);

}  // namespace weft::compiler
