// Fusion: which nodes become one kernel, and which values get bytes. Decided on the graph, before any loop is written.
//
// Values of elementwise, movement and gather nodes cost little to compute again, so a consumer may read *through* them.
// A unit is a set of nodes that one kernel computes: a contraction (dot, convolution, window) or a sum of dots with the
// elementwise chain after it, the reductions over one row space with everything between and after them, or attention. Two things are weighed
// in bytes that cross memory: storing a value costs one write and one read per reader, reading through costs the reads
// of what it is made of, once per reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/lower/attention.h"
#include "loop/lower/dot_sums.h"

namespace weft::loop {

enum class UnitKind : std::uint8_t { Contraction, Rows, Attention };

struct Unit {
  UnitKind kind;
  graph::NodeId seed = -1;
  std::vector<graph::NodeId> nodes;        // in topological order, the seed first
  DotSum sum = {};                         // of a contraction that begins as one; the seed is its first dot
  std::vector<graph::ValueId> outputs = {};  // members' values that are used outside
  std::vector<graph::NodeId> pads = {};    // constant padding of members' values, stored where it belongs at once
  Attention attention = {};                // of that kind
  AttentionPlan attention_plan = {};
};

struct FusionPlan {
  std::vector<Unit> units;
  std::vector<int> unit_of;     // by node: index into units, or -1
  std::vector<bool> stored;     // by value: has bytes
};

// How a node takes part.
enum class Part : std::uint8_t {
  Inline,       // may be read through: elementwise, movement, gathers, sources
  Contraction,  // dot, conv, windows
  Reduction,    // reductions whose result is one local per row
  Alone,        // arg reductions, cumulative ops, scatters, sorts: kernels of their own
  Step,         // host ops and control flow
  Constant,
};
Part part_of(const graph::Graph& graph, const graph::Node& node);

// Scalar operations, about, of an element of the node's result.
int scalar_cost(const graph::Graph& graph, const graph::Node& node);

// A gather by bytes among 256 or more: no index is out of range.
bool is_look_up(const graph::Graph& graph, const graph::Node& node);

FusionPlan plan_fusion(const graph::Graph& graph, const AttentionChooser& attention);

}  // namespace weft::loop
