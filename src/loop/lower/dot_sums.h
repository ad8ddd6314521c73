// Sums of products: additions, in any association, of dots, or of convolutions, that nothing else reads. Their terms are one
// reduction: each step of its loops adds a product of every one.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace weft::loop {

struct DotSum {
  std::vector<graph::NodeId> dots;  // or convolutions, in the order of the sum; at least two
  std::vector<graph::NodeId> adds;
  graph::ValueId total = -1;        // the last add's
};

// The largest ones, disjoint, in topological order of their last adds. All dots of one run over the same sizes and have
// operands of the same dtypes. `users` by value, without duplicates.
std::vector<DotSum> find_dot_sums(const graph::Graph& graph, const std::vector<std::vector<graph::NodeId>>& users,
                                  const std::vector<bool>& is_output);

}  // namespace weft::loop
