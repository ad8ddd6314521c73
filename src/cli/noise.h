// How far rounding to f32 alone moves a graph's outputs: interpreted as it is, and with f64 in place of f32.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace weft::cli {

// By output, the largest distance of `want` (what the interpreter gave) from the wider evaluation. An error when the
// graph cannot be evaluated wider (it looks at the bits of floats, say).
Result<std::vector<double>> rounding_noise(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& want);

}  // namespace weft::cli
