// One group through the interpreters of all levels: which one turns right values into wrong ones.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/lower/lower.h"

namespace weft::cli {

struct LevelResult {
  std::string level;              // "loop", "tile", "kernel"
  std::vector<Tensor> outputs;    // of the step's output parameters, in their order
};

// `values`: by graph value, at least those that the step reads (as the reference interpreter made them).
Result<std::vector<LevelResult>> run_levels(const graph::Graph& graph, const loop::Step& step,
                                            const std::vector<Tensor>& values, const Bindings& bindings);

// The graph's values that the step writes.
std::vector<graph::ValueId> written_by(const loop::Step& step);

}  // namespace weft::cli
