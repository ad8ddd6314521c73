// Graph → groups. The partition is the order in which a plan does things: kernels (groups), host ops and control flow,
// over the graph's values. What a kernel computes on the way and nobody else needs never gets a buffer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/group.h"
#include "loop/lower/attention.h"

namespace weft::loop {

// Memory that the kernels of one node hand on to each other: no value of the graph.
struct Scratch {
  DType dtype;
  Shape shape;
};

// What stands for a parameter that is no graph value.
inline constexpr graph::ValueId kOnChip = -1;
inline graph::ValueId scratch_arg(int number) { return -2 - number; }
inline bool is_scratch(graph::ValueId arg) { return arg <= -2; }
inline int scratch_number(graph::ValueId arg) { return -2 - arg; }

struct Step {
  enum class Kind : std::uint8_t {
    Kernel,   // group; args: which graph value each parameter is, or scratch, or kOnChip
    Node,     // a host op or control flow: `node` of the graph, on its operands and results
  } kind = Kind::Kernel;
  graph::NodeId node = -1;
  Group group;
  std::vector<graph::ValueId> args;
};

struct Partition {
  std::vector<Step> steps;
  // alias[v] = the value whose bytes v shares (a reshape of something stored), or v itself.
  std::vector<graph::ValueId> alias;
  std::vector<Scratch> scratch;
  std::vector<bool> stored;  // by value: has bytes of its own when the graph runs (inputs and constants included)
};

// What depends on the machine.
struct Choices {
  AttentionChooser attention;  // in what blocks attention is walked over; without it, it is two products and a softmax
  bool pairs = false;          // products of bf16 are summed two at a time
  std::int64_t kept_bytes = 0; // of a row's values, at most, that are kept on chip for a later walk over the row
};

// The graph must hold no composites (inlined before) and be verified. Unsupported dtypes are reported all at once.
Result<Partition> lower(const graph::Graph& graph, const Choices& choices = {});

}  // namespace weft::loop
