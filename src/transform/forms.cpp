#include "transform/forms.h"

#include <algorithm>
#include <numeric>

namespace weft::transform {

using graph::Attr;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

Axes channels_last(std::size_t rank) {
  Axes order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Axes positions(const Axes& order) {
  Axes at(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) at[order[k]] = static_cast<std::int64_t>(k);
  return at;
}

bool is_identity(const Axes& order) { return std::is_sorted(order.begin(), order.end()); }

bool moves_only_ones(const Shape& shape, const Axes& order) {
  std::int64_t last = -1;
  for (std::int64_t axis : order) {
    if (shape[axis].is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

namespace {

bool spreads(const Node* node) {
  return node && (node->op == GOp::Broadcast || node->op == GOp::Iota || node->op == GOp::Constant);
}

}  // namespace

ValueId move_axes(graph::Builder& b, ValueId x, const Axes& order) {
  if (x < 0 || is_identity(order)) return x;
  if (moves_only_ones(b.shape(x), order)) return b.reshape(x, permuted(b.shape(x), order));
  const Node* def = b.graph().def(x);
  if (!def || def->op != GOp::Transpose) return b.transpose(x, order);
  const ValueId inner = def->operands[0];
  return move_axes(b, inner, permuted(def->attrs.ints(Attr::Axes), order));
}

const Form* Forms::stored(ValueId old) const {
  auto it = stored_.find(old);
  return it == stored_.end() ? nullptr : &it->second;
}

ValueId Forms::keep(const RewriteContext& c, ValueId old, Form form) {
  // The same sizes may be spelt differently than in the old graph, which the nodes after this one go by.
  form.value = c.builder.reshape(form.value, permuted(c.from.type(old).shape, form.order));
  if (is_identity(form.order)) return form.value;
  const ValueId plain = move_axes(c.builder, form.value, positions(form.order));
  made_[{old, form.order}] = form.value;
  stored_[old] = std::move(form);
  return plain;
}

bool Forms::is_free(const RewriteContext& c, ValueId old, const Axes& order) const {
  const Form* form = stored(old);
  if (form && form->order == order) return true;
  return moves_only_ones(c.from.type(old).shape, order) || spreads(c.from.def(old));
}

ValueId Forms::in_order(const RewriteContext& c, ValueId old, const Axes& order) {
  if (is_identity(order)) return c.values[old];
  auto known = made_.find({old, order});
  if (known != made_.end()) return known->second;
  graph::Builder& b = c.builder;
  const Node* def = c.from.def(old);
  ValueId made = graph::kInvalid;
  if (def && def->op == GOp::Broadcast) {
    // The operand's axes in the order in which the result's axes stand.
    const Axes& axes = def->attrs.ints(Attr::Axes);
    const Axes at = positions(order);
    Axes inner(axes.size());
    std::iota(inner.begin(), inner.end(), 0);
    std::sort(inner.begin(), inner.end(), [&](std::int64_t i, std::int64_t j) { return at[axes[i]] < at[axes[j]]; });
    Axes to;
    for (std::int64_t i : inner) to.push_back(at[axes[i]]);
    made = b.broadcast_in(in_order(c, def->operands[0], inner), permuted(def->attrs.dims(Attr::Shape), order), to);
  } else if (def && def->op == GOp::Iota) {
    made = b.iota(def->attrs.dtype(Attr::DType), permuted(def->attrs.dims(Attr::Shape), order),
                  positions(order)[def->attrs.integer(Attr::Axis)]);
  } else {
    made = move_axes(b, c.values[old], order);
  }
  return made_[{old, order}] = made;
}

}  // namespace weft::transform
