// The smallest part of a model that shows a difference, as a case in the layout of the ONNX backend suite.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare.h"
#include "frontend/onnx/part.h"
#include "graph/graph.h"
#include "weft/weft.h"

namespace weft::cli {

struct Reproducer {
  onnx::NodeNumbers nodes;           // of the model's main graph
  onnx::Model model;                 // those nodes
  std::vector<Tensor> inputs, want;  // of that model; `want` is the interpreter's
};

// What is held against the interpreter: runs the graph compiled.
using Compiled = std::function<Result<std::vector<Tensor>>(const graph::Graph&, const std::vector<Tensor>&)>;

// Tries the suspects (labels of nodes) one by one, then together, then more and more of what precedes them; without
// suspects, the shortest beginning of the model that fails is found first. Nothing when no part fails on its own.
Result<std::optional<Reproducer>> find_reproducer(const Model& model, const std::vector<Tensor>& inputs,
                                                  const std::vector<std::string>& suspects, const Compiled& compiled,
                                                  const std::function<bool(const Tensor&, const Tensor&)>& right);

// FOLDER/model.onnx, case.json, test_data_set_0/{input,output}_N.pb, and the inputs once more as input_N.npy.
Result<void> write_case(const std::string& folder, const Reproducer& reproducer, const Tolerance& tolerance);

}  // namespace weft::cli
