// Reshapes, transposes, broadcasts, slices, concatenations that cancel or merge.
#include <algorithm>

#include "graph/infer/infer.h"
#include "transform/forms.h"
#include "transform/rules/match.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// A transpose of a transpose, or one that moves nothing or only axes of size 1.
Answer transpose(const RewriteContext& c) {
  if (c.node.op != GOp::Transpose) return std::nullopt;
  const Axes& axes = c.node.attrs.ints(Attr::Axes);
  const bool other = operand_def(c, 0, GOp::Transpose) || moves_only_ones(c.builder.shape(c.operands[0]), axes);
  return other ? Answer(move_axes(c.builder, c.operands[0], axes)) : std::nullopt;
}

Answer transpose_of_broadcast(const RewriteContext& c) {
  const Node* spread = c.node.op == GOp::Transpose ? operand_def(c, 0, GOp::Broadcast) : nullptr;
  if (!spread) return std::nullopt;
  const Axes at = positions(c.node.attrs.ints(Attr::Axes));
  Axes axes = permuted(at, spread->attrs.ints(Attr::Axes));
  if (!std::is_sorted(axes.begin(), axes.end())) return std::nullopt;
  return c.builder.broadcast_in(spread->operands[0], result_type(c).shape, axes);
}

// A reshape that changes nothing, or of a reshape.
Answer reshape(const RewriteContext& c) {
  if (c.node.op != GOp::Reshape) return std::nullopt;
  const DimFacts& facts = c.builder.graph().facts;
  const Shape& to = result_type(c).shape;
  const Shape middle = c.builder.shape(c.operands[0]);
  if (graph::known_equal(facts, middle, to)) return c.operands[0];
  const Node* inner = operand_def(c, 0, GOp::Reshape);
  // The middle shape may be a claim about sizes that is checked when they are known: it stays then.
  if (!inner || !facts.known_equal(product(c.builder.shape(inner->operands[0])), product(middle))) return std::nullopt;
  return c.builder.reshape(inner->operands[0], to);
}

// reshape(transpose(reshape(x))): the two reshapes meet when the outer one keeps the transposed axes apart.
Answer reshape_past_transpose(const RewriteContext& c) {
  const Node* moved = c.node.op == GOp::Reshape ? operand_def(c, 0, GOp::Transpose) : nullptr;
  const Graph& g = c.builder.graph();
  if (!moved || !g.def(moved->operands[0]) || g.def(moved->operands[0])->op != GOp::Reshape) return std::nullopt;
  const ValueId inner = moved->operands[0];
  const Form stored{inner, positions(moved->attrs.ints(Attr::Axes))};
  const auto form = reshape_stored(c.builder, stored, Shape(c.builder.shape(c.operands[0])), result_type(c).shape);
  if (!form) return std::nullopt;
  return move_axes(c.builder, form->value, positions(form->order));
}

// One element spread out has any shape.
Answer movement_of_splat(const RewriteContext& c) {
  switch (c.node.op) {
    case GOp::Reshape:
    case GOp::Transpose:
    case GOp::Slice:
    case GOp::Reverse: break;
    default: return std::nullopt;
  }
  const Node* spread = operand_def(c, 0, GOp::Broadcast);
  if (!spread || !c.builder.shape(spread->operands[0]).empty()) return std::nullopt;
  const DimFacts& facts = c.builder.graph().facts;
  const bool claims = c.node.op == GOp::Reshape &&
                      !facts.known_equal(product(c.builder.shape(c.operands[0])), product(result_type(c).shape));
  return claims ? std::nullopt : Answer(c.builder.broadcast_in(spread->operands[0], result_type(c).shape, {}));
}

// A broadcast that changes nothing, or of a broadcast.
Answer broadcast(const RewriteContext& c) {
  if (c.node.op != GOp::Broadcast) return std::nullopt;
  const Shape& to = result_type(c).shape;
  if (graph::known_equal(c.builder.graph().facts, c.builder.shape(c.operands[0]), to)) return c.operands[0];
  const Node* inner = operand_def(c, 0, GOp::Broadcast);
  if (!inner) return std::nullopt;
  const Axes axes = permuted(c.node.attrs.ints(Attr::Axes), inner->attrs.ints(Attr::Axes));
  return c.builder.broadcast_in(inner->operands[0], to, axes);
}

// Axes of size 1 put in before a broadcast: the broadcast puts them in.
Answer broadcast_of_ones(const RewriteContext& c) {
  const Node* inner = c.node.op == GOp::Broadcast ? operand_def(c, 0, GOp::Reshape) : nullptr;
  if (!inner) return std::nullopt;
  const Shape from = c.builder.shape(inner->operands[0]);
  const Shape middle = c.builder.shape(c.operands[0]);
  Axes axes;
  std::size_t i = 0;
  for (std::size_t j = 0; j < middle.size(); ++j) {
    if (middle[j].is(1)) continue;
    if (i == from.size() || !c.builder.graph().facts.known_equal(from[i], middle[j])) return std::nullopt;
    axes.push_back(c.node.attrs.ints(Attr::Axes)[j]);
    ++i;
  }
  if (i != from.size()) return std::nullopt;
  return c.builder.broadcast_in(inner->operands[0], result_type(c).shape, axes);
}

