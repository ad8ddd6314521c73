// Attention: dot(q, k) -> elementwise -> softmax -> dot(., v) as one kernel. Found from the graph's structure, whatever
// wrote it; the kernel walks over blocks of keys with a running (max, sum, accumulator) and never holds all scores of a
// row. See attention.cpp for the form.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft::loop {

struct Attention {
  graph::NodeId qk = -1, pv = -1;         // the two products
  graph::ValueId scores = -1;             // what the softmax is taken of
  bool nan_to_zero = false;               // probabilities that are NaN count as 0
  std::vector<graph::NodeId> nodes;       // all that the kernel computes, in topological order
};

// The sizes that decide whether the fused form pays, at their likely values.
struct AttentionShape {
  double outer = 1;  // rows x keys matrices: batch times heads
  double rows = 1, keys = 1;
  double size = 1, value_size = 1;
  bool keys_known = false;
};

// What the machine makes of it: how many keys a block holds, or 0 and the reason why not.
struct AttentionPlan {
  std::int64_t block = 0;
  std::string why;
  bool skips = false;         // blocks that a mask excludes are left out
  std::int64_t part = 0;      // keys of the parts of a block that are left out one by one; it divides the block. 0: no parts
  bool powers_of_two = false;  // 2^x is cheaper than exp(x)
};
using AttentionChooser = std::function<AttentionPlan(const AttentionShape&)>;

// The attention whose second product is node `pv`, when nothing outside needs what lies between the products. `users`
// lists the nodes that read each value; `why` says what stands in the way where something that looks like one is none.
std::optional<Attention> find_attention(const graph::Graph& graph, graph::NodeId pv,
                                        const std::vector<std::vector<graph::NodeId>>& users,
                                        const std::vector<bool>& is_output, std::string& why);
AttentionShape attention_shape(const graph::Graph& graph, const Attention& a);

// The number that all elements of a constant are, at whatever shape it is broadcast to.
std::optional<double> one_number(const graph::Graph& graph, graph::ValueId v);

// x where v = x * c for a c that is one number, and that number's value; v itself and -1 elsewhere.
struct Scaled {
  graph::ValueId value = -1, factor = -1;
};
Scaled without_scale(const graph::Graph& graph, graph::ValueId v);

}  // namespace weft::loop
