// Which integers an input may hold: found from what the graph does with it.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace weft::cli {

// The input picks from an axis of this extent, or is compared with the numbers below it (a one-hot code); nothing when it
// is used otherwise.
std::optional<std::int64_t> index_extent(const graph::Graph& graph, graph::ValueId input);

}  // namespace weft::cli
