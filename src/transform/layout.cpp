// Convolutions to channels-last, where lanes run over channels and no lane is wasted on odd widths. Transpositions are
// kept as orders to remember (forms.h) and become nodes only where something needs the plain order.
#include <algorithm>

#include "transform/forms.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// Below this many channels (of one group) lanes over them are mostly empty.
constexpr std::int64_t kFewChannels = 8;
// Operations per input element from which a transposed copy of the input is paid back.
constexpr std::int64_t kPayback = 16;

bool all(const Axes& list, std::int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](std::int64_t v) { return v == value; });
}
bool all(const Shape& list, std::int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](const Dim& d) { return d.is(value); });
}

std::int64_t multiplied(const Axes& list) {
  std::int64_t out = 1;
  for (std::int64_t v : list) {
    if (__builtin_mul_overflow(out, v, &out)) return INT64_MAX;
  }
  return out;
}

// What a channels-first convolution is about.
struct Conv {
  const Node& node;
  std::int64_t groups;
  Shape kernel;                 // spatial sizes of the weights
  std::int64_t out = 0, in = 0;  // channels of the result, of a group of the input; 0 when symbolic
  std::int64_t taps = 0;        // product of the kernel, 0 when symbolic

  explicit Conv(const Graph& g, const Node& n) : node(n), groups(n.attrs.integer(Attr::Groups)) {
    const Shape& w = g.type(n.operands[1]).shape;
    kernel.assign(w.begin() + 2, w.end());
    if (w[0].is_const()) out = w[0].value();
    if (w[1].is_const()) in = w[1].value();
    if (auto sizes = static_sizes(kernel)) taps = multiplied(*sizes);
  }
  bool depthwise() const { return groups > 1 && in == 1; }
  bool unpadded() const { return all(node.attrs.dims(Attr::Lo), 0) && all(node.attrs.dims(Attr::Hi), 0); }
  bool spread() const { return !all(node.attrs.ints(Attr::BaseDilations), 1); }
  bool pointwise() const { return groups == 1 && !kernel.empty() && all(kernel, 1) && unpadded() && !spread(); }
  // Each input element meets the kernel alone: the stride of a transposed convolution is its kernel.
  bool blocks() const {
    if (groups != 1 || !spread() || taps == 0 || !all(node.attrs.ints(Attr::Strides), 1)) return false;
    if (!all(node.attrs.ints(Attr::Dilations), 1)) return false;
    const Axes& base = node.attrs.ints(Attr::BaseDilations);
    for (std::size_t d = 0; d < base.size(); ++d) {
      if (!kernel[d].is(base[d])) return false;
      if (!node.attrs.dims(Attr::Lo)[d].is(base[d] - 1) || !node.attrs.dims(Attr::Hi)[d].is(base[d] - 1)) return false;
    }
    return true;
  }
};

bool pays(const RewriteContext& c, const Conv& conv, const Forms& forms, const Axes& order) {
  if (conv.out == 0 || conv.taps == 0 || conv.kernel.empty()) return false;
  const bool near = forms.is_free(c, conv.node.operands[0], order);
  if (near && (conv.pointwise() || conv.blocks())) return true;
  const std::int64_t lanes = conv.depthwise() ? conv.out : conv.out / conv.groups;
  if (lanes < kFewChannels) return near && !conv.depthwise() && conv.in >= kFewChannels;  // lanes sum over the input's
  if (near || conv.depthwise()) return near;
  const double work = 2.0 * static_cast<double>(conv.out / conv.groups) * static_cast<double>(conv.taps);
  return work / static_cast<double>(multiplied(conv.node.attrs.ints(Attr::Strides))) >= kPayback;
}

