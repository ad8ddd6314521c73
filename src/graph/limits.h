// What no machine has room for is refused where it appears, not where it would be used.
#pragma once

#include "graph/graph.h"

namespace weft::graph {

constexpr int kAddressBits = 47;  // of a process

// False when the sizes are known and the elements need more bytes than a process can address.
bool fits_memory(const Type& type);

}  // namespace weft::graph
