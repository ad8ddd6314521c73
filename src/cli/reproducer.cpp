#include "cli/reproducer.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/npy.h"

namespace weft::cli {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

// The nodes that the outputs need, walking up until an input.
std::vector<bool> needed_nodes(const Graph& g, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) {
  std::vector<bool> stop(g.values().size(), false), needed(g.nodes().size(), false);
  for (const ValueId v : inputs) stop[v] = true;
  std::vector<ValueId> work = outputs;
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    const graph::NodeId def = g.value(v).def;
    if (stop[v] || def < 0 || needed[def]) continue;
    needed[def] = true;
    for (const ValueId operand : g.node(def).operands) work.push_back(operand);
  }
  return needed;
}

}  // namespace

Result<Piece> cut(const Graph& g, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) {
  Piece piece;
  piece.graph.name = "piece";
  piece.graph.facts = g.facts;
  std::vector<ValueId> to(g.values().size(), -1);
  const auto add_input = [&](ValueId v) {
    if (to[v] >= 0) return;
    to[v] = piece.graph.add_input(g.type(v), g.value(v).name);
    piece.inputs.push_back(v);
  };
  for (const ValueId v : inputs) {
    if (!g.constant(v)) add_input(v);
  }
  const std::vector<bool> needed = needed_nodes(g, piece.inputs, outputs);
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    if (!needed[n]) continue;
    const Node& node = g.nodes()[n];
    std::vector<ValueId> operands;
    for (const ValueId v : node.operands) {
      if (to[v] < 0) add_input(v);  // an input of the whole graph
      operands.push_back(to[v]);
    }
    const graph::NodeId made = WEFT_TRY(piece.graph.add_node(node.op, operands, node.attrs, node.regions, node.origin));
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const ValueId v = node.results[r];
      to[v] = piece.graph.node(made).results[r];
      piece.graph.set_shape(to[v], g.type(v).shape);
    }
  }
  std::vector<ValueId> results;
  for (const ValueId v : outputs) results.push_back(to[v]);
  piece.graph.set_outputs(results);
  return piece;
}

Result<void> write_piece(const std::string& folder, const Piece& piece, const std::vector<Tensor>& values) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return user_error("file", "cannot make the folder: " + error.message()).at(folder);
  const auto path = [&](const std::string& name) { return (std::filesystem::path(folder) / name).string(); };
  WEFT_TRY(write_file(path("piece.graph"), graph::print(piece.graph)));
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    WEFT_TRY(write_npy(path(fmt::format("input_{}.npy", i)), values[piece.inputs[i]]));
  }
  graph::Sidecar constants;
  graph::collect_constants(piece.graph, constants);
  for (const auto& [hash, tensor] : constants) {
    WEFT_TRY(write_npy(path(fmt::format("constant_{:016x}.npy", hash)), tensor));
  }
  return {};
}

}  // namespace weft::cli
