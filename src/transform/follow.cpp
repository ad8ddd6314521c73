// How each op works on operands whose axes are stored in another order.
#include <algorithm>

#include "transform/forms.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

using Followed = std::optional<Form>;

void permute_ints(Attrs& attrs, Attr key, const Axes& order) { attrs.set(key, permuted(attrs.ints(key), order)); }
void permute_dims(Attrs& attrs, Attr key, const Axes& order) { attrs.set(key, permuted(attrs.dims(key), order)); }

ValueId emit(const RewriteContext& c, std::vector<ValueId> operands, Attrs attrs) {
  return c.builder.node(c.node.op, std::move(operands), std::move(attrs));
}

// The order that the operands agree on: the first that is stored otherwise has its way.
const Axes* common_order(const RewriteContext& c, const Forms& forms) {
  for (ValueId v : c.node.operands) {
    if (const Form* form = forms.stored(v)) return &form->order;
  }
  return nullptr;
}

Followed elementwise(const RewriteContext& c, Forms& forms) {
  const Axes* common = common_order(c, forms);
  if (!common) return std::nullopt;
  const Axes order = *common;
  std::vector<ValueId> operands;
  for (ValueId v : c.node.operands) operands.push_back(forms.in_order(c, v, order));
  return Form{emit(c, std::move(operands), c.node.attrs), order};
}

Followed concat(const RewriteContext& c, Forms& forms) {
  const Axes* common = common_order(c, forms);
  if (!common) return std::nullopt;
  const Axes order = *common;
  std::vector<ValueId> operands;
  for (ValueId v : c.node.operands) operands.push_back(forms.in_order(c, v, order));
  Attrs attrs = c.node.attrs;
  attrs.set(Attr::Axis, positions(order)[attrs.integer(Attr::Axis)]);
  return Form{emit(c, std::move(operands), std::move(attrs)), order};
}

Followed slice(const RewriteContext& c, const Form& x) {
  Attrs attrs = c.node.attrs;
  permute_dims(attrs, Attr::Starts, x.order);
  permute_dims(attrs, Attr::Sizes, x.order);
  permute_ints(attrs, Attr::Steps, x.order);
  return Form{emit(c, {x.value}, std::move(attrs)), x.order};
}

Followed pad(const RewriteContext& c, const Form& x) {
  Attrs attrs = c.node.attrs;
  permute_dims(attrs, Attr::Lo, x.order);
  permute_dims(attrs, Attr::Hi, x.order);
  return Form{emit(c, {x.value, c.operands[1]}, std::move(attrs)), x.order};
}

Followed window(const RewriteContext& c, const Form& x) {
  Attrs attrs = c.node.attrs;
  for (Attr key : {Attr::Window, Attr::Strides, Attr::Dilations}) permute_ints(attrs, key, x.order);
  for (Attr key : {Attr::Lo, Attr::Hi}) permute_dims(attrs, key, x.order);
  return Form{emit(c, {x.value}, std::move(attrs)), x.order};
}

Followed reverse(const RewriteContext& c, const Form& x) {
  Attrs attrs = c.node.attrs;
  Axes axes = permuted(positions(x.order), attrs.ints(Attr::Axes));
  std::sort(axes.begin(), axes.end());
  attrs.set(Attr::Axes, std::move(axes));
  return Form{emit(c, {x.value}, std::move(attrs)), x.order};
}

// The order without some axes, the others renumbered.
Axes without(const Axes& order, const Axes& gone) {
  Axes left;
  for (std::int64_t axis : order) {
    if (std::count(gone.begin(), gone.end(), axis)) continue;
    left.push_back(axis - std::count_if(gone.begin(), gone.end(), [&](std::int64_t g) { return g < axis; }));
  }
  return left;
}

Followed reduce(const RewriteContext& c, const Form& x) {
  Attrs attrs = c.node.attrs;
  const bool one = attrs.has(Attr::Axis);
  const Axes gone = one ? Axes{attrs.integer(Attr::Axis)} : attrs.ints(Attr::Axes);
  Axes axes = permuted(positions(x.order), gone);
  std::sort(axes.begin(), axes.end());
  if (one) {
    attrs.set(Attr::Axis, axes[0]);
  } else {
    attrs.set(Attr::Axes, std::move(axes));
  }
  return Form{emit(c, {x.value}, std::move(attrs)), without(x.order, gone)};
}

Followed gather(const RewriteContext& c, const Form& x) {
  const std::size_t rank = c.builder.shape(c.operands[1]).size();
  if (rank > 1) return std::nullopt;
  Attrs attrs = c.node.attrs;
  const std::int64_t axis = attrs.integer(Attr::Axis);
  attrs.set(Attr::Axis, positions(x.order)[axis]);
  Axes order = rank == 1 ? x.order : without(x.order, {axis});
  return Form{emit(c, {x.value, c.operands[1]}, std::move(attrs)), std::move(order)};
}

