// How far ahead of a loop copies from memory run.
#pragma once

#include "base/machine.h"

namespace weft::cost {

// Blocks of a loop's operands that lie in shared memory at once: the one that is worked on and those that are on their
// way. As many as the time of a block, `cycles`, takes to cover the memory's latency, 2 to 4, if `most_bytes` hold them; 1:
// none is copied ahead.
int copy_stages(const Machine& machine, double block_bytes, double cycles, double most_bytes);

}  // namespace weft::cost