// x [N, D..., C] . w [C, O], of every stride-th x
ValueId pointwise(const RewriteContext& c, ValueId x, ValueId w) {
  graph::Builder& b = c.builder;
  const Axes& strides = c.node.attrs.ints(Attr::Strides);
  const auto rank = static_cast<std::int64_t>(strides.size()) + 2;
  if (!all(strides, 1)) {
    Shape sizes = b.shape(x);
    Axes steps(rank, 1);
    for (std::size_t d = 0; d < strides.size(); ++d) {
      steps[1 + d] = strides[d];
      sizes[1 + d] = b.graph().facts.simplify(ceil_div(sizes[1 + d], Dim(strides[d])));
    }
    x = b.slice(x, Shape(rank, Dim(0)), sizes, steps);
  }
  w = b.reshape(w, {b.shape(w)[rank - 2], b.shape(w)[rank - 1]});
  return b.dot(x, w, {}, {}, {rank - 1}, {0}, c.node.attrs.dtype(Attr::DType));
}

// Every input element makes a block of outputs: x [N, D..., C] . w [k..., C, O] with the kernel mirrored, then depth to
// space.
ValueId blocks(const RewriteContext& c, ValueId x, ValueId w) {
  graph::Builder& b = c.builder;
  const Axes& base = c.node.attrs.ints(Attr::BaseDilations);
  const auto spatial = static_cast<std::int64_t>(base.size());
  Axes mirrored, order{0};
  for (std::int64_t d = 0; d < spatial; ++d) mirrored.push_back(d);
  w = b.node(GOp::Reverse, {w}, Attrs().set(Attr::Axes, mirrored));
  // [N, D..., k..., O] -> [N, D, k, ..., O]
  const ValueId y = b.dot(x, w, {}, {}, {spatial + 1}, {spatial}, c.node.attrs.dtype(Attr::DType));
  Shape joined{b.shape(x)[0]};
  for (std::int64_t d = 0; d < spatial; ++d) {
    order.push_back(1 + d);
    order.push_back(1 + spatial + d);
    joined.push_back(b.shape(x)[1 + d] * base[d]);
  }
  order.push_back(1 + 2 * spatial);
  joined.push_back(b.shape(w)[spatial + 1]);
  return b.reshape(move_axes(b, y, order), joined);
}

// A few channels that lie apart are read as well where they are: then the copy keeps the order of its source.
ValueId padded(const RewriteContext& c, const Conv& conv, ValueId x, const Shape& lo, const Shape& hi) {
  graph::Builder& b = c.builder;
  const ValueId zero = b.scalar(b.dtype(x), 0);
  const Node* moved = b.graph().def(x);
  if (conv.groups != 1 || conv.in >= kFewChannels || !moved || moved->op != GOp::Transpose) return b.pad(x, lo, hi, zero);
  const Axes axes = moved->attrs.ints(Attr::Axes);
  const ValueId source = moved->operands[0];
  Shape source_lo = lo, source_hi = hi;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    source_lo[axes[d]] = lo[d];
    source_hi[axes[d]] = hi[d];
  }
  return b.transpose(b.pad(source, source_lo, source_hi, zero), axes);
}

// Bytes are read in words of channels: what surrounds the input is added after its channels have become the last axis.
ValueId channels_turned(graph::Builder& b, ValueId x) {
  const Node* moved = b.graph().def(x);
  if (!moved || moved->op != GOp::Transpose) return x;
  const Axes axes = moved->attrs.ints(Attr::Axes);
  const Node* found = b.graph().def(moved->operands[0]);
  if (!found || found->op != GOp::Pad) return x;
  const Node pad = *found;
  Attrs attrs = pad.attrs;
  for (const Attr side : {Attr::Lo, Attr::Hi}) {
    Shape turned;
    for (std::int64_t axis : axes) turned.push_back(pad.attrs.dims(side)[axis]);
    attrs.set(side, turned);
  }
  std::vector<ValueId> operands = pad.operands;
  operands[0] = channels_turned(b, b.transpose(operands[0], axes));
  return b.node(GOp::Pad, operands, attrs);
}