Followed transpose(const RewriteContext& c, const Form& x) {
  return Form{x.value, permuted(positions(c.node.attrs.ints(Attr::Axes)), x.order)};
}

// Runs of axes on both sides of a reshape that hold the same elements.
struct Run {
  std::size_t from, from_end, to, to_end;
};

std::optional<std::vector<Run>> aligned(const DimFacts& facts, const Shape& from, const Shape& to) {
  std::vector<Run> runs;
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    bool found = false;
    const std::size_t longest = from.size() - i + to.size() - j;
    for (std::size_t total = 2; total <= longest && !found; ++total) {
      for (std::size_t k = 1; k < total && !found; ++k) {
        const std::size_t l = total - k;
        if (i + k > from.size() || j + l > to.size()) continue;
        const Dim a = product(Shape(from.begin() + i, from.begin() + i + k));
        const Dim b = product(Shape(to.begin() + j, to.begin() + j + l));
        if (!facts.known_equal(a, b)) continue;
        runs.push_back({i, i + k, j, j + l});
        i += k;
        j += l;
        found = true;
      }
    }
    if (!found) return std::nullopt;
  }
  const auto one = [](const Dim& d) { return d.is(1); };
  if (!std::all_of(from.begin() + i, from.end(), one) || !std::all_of(to.begin() + j, to.end(), one)) return std::nullopt;
  if (runs.empty()) return std::nullopt;
  runs.back().from_end = from.size();
  runs.back().to_end = to.size();
  return runs;
}

// Where a run is stored, when its axes (those of size 1 aside) stand together in order.
std::optional<std::int64_t> place(const Run& run, const Shape& shape, const Axes& order) {
  const Axes at = positions(order);
  std::int64_t first = -1, last = -1;
  for (std::size_t axis = run.from; axis < run.from_end; ++axis) {
    if (shape[axis].is(1)) continue;
    if (first < 0) first = at[axis];
    for (std::int64_t k = last + 1; last >= 0 && k < at[axis]; ++k) {
      if (!shape[order[k]].is(1)) return std::nullopt;
    }
    if (at[axis] < last) return std::nullopt;
    last = at[axis];
  }
  return first < 0 ? at[run.from] : first;
}

Followed reshape(const RewriteContext& c, const Form& x) {
  return reshape_stored(c.builder, x, c.from.type(c.node.operands[0]).shape, c.from.type(c.node.results[0]).shape);
}

struct Follower {
  GOp op;
  Followed (*apply)(const RewriteContext&, const Form& x);  // x: operand 0
};

constexpr Follower kFollowers[] = {
    {GOp::Slice, slice},           {GOp::Pad, pad},          {GOp::WindowSum, window},  {GOp::WindowMax, window},
    {GOp::Reverse, reverse},       {GOp::ReduceSum, reduce}, {GOp::ReduceProd, reduce}, {GOp::ReduceMax, reduce},
    {GOp::ReduceMin, reduce},      {GOp::ReduceAnd, reduce}, {GOp::ReduceOr, reduce},   {GOp::ArgMax, reduce},
    {GOp::ArgMin, reduce},         {GOp::Gather, gather},    {GOp::Transpose, transpose},
    {GOp::Reshape, reshape},
};

}  // namespace

std::optional<Form> reshape_stored(graph::Builder& b, const Form& x, const Shape& from, const Shape& to) {
  const auto runs = aligned(b.graph().facts, from, to);
  if (!runs) return std::nullopt;
  std::vector<std::pair<std::int64_t, const Run*>> sorted;
  for (const Run& run : *runs) {
    const auto where = place(run, from, x.order);
    if (!where) return std::nullopt;
    sorted.emplace_back(*where, &run);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Axes order;
  for (const auto& [where, run] : sorted) {
    for (std::size_t axis = run->to; axis < run->to_end; ++axis) order.push_back(static_cast<std::int64_t>(axis));
  }
  const ValueId value = b.reshape(x.value, permuted(to, order));
  return Form{value, std::move(order)};
}

bool is_transparent(GOp op) {
  if (info(op).elementwise || op == GOp::Concat) return true;
  return std::any_of(std::begin(kFollowers), std::end(kFollowers), [&](const Follower& f) { return f.op == op; });
}

std::optional<Form> follow(const RewriteContext& c, Forms& forms) {
  if (info(c.node.op).elementwise) return elementwise(c, forms);
  if (c.node.op == GOp::Concat) return concat(c, forms);
  for (const Follower& f : kFollowers) {
    if (f.op != c.node.op) continue;
    const Form* x = forms.stored(c.node.operands[0]);
    return x ? f.apply(c, Form(*x)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace weft::transform
