// Values stored with their axes in another order: what the layout pass thinks in. A transposition is then an order to
// remember instead of a node, and moves past whatever can work on the stored axes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/rewrite.h"

namespace weft::transform {

using Axes = std::vector<std::int64_t>;

// A value of the new graph that holds an old one: its axis k is the old value's axis order[k].
struct Form {
  graph::ValueId value = graph::kInvalid;
  Axes order;
};

Axes channels_last(std::size_t rank);       // 0, 2, ..., rank - 1, 1
Axes positions(const Axes& order);          // the inverse: where each axis is stored
bool is_identity(const Axes& order);
bool moves_only_ones(const Shape& shape, const Axes& order);  // such a transpose is a reshape

template <class T>
std::vector<T> permuted(const std::vector<T>& list, const Axes& order) {
  std::vector<T> out;
  for (std::int64_t axis : order) out.push_back(list[axis]);
  return out;
}

// x with result axis k = x axis order[k]; a reshape when only axes of size 1 move. Looks through a transpose.
graph::ValueId move_axes(graph::Builder& b, graph::ValueId x, const Axes& order);

// The forms of one graph's values while it is rewritten; ids are those of the old graph.
class Forms {
 public:
  // The order other than the plain one that the value was made in.
  const Form* stored(graph::ValueId old) const;
  // Remembers the form and gives the value in plain order, which dies when nobody uses it.
  graph::ValueId keep(const graph::RewriteContext& c, graph::ValueId old, Form form);
  graph::ValueId in_order(const graph::RewriteContext& c, graph::ValueId old, const Axes& order);
  // Whether that costs no pass over memory.
  bool is_free(const graph::RewriteContext& c, graph::ValueId old, const Axes& order) const;

 private:
  std::map<graph::ValueId, Form> stored_;
  std::map<std::pair<graph::ValueId, Axes>, graph::ValueId> made_;
};

// The node done on its operands' stored axes; nothing when no operand is stored otherwise or the op cannot.
std::optional<Form> follow(const graph::RewriteContext& c, Forms& forms);
// A reshape of the stored axes, when each run of axes that it joins or splits is stored together.
std::optional<Form> reshape_stored(graph::Builder& b, const Form& x, const Shape& from, const Shape& to);
// Whether follow() knows the op (a transpose counts).
bool is_transparent(graph::Op op);

}  // namespace weft::transform
