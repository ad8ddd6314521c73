// Softmax by its structure, whatever wrote it: p = exp(x - max x) / sum of that, over the same axes. Private to loop/lower.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace weft::loop {

struct Softmax {
  graph::ValueId scores = -1, exponentials = -1, sum = -1;
  std::vector<std::int64_t> axes;
  std::vector<graph::ValueId> inside;  // all that is computed, p included
};

std::optional<Softmax> find_softmax(const graph::Graph& graph, graph::ValueId p);

}  // namespace weft::loop
