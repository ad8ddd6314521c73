// What lowering to loops is told of a machine.
#pragma once

#include "base/machine.h"
#include "loop/lower/lower.h"

namespace weft::schedule {

loop::Choices lowering_choices(const Machine& machine);

}  // namespace weft::schedule