// A slice of everything, or of a slice.
Answer slice(const RewriteContext& c) {
  if (c.node.op != GOp::Slice) return std::nullopt;
  const Attrs& attrs = c.node.attrs;
  const Node* inner = operand_def(c, 0, GOp::Slice);
  Shape starts = attrs.dims(Attr::Starts);
  Axes steps = attrs.ints(Attr::Steps);
  if (inner) {
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::int64_t step = inner->attrs.ints(Attr::Steps)[i];
      starts[i] = inner->attrs.dims(Attr::Starts)[i] + starts[i] * Dim(step);
      if (__builtin_mul_overflow(steps[i], step, &steps[i])) return std::nullopt;
    }
    return c.builder.slice(inner->operands[0], starts, attrs.dims(Attr::Sizes), steps);
  }
  const ValueId same = c.operands[0];
  const auto zero = [](const Dim& d) { return d.is(0); };
  if (!std::all_of(starts.begin(), starts.end(), zero)) return std::nullopt;
  if (!std::all_of(steps.begin(), steps.end(), [](std::int64_t s) { return s == 1; })) return std::nullopt;
  return graph::known_equal(c.builder.graph().facts, c.builder.shape(same), attrs.dims(Attr::Sizes)) ? Answer(same) : std::nullopt;
}

// A slice that lies within one operand of a concatenation.
Answer slice_of_concat(const RewriteContext& c) {
  const Node* joined = c.node.op == GOp::Slice ? operand_def(c, 0, GOp::Concat) : nullptr;
  if (!joined) return std::nullopt;
  const DimFacts& facts = c.builder.graph().facts;
  const std::int64_t axis = joined->attrs.integer(Attr::Axis);
  Shape starts = c.node.attrs.dims(Attr::Starts);
  const Axes& steps = c.node.attrs.ints(Attr::Steps);
  const Dim size = c.node.attrs.dims(Attr::Sizes)[axis];
  if (steps[axis] < 1 || !facts.known_less(0, size)) return std::nullopt;
  const Dim end = starts[axis] + (size - 1) * Dim(steps[axis]) + 1;
  Dim offset = 0;
  for (const ValueId part : std::vector<ValueId>(joined->operands)) {
    const Dim next = offset + c.builder.shape(part)[axis];
    if (facts.known_less_equal(offset, starts[axis]) && facts.known_less_equal(end, next)) {
      starts[axis] = starts[axis] - offset;
      return c.builder.slice(part, starts, c.node.attrs.dims(Attr::Sizes), steps);
    }
    offset = next;
  }
  return std::nullopt;
}

// Whether b starts where a ends: contiguous slices of one value along the axis, alike on the others.
bool continues(const Graph& g, ValueId a, ValueId b, std::int64_t axis) {
  const Node* x = g.def(a);
  const Node* y = g.def(b);
  if (!x || !y || x->op != GOp::Slice || y->op != GOp::Slice || x->operands[0] != y->operands[0]) return false;
  if (x->attrs.ints(Attr::Steps) != y->attrs.ints(Attr::Steps) || x->attrs.ints(Attr::Steps)[axis] != 1) return false;
  Shape starts = x->attrs.dims(Attr::Starts), sizes = x->attrs.dims(Attr::Sizes);
  starts[axis] = starts[axis] + sizes[axis];
  sizes[axis] = y->attrs.dims(Attr::Sizes)[axis];
  return graph::known_equal(g.facts, starts, y->attrs.dims(Attr::Starts)) &&
         graph::known_equal(g.facts, sizes, y->attrs.dims(Attr::Sizes));
}

// A concatenation of one, with empty operands, or of slices that continue each other.
Answer concat(const RewriteContext& c) {
  if (c.node.op != GOp::Concat) return std::nullopt;
  if (c.operands.size() == 1) return c.operands[0];
  graph::Builder& b = c.builder;
  const std::int64_t axis = c.node.attrs.integer(Attr::Axis);
  std::vector<ValueId> parts;
  for (ValueId v : c.operands) {
    if (b.shape(v)[axis].is(0)) continue;
    if (!parts.empty() && continues(b.graph(), parts.back(), v, axis)) {
      const Node first = *b.graph().def(parts.back());
      Shape sizes = first.attrs.dims(Attr::Sizes);
      sizes[axis] = sizes[axis] + b.shape(v)[axis];
      parts.back() = b.slice(first.operands[0], first.attrs.dims(Attr::Starts), sizes, first.attrs.ints(Attr::Steps));
    } else {
      parts.push_back(v);
    }
  }
  if (parts.empty()) return c.operands[0];
  return parts.size() == c.operands.size() ? std::nullopt : Answer(b.concat(parts, axis));
}

Answer empty_pad(const RewriteContext& c) {
  if (c.node.op != GOp::Pad) return std::nullopt;
  const auto zero = [](const Dim& d) { return d.is(0); };
  for (Attr side : {Attr::Lo, Attr::Hi}) {
    const Shape& sizes = c.node.attrs.dims(side);
    if (!std::all_of(sizes.begin(), sizes.end(), zero)) return std::nullopt;
  }
  return c.operands[0];
}

}  // namespace

const std::vector<Rule>& movement_rules() {
  static const std::vector<Rule> rules{
      {"transpose", transpose},
      {"transpose-of-broadcast", transpose_of_broadcast},
      {"reshape", reshape},
      {"reshape-past-transpose", reshape_past_transpose},
      {"movement-of-splat", movement_of_splat},
      {"broadcast", broadcast},
      {"broadcast-of-ones", broadcast_of_ones},
      {"slice", slice},
      {"slice-of-concat", slice_of_concat},
      {"concat", concat},
      {"empty-pad", empty_pad},
  };
  return rules;
}

}  // namespace weft::transform
