// Ops whose results are as long as the data say, in terms of others: a running sum numbers what stays, a scatter
// collects it. The one thing that the host does is to bind the size.
#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Attr;
using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;
using Values = std::vector<ValueId>;

namespace {

ValueId dim_value(Builder& b, const Dim& d) { return b.reshape(b.shape_value({d}), {}); }

ValueId scan_sum(Builder& b, ValueId x) {
  Attrs attrs;
  attrs.set(Attr::Axis, std::int64_t{0}).set(Attr::Exclusive, false).set(Attr::Reverse, false);
  return b.node(GOp::CumSum, {x}, std::move(attrs));
}

// x with updates at indices of its one axis.
ValueId scatter(Builder& b, ValueId x, ValueId indices, ValueId updates) {
  Attrs attrs;
  attrs.set(Attr::Axis, std::int64_t{0}).set(Attr::Combine, std::string("none"));
  return b.node(GOp::ScatterElements, {x, indices, updates}, std::move(attrs));
}

std::pair<ValueId, ValueId> sort(Builder& b, ValueId x) {
  Attrs attrs;
  attrs.set(Attr::Axis, std::int64_t{0}).set(Attr::Descending, false);
  const Values both = b.nodes(GOp::Sort, {x}, std::move(attrs));
  return {both[0], both[1]};
}

// Of a list of flags: the places of those that hold, and for every place the number of the last one up to it.
struct Kept {
  ValueId places;  // i64[count]
  ValueId number;  // i64[n]
};

Kept keep(Builder& b, ValueId flags, const Dim& count) {
  const Shape shape = b.shape(flags);
  const ValueId ones = b.cast(flags, DType::I64);
  Attrs binds;
  binds.set(Attr::Shape, Shape{count});
  b.nodes(GOp::Bind, {b.reduce(GOp::ReduceSum, ones, {0})}, std::move(binds));
  const ValueId number = b.binary(GOp::Sub, scan_sum(b, ones), b.scalar(DType::I64, 1));
  // What does not stay goes to one place behind the result.
  const ValueId to = b.select(flags, number, dim_value(b, count));
  const ValueId none = b.splat({DType::I64, {count + 1}}, 0);
  const ValueId all = scatter(b, none, to, b.iota(DType::I64, shape, 0));
  return {b.slice_axis(all, 0, 0, count), number};
}

ValueId flat(Builder& b, ValueId x) { return b.reshape(x, {product(b.shape(x))}); }

Values non_zero(const RewriteContext& c) {
  Builder& b = c.builder;
  const Shape shape = b.shape(c.operands[0]);
  const Dim count = c.node.attrs.dims(Attr::Symbol)[0];
  ValueId flags = flat(b, c.operands[0]);
  flags = b.cast(flags, DType::Bool);  // not a comparison: a dtype may have no zero
  ValueId rest = keep(b, flags, count).places;
  Values coordinates(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    const ValueId size = dim_value(b, shape[d]);
    coordinates[d] = b.reshape(d == 0 ? rest : b.binary(GOp::Mod, rest, size), {1, count});
    if (d > 0) rest = b.binary(GOp::Div, rest, size);
  }
  return {b.concat(std::move(coordinates), 0)};
}

// Whether each element of a sorted list differs from the one before; NaNs are alike.
ValueId starts(Builder& b, ValueId sorted) {
  const ValueId place = b.iota(DType::I64, b.shape(sorted), 0);
  const ValueId zero = b.like(place, 0);
  const ValueId before = b.binary(GOp::Max, b.binary(GOp::Sub, place, b.scalar(DType::I64, 1)), zero);
  const ValueId last = b.gather(sorted, before, 0);
  ValueId differ = b.binary(GOp::Ne, sorted, last);
  if (is_float(b.dtype(sorted))) {
    const ValueId nans = b.binary(GOp::And, b.unary(GOp::IsNan, sorted), b.unary(GOp::IsNan, last));
    differ = b.binary(GOp::And, differ, b.unary(GOp::Not, nans));
  }
  return b.binary(GOp::Or, differ, b.binary(GOp::Eq, place, zero));
}

Values unique(const RewriteContext& c) {
  Builder& b = c.builder;
  const ValueId x = flat(b, c.operands[0]);
  const Dim count = c.node.attrs.dims(Attr::Symbol)[0], n = b.shape(x)[0];
  const auto [sorted, order] = sort(b, x);
  const Kept kept = keep(b, starts(b, sorted), count);
  const ValueId ends = b.slice_axis(b.concat({kept.places, b.shape_value({n})}, 0), 0, 1, count);
  ValueId values = b.gather(sorted, kept.places, 0), first = b.gather(order, kept.places, 0);
  ValueId counts = b.binary(GOp::Sub, ends, kept.places);
  ValueId inverse = scatter(b, b.splat({DType::I64, {n}}, 0), order, kept.number);
  if (!c.node.attrs.flag(Attr::Sorted)) {  // in the order of their first places
    const auto [places, by_place] = sort(b, first);
    const ValueId rank = scatter(b, b.splat({DType::I64, {count}}, 0), by_place, b.iota(DType::I64, {count}, 0));
    values = b.gather(values, by_place, 0);
    counts = b.gather(counts, by_place, 0);
    inverse = b.gather(rank, inverse, 0);
    first = places;
  }
  return {values, first, inverse, counts};
}

}  // namespace

Result<Graph> expand_data_sizes(const Graph& graph, const PassOptions&) {
  return graph::Rewriter([](const RewriteContext& c) -> std::optional<Values> {
           if (c.operands.empty()) return std::nullopt;
           const graph::Type& x = c.from.type(c.node.operands[0]);
           if (is_string(x.dtype)) return std::nullopt;
           if (c.node.op == GOp::NonZero && x.rank() > 0) return non_zero(c);
           const bool list = !c.node.attrs.has(Attr::Axis) || x.rank() == 1;
           if (c.node.op == GOp::Unique && list) return unique(c);
           return std::nullopt;
         })
      .run(graph);
}

}  // namespace weft::transform
