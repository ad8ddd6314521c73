// What a machine gains by computing products of f32 from bf16.
#pragma once

#include "base/machine.h"
#include "transform/pipeline.h"

namespace weft::compiler {

// By the modelled time of each form; nothing is gained on machines of groups of threads.
transform::ProductChooser product_chooser(const Machine& machine);

// Gives the passes that chooser, unless they have one, where one of them would ask: at precision `medium`, and where a
// matrix unit multiplies bf16 so much faster that several products are worth one.
void choose_products(transform::PassOptions& passes, const Machine& machine);

}  // namespace weft::compiler
