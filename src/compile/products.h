// What a machine gains by computing products of f32 from bf16.
#pragma once

#include "base/machine.h"
#include "transform/products.h"

namespace weft::compiler {

// By the modelled time of each form; nothing is gained on machines of groups of threads.
transform::ProductChooser product_chooser(const Machine& machine);

}  // namespace weft::compiler
