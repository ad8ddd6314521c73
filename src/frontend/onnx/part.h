// A part of a model's main graph as a model of its own.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/model.h"

namespace weft::onnx {

using NodeNumbers = std::vector<std::size_t>;  // of the main graph's nodes, ascending

// What the nodes read that none of them makes, initializers not among them; and what they make that other nodes or
// the model's outputs read, or all of it where nobody reads any.
struct Boundary {
  std::vector<std::string> inputs, outputs;
};
Boundary boundary(const Graph& graph, const NodeNumbers& nodes);

// The nodes with the initializers and functions that they use. `inputs` and `outputs` declare the values of the
// boundary; those of its inputs that are `known` become initializers instead.
Model part(const Model& model, const NodeNumbers& nodes, std::vector<ValueInfo> inputs, std::vector<ValueInfo> outputs,
           std::vector<NamedTensor> known);

// The nodes of the main graph that are, or call functions that hold, a node so labelled.
NodeNumbers labelled(const Model& model, const std::vector<std::string>& labels);

}  // namespace weft::onnx
