// Gathers at indices that are known as arithmetic: they are slices.
#include <algorithm>
#include <memory>

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

// The elements that an index tensor names, as a run: those axes along which it moves, in row-major order.
struct IndexRun {
  Dim start, count;
  std::int64_t step = 1;
  std::vector<std::size_t> axes;  // of the index tensor, along which the index moves
};

std::optional<IndexRun> run_of(const DimFacts& facts, const Affine& index, const Shape& shape) {
  IndexRun run{index.base, 1, 1, {}};
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i].is(1) || index.coefficients[i].is(0)) continue;
    if (run.axes.empty()) {
      if (!index.coefficients[i].is_const() || index.coefficients[i].value() < 1) return std::nullopt;
      run.step = index.coefficients[i].value();
    } else if (run.step != 1 || !facts.known_equal(index.coefficients[i], run.count)) {
      return std::nullopt;
    }
    run.count = run.count * shape[i];
    run.axes.insert(run.axes.begin(), i);
  }
  return run;
}

// The run is known to lie within an axis of this size; a negative start counts from the end. An index that is out of
// range is an error when it is met, and stays one.
bool settle(const DimFacts& facts, IndexRun& run, const Dim& size) {
  if (facts.known_less(run.start, 0) && run.count.is(1)) run.start = run.start + size;
  const Dim end = facts.simplify(run.start + (run.count - 1) * Dim(run.step) + 1);
  return facts.known_less_equal(0, run.start) && facts.known_less_equal(end, size);
}

Answer gather_of_run(const RewriteContext& c) {
  if (c.node.op != GOp::Gather) return std::nullopt;
  graph::Builder& b = c.builder;
  const DimFacts& facts = b.graph().facts;
  const Shape index_shape = b.shape(c.operands[1]), x = b.shape(c.operands[0]);
  const std::int64_t axis = c.node.attrs.integer(Attr::Axis);
  const auto index = affine_of(b.graph(), c.operands[1]);
  if (!index) return std::nullopt;
  auto run = run_of(facts, *index, index_shape);
  if (!run || !settle(facts, *run, x[axis])) return std::nullopt;
  const ValueId taken = b.slice_axis(c.operands[0], axis, run->start, run->count, run->step);
  Shape split(x.begin(), x.begin() + axis);
  Axes axes;
  for (std::int64_t i = 0; i < axis; ++i) axes.push_back(i);
  for (std::size_t i : run->axes) {
    split.push_back(index_shape[i]);
    axes.push_back(axis + static_cast<std::int64_t>(i));
  }
  for (std::size_t i = axis + 1; i < x.size(); ++i) {
    split.push_back(x[i]);
    axes.push_back(static_cast<std::int64_t>(i + index_shape.size()) - 1);
  }
  const Shape to = result_type(c).shape;
  if (facts.known_equal(product(split), product(to))) return b.reshape(taken, to);
  return b.broadcast_in(b.reshape(taken, split), to, axes);
}

// The least and the largest element, where no coefficient is negative.
std::pair<Dim, Dim> bounds(const DimFacts& facts, const Affine& a, const Shape& shape) {
  Dim most = a.base;
  for (std::size_t i = 0; i < shape.size(); ++i) most = most + a.coefficients[i] * (shape[i] - 1);
  return {a.base, facts.simplify(most)};
}

// Elements that are all equal are so wherever they are read within range.
Answer gather_of_splat(const RewriteContext& c) {
  if (c.node.op != GOp::Gather && c.node.op != GOp::GatherElements) return std::nullopt;
  graph::Builder& b = c.builder;
  const DimFacts& facts = b.graph().facts;
  const Node* spread = operand_def(c, 0, GOp::Broadcast);
  if (!spread || !b.shape(spread->operands[0]).empty()) return std::nullopt;
  const auto index = affine_of(b.graph(), c.operands[1]);
  if (!index) return std::nullopt;
  for (const Dim& d : index->coefficients) {
    if (!facts.known_less_equal(0, d)) return std::nullopt;
  }
  const auto [least, most] = bounds(facts, *index, b.shape(c.operands[1]));
  const Dim size = b.shape(c.operands[0])[c.node.attrs.integer(Attr::Axis)];
  if (!facts.known_less_equal(0, least) || !facts.known_less_equal(most + 1, size)) return std::nullopt;
  return b.broadcast_in(spread->operands[0], result_type(c).shape, {});
}

// A comparison of indices that comes out alike everywhere.
Answer settled_comparison(const RewriteContext& c) {
  const GOp op = c.node.op;
  if (op != GOp::Lt && op != GOp::Le && op != GOp::Gt && op != GOp::Ge) return std::nullopt;
  graph::Builder& b = c.builder;
  const DimFacts& facts = b.graph().facts;
  auto x = affine_of(b.graph(), c.operands[0]), y = affine_of(b.graph(), c.operands[1]);
  if (!x || !y) return std::nullopt;
  if (op == GOp::Gt || op == GOp::Ge) std::swap(x, y);
  const bool strict = op == GOp::Lt || op == GOp::Gt;  // x < y or x <= y now
  const Shape& shape = b.shape(c.operands[0]);
  for (const Affine* a : {&*x, &*y}) {
    for (const Dim& d : a->coefficients) {
      if (!facts.known_less_equal(0, d)) return std::nullopt;
    }
  }
  const auto [x_least, x_most] = bounds(facts, *x, shape);
  const auto [y_least, y_most] = bounds(facts, *y, shape);
  const bool yes = strict ? facts.known_less(x_most, y_least) : facts.known_less_equal(x_most, y_least);
  const bool no = strict ? facts.known_less_equal(y_most, x_least) : facts.known_less(y_most, x_least);
  if (!yes && !no) return std::nullopt;
  return b.splat(result_type(c), yes ? 1 : 0);
}

// A constant of equal elements is one element spread out.
Answer constant_of_equals(const RewriteContext& c) {
  if (c.node.op != GOp::Constant) return std::nullopt;
  const Tensor& data = c.node.attrs.data(Attr::Data);
  if (data.rank() == 0 || data.size() < 1 || is_string(data.dtype()) || bits(data.dtype()) < 8) return std::nullopt;
  // Of equal elements the order does not matter: they are looked at where they lie.
  const std::size_t width = static_cast<std::size_t>(bits(data.dtype())) / 8;
  const char* bytes = static_cast<const char*>(data.deferred() ? data.deferred()->data : data.bytes());
  for (std::int64_t i = 1; i < data.size(); ++i) {
    if (!std::equal(bytes, bytes + width, bytes + static_cast<std::size_t>(i) * width)) return std::nullopt;
  }
  Tensor one = Tensor::view_anywhere(data.dtype(), {}, bytes, std::make_shared<Tensor>(data));
  return c.builder.broadcast_in(c.builder.constant(std::move(one)), result_type(c).shape, {});
}

}  // namespace

const std::vector<Rule>& index_rules() {
  static const std::vector<Rule> rules{
      {"gather-of-run", gather_of_run},
      {"gather-of-splat", gather_of_splat},
      {"settled-comparison", settled_comparison},
      {"constant-of-equals", constant_of_equals},
  };
  return rules;
}

}  // namespace weft::transform