ValueId windowed(const RewriteContext& c, const Conv& conv, ValueId x, ValueId w) {
  graph::Builder& b = c.builder;
  Attrs attrs = c.node.attrs;
  attrs.set(Attr::ChannelsLast, true);
  Shape lo = attrs.dims(Attr::Lo), hi = attrs.dims(Attr::Hi);
  // A padded copy of the input costs less than masks in the kernel, depthwise ones included.
  bool extends = conv.taps > 1 && !conv.spread() && !conv.unpadded();
  for (const Shape& side : {lo, hi}) {
    for (const Dim& d : side) extends = extends && b.graph().facts.range(d).lo >= 0;
  }
  if (extends) {
    const Shape none(lo.size(), Dim(0));
    attrs.set(Attr::Lo, none).set(Attr::Hi, none);
    for (Shape* side : {&lo, &hi}) {
      side->insert(side->begin(), Dim(0));
      side->push_back(Dim(0));
    }
    x = padded(c, conv, x, lo, hi);
  }
  return b.node(GOp::Conv, {x, w}, std::move(attrs));
}

class Layout {
 public:
  std::optional<std::vector<ValueId>> operator()(const RewriteContext& c) {
    State& state = states_[&c.from];
    if (&c.node == c.from.nodes().data()) begin(state, c.from);
    if (c.node.results.size() != 1) return std::nullopt;
    std::optional<Form> form = c.node.op == GOp::Conv ? convolution(c, state.forms) : follow(c, state.forms);
    if (!form && c.node.op == GOp::Transpose && state.wanted[c.node.results[0]]) {
      form = Form{c.operands[0], positions(c.node.attrs.ints(Attr::Axes))};
    }
    if (!form) return std::nullopt;
    return std::vector<ValueId>{state.forms.keep(c, c.node.results[0], std::move(*form))};
  }

 private:
  struct State {
    Forms forms;
    // Values that meet a convolution's input or result through what follow() knows: the order that a transpose gave
    // them is worth remembering.
    std::vector<bool> wanted;
  };
  static void begin(State& state, const Graph& from);
  static std::optional<Form> convolution(const RewriteContext& c, Forms& forms);

  std::map<const Graph*, State> states_;  // regions are rewritten in the middle of the graph around them
};

void Layout::begin(State& state, const Graph& from) {
  state.forms = Forms();
  state.wanted.assign(from.values().size(), false);
  std::vector<bool> made(from.values().size());  // from a convolution's result
  for (const Node& node : from.nodes()) {
    if (node.results.size() != 1) continue;
    bool is = node.op == GOp::Conv;
    if (is_transparent(node.op)) {
      is = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) { return made[v]; });
    }
    made[node.results[0]] = is;
  }
  for (std::size_t i = from.nodes().size(); i-- > 0;) {
    const Node& node = from.nodes()[i];
    if (node.op == GOp::Conv) state.wanted[node.operands[0]] = true;
    if (node.results.size() != 1 || !is_transparent(node.op)) continue;
    const bool meets = node.operands.size() > 1 && made[node.results[0]];
    if (!meets && !state.wanted[node.results[0]]) continue;
    for (ValueId v : node.operands) state.wanted[v] = true;
  }
}

std::optional<Form> Layout::convolution(const RewriteContext& c, Forms& forms) {
  if (c.node.attrs.flag(Attr::ChannelsLast)) return std::nullopt;
  const Conv conv(c.from, c.node);
  const std::size_t rank = conv.kernel.size() + 2;
  const Axes order = channels_last(rank);
  if (!pays(c, conv, forms, order)) return std::nullopt;
  ValueId x = forms.in_order(c, c.node.operands[0], order);
  if (bits(c.builder.dtype(x)) == 8) x = channels_turned(c.builder, x);
  Axes weights;
  for (std::size_t axis = 2; axis < rank; ++axis) weights.push_back(static_cast<std::int64_t>(axis));
  weights.insert(weights.end(), {1, 0});
  const ValueId w = move_axes(c.builder, c.operands[1], weights);
  if (conv.pointwise()) return Form{pointwise(c, x, w), order};
  if (conv.blocks()) return Form{blocks(c, x, w), order};
  return Form{windowed(c, conv, x, w), order};
}

}  // namespace

Result<Graph> choose_layouts(const Graph& graph, const PassOptions&) {
  Graph current = WEFT_TRY(graph::Rewriter(Layout()).run(graph));
  return graph::dce(current);
}

}  // namespace weft::transform
