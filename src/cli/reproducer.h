// The smallest part of a graph that computes some values from others, as files.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft::cli {

struct Piece {
  graph::Graph graph;
  std::vector<graph::ValueId> inputs;  // of the whole graph, in the order of the piece's inputs
};

// What lies between `inputs` (constants need not be among them) and `outputs`.
Result<Piece> cut(const graph::Graph& graph, const std::vector<graph::ValueId>& inputs,
                  const std::vector<graph::ValueId>& outputs);

// FOLDER/piece.graph, input_N.npy, and constant_HASH.npy for the constants that the text names by their hash.
Result<void> write_piece(const std::string& folder, const Piece& piece, const std::vector<Tensor>& values);

}  // namespace weft::cli
