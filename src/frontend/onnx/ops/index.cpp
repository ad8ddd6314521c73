// Gathers, scatters, sorting, cumulative operators, ranges and masks.
#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

Result<void> gather(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  c.out(0, c.b.gather(c.in(0), c.in(1), axis));
  return {};
}

Result<void> gather_elements(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  c.out(0, c.b.node(Op::GatherElements, {c.in(0), c.in(1)}, Attrs().set(Attr::Axis, axis)));
  return {};
}

Result<void> gather_nd(NodeContext& c) {
  c.out(0, c.b.node(Op::GatherNd, {c.in(0), c.in(1)}, Attrs().set(Attr::Batch, c.integer("batch_dims", 0))));
  return {};
}

Result<void> scatter_elements(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  Attrs attrs;
  attrs.set(Attr::Axis, axis).set(Attr::Combine, c.text("reduction", "none"));
  const ValueId updates = c.b.assert_shape(c.in(2), c.shape(1));
  c.out(0, c.b.node(Op::ScatterElements, {c.in(0), c.in(1), updates}, std::move(attrs)));
  return {};
}

Result<void> scatter_nd(NodeContext& c) {
  Attrs attrs;
  attrs.set(Attr::Combine, c.text("reduction", "none"));
  ValueId indices = c.in(1);
  // How many coordinates an index has follows from the ranks.
  if (int rank = c.rank(1); rank > 0 && !c.shape(1).back().is_const()) {
    Shape shape = c.shape(1);
    shape.back() = c.rank(0) - (c.rank(2) - (rank - 1));
    indices = c.b.reshape(indices, shape);
  }
  // One slice of the data for each index.
  Shape slices = c.b.shape(indices);
  const Dim depth = slices.empty() ? Dim(0) : slices.back();
  if (!slices.empty()) slices.pop_back();
  if (depth.is_const() && depth.value() >= 0 && depth.value() <= c.rank(0)) {
    slices.insert(slices.end(), c.shape(0).begin() + depth.value(), c.shape(0).end());
  }
  const ValueId updates = c.b.assert_shape(c.in(2), slices);
  c.out(0, c.b.node(Op::ScatterNd, {c.in(0), indices, updates}, std::move(attrs)));
  return {};
}

Result<void> top_k(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", -1), c.rank(0)));
  Dim k;
  if (c.opset() < 10) {
    k = c.integer("k", 0);
  } else {
    Shape dims = WEFT_TRY(c.dims_or_bind(1, "k"));
    if (dims.size() != 1) return c.bad("K must have one element");
    k = dims[0];
  }
  if (c.b.graph().facts.known_less(c.shape(0)[axis], k)) {
    return c.bad("K is larger than the axis").expected(fmt::format("at most {}", c.shape(0)[axis].str())).found(k.str());
  }
  Attrs attrs;
  attrs.set(Attr::Axis, axis).set(Attr::K, Shape{k}).set(Attr::Descending, c.integer("largest", 1) != 0);
  auto results = c.b.nodes(Op::TopK, {c.in(0)}, std::move(attrs));
  c.out(0, results[0]);
  c.out(1, results[1]);
  return {};
}

template <Op op>
Result<void> cumulative(NodeContext& c) {
  std::vector<std::int64_t> axis = WEFT_TRY(c.ints(1, "axis"));
  if (axis.size() != 1) return c.bad("axis must have one element");
  Attrs attrs;
  attrs.set(Attr::Axis, WEFT_TRY(c.axis(axis[0], c.rank(0)))).set(Attr::Exclusive, c.integer("exclusive", 0) != 0);
  attrs.set(Attr::Reverse, c.integer("reverse", 0) != 0);
  c.out(0, c.b.node(op, {c.in(0)}, std::move(attrs)));
  return {};
}

// start, limit, delta: known integers give a known (or symbolic) length; otherwise the length is bound at run time.
Result<void> range(NodeContext& c) {
  DType t = c.dtype(0);
  Dim count;
  auto start = c.dims(0), limit = c.dims(1), delta = c.dims(2);
  const Tensor* values[] = {c.constant(0), c.constant(1), c.constant(2)};
  if (start && limit && delta && (*delta)[0].is_const() && !(*delta)[0].is(0)) {
    Dim span = (*limit)[0] - (*start)[0];
    std::int64_t step = (*delta)[0].value();
    count = step > 0 ? ceil_div(span, Dim(step)) : ceil_div(-span, Dim(-step));
    count = c.b.graph().facts.simplify(max(count, Dim(0)));
  } else if (values[0] && values[1] && values[2] && is_float(t)) {
    double step = values[2]->f64(0);
    if (step == 0) return c.bad("delta is 0");
    double n = std::ceil((values[1]->f64(0) - values[0]->f64(0)) / step);
    count = n > 0 ? static_cast<std::int64_t>(n) : 0;
  } else {
    ValueId span = c.b.binary(Op::Sub, c.in(1), c.in(0));
    DType wide = is_float(t) ? t : DType::F64;
    ValueId n = c.b.unary(Op::Ceil, c.b.binary(Op::Div, c.b.cast(span, wide), c.b.cast(c.in(2), wide)));
    n = c.b.binary(Op::Max, n, c.b.scalar(wide, 0));
    count = c.fresh_symbol("range");
    c.b.nodes(Op::Bind, {c.b.reshape(c.b.cast(n, DType::I64), {})}, Attrs().set(Attr::Shape, Shape{count}));
  }
  ValueId i = c.b.iota(t, {count}, 0);
  c.out(0, c.b.binary(Op::Add, c.b.reshape(c.in(0), {}), c.b.binary(Op::Mul, i, c.b.reshape(c.in(2), {}))));
  return {};
}

Result<void> one_hot(NodeContext& c) {
  int rank = c.rank(0) + 1;
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", -1), rank));
  ValueId depth_value = c.b.reshape(c.b.cast(c.in(1), DType::I64), {});
  Dim depth;
  if (const Tensor* d = c.b.graph().constant(depth_value)) {
    depth = d->i64(0);
  } else if (auto known = c.dims(1); known && known->size() == 1) {
    depth = (*known)[0];
  } else {
    depth = c.fresh_symbol("depth");
    c.b.nodes(Op::Bind, {depth_value}, Attrs().set(Attr::Shape, Shape{depth}));
  }
  Shape shape = c.shape(0), index_shape = c.shape(0);
  shape.insert(shape.begin() + axis, depth);
  index_shape.insert(index_shape.begin() + axis, 1);
  ValueId indices = c.b.cast(c.in(0), DType::I64);
  // Negative indices count from the end; outside [-depth, depth) nothing is hot.
  ValueId n = c.b.reshape(c.b.shape_value({depth}), {});
  ValueId wrapped = c.b.select(c.b.binary(Op::Lt, indices, c.b.scalar(DType::I64, 0)), c.b.binary(Op::Add, indices, n), indices);
  ValueId hot = c.b.binary(Op::Eq, c.b.reshape(wrapped, index_shape), c.b.iota(DType::I64, shape, axis));
  ValueId off = c.b.reshape(c.b.slice_axis(c.in(2), 0, 0, 1), {}), on = c.b.reshape(c.b.slice_axis(c.in(2), 0, 1, 1), {});
  c.out(0, c.b.select(hot, on, off));
  return {};
}

// Keeps what lies on or above (upper) or below the k-th diagonal of the last two axes.
Result<void> trilu(NodeContext& c) {
  if (c.rank(0) < 2) return c.bad("the input must be a matrix or a batch of them");
  const Shape shape = c.shape(0);
  std::int64_t rank = c.rank(0);
  Shape matrix{shape[rank - 2], shape[rank - 1]};
  ValueId k = c.has(1) ? c.b.reshape(c.b.cast(c.in(1), DType::I64), {}) : c.b.scalar(DType::I64, 0);
  ValueId offset = c.b.binary(Op::Sub, c.b.iota(DType::I64, matrix, 1), c.b.iota(DType::I64, matrix, 0));
  ValueId keep = c.b.binary(c.integer("upper", 1) != 0 ? Op::Ge : Op::Le, offset, k);
  c.out(0, c.b.select(keep, c.in(0), c.b.scalar(c.dtype(0), 0)));
  return {};
}

Result<void> eye_like(NodeContext& c) {
  if (c.rank(0) != 2) return c.bad("the input must be a matrix");
  DType t = c.dtype(0);
  if (c.has_attr("dtype")) {
    auto wanted = dtype_from_onnx(c.integer("dtype", 1));
    if (!wanted) return c.bad("unknown element type");
    t = *wanted;
  }
  ValueId column = c.b.binary(Op::Sub, c.b.iota(DType::I64, c.shape(0), 1), c.b.scalar(DType::I64, c.integer("k", 0)));
  c.out(0, c.b.cast(c.b.binary(Op::Eq, column, c.b.iota(DType::I64, c.shape(0), 0)), t));
  return {};
}

Result<void> non_zero(NodeContext& c) {
  if (c.rank(0) == 0) return c.missing("a scalar input");
  Dim count = c.fresh_symbol("nonzero");
  c.out(0, c.b.node(Op::NonZero, {c.in(0)}, Attrs().set(Attr::Symbol, Shape{count})));
  return {};
}

Result<void> compress(NodeContext& c) {
  Dim count = c.fresh_symbol("kept");
  ValueId condition = c.in(1);
  ValueId x = c.in(0);
  std::int64_t axis = 0;
  if (c.has_attr("axis")) {
    axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  } else {
    x = c.b.reshape(x, {product(c.shape(0))});
  }
  ValueId where = c.b.node(Op::NonZero, {condition}, Attrs().set(Attr::Symbol, Shape{count}));
  c.out(0, c.b.gather(x, c.b.reshape(where, {count}), axis));
  return {};
}

// Each batch row is reversed up to its length, the rest kept: a gather of a computed index.
Result<void> reverse_sequence(NodeContext& c) {
  std::int64_t batch = c.integer("batch_axis", 1), time = c.integer("time_axis", 0);
  if (batch == time || batch < 0 || batch > 1 || time < 0 || time > 1) return c.bad("batch_axis and time_axis must be 0 and 1");
  const Shape shape = c.shape(0);
  ValueId t = c.b.iota(DType::I64, shape, time);
  ValueId lengths = c.b.broadcast_in(c.in(1), shape, {batch});
  ValueId mirrored = c.b.binary(Op::Sub, c.b.binary(Op::Sub, lengths, c.b.scalar(DType::I64, 1)), t);
  ValueId index = c.b.select(c.b.binary(Op::Lt, t, lengths), mirrored, t);
  c.out(0, c.b.node(Op::GatherElements, {c.in(0), index}, Attrs().set(Attr::Axis, time)));
  return {};
}

Result<void> unique(NodeContext& c) {
  Attrs attrs;
  attrs.set(Attr::Symbol, Shape{c.fresh_symbol("unique")}).set(Attr::Sorted, c.integer("sorted", 1) != 0);
  if (c.has_attr("axis")) attrs.set(Attr::Axis, WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0))));
  auto results = c.b.nodes(Op::Unique, {c.in(0)}, std::move(attrs));
  for (int i = 0; i < 4; ++i) c.out(i, results[i]);
  return {};
}

// Missing operands: all boxes, threshold 0 for overlap, no threshold for scores.
Result<void> non_max_suppression(NodeContext& c) {
  ValueId most = c.has(2) ? c.b.reshape(c.in(2), {}) : c.b.scalar(DType::I64, 0);
  ValueId iou = c.has(3) ? c.b.reshape(c.in(3), {}) : c.b.scalar(DType::F32, 0);
  ValueId score = c.has(4) ? c.b.reshape(c.in(4), {}) : c.b.scalar(DType::F32, -INFINITY);
  Attrs attrs;
  attrs.set(Attr::Symbol, Shape{c.fresh_symbol("selected")}).set(Attr::Center, c.integer("center_point_box", 0) != 0);
  c.out(0, c.b.node(Op::NonMaxSuppression, {c.in(0), c.in(1), most, iou, score}, std::move(attrs)));
  return {};
}

constexpr OpEntry kIndexOps[] = {
    {"Gather", 1, kOpsetMax, 2, 2, "axis", gather},
    {"GatherElements", 11, kOpsetMax, 2, 2, "axis", gather_elements},
    {"GatherND", 11, kOpsetMax, 2, 2, "batch_dims", gather_nd},
    {"Scatter", 9, 10, 3, 3, "axis", scatter_elements},
    {"ScatterElements", 11, kOpsetMax, 3, 3, "axis reduction", scatter_elements},
    {"ScatterND", 11, kOpsetMax, 3, 3, "reduction", scatter_nd},
    {"TopK", 1, kOpsetMax, 1, 2, "axis k largest sorted", top_k},
    {"CumSum", 11, kOpsetMax, 2, 2, "exclusive reverse", cumulative<Op::CumSum>},
    {"CumProd", 26, kOpsetMax, 2, 2, "exclusive reverse", cumulative<Op::CumProd>},
    {"Range", 11, kOpsetMax, 3, 3, "stash_type", range},
    {"OneHot", 9, kOpsetMax, 3, 3, "axis", one_hot},
    {"Trilu", 14, kOpsetMax, 1, 2, "upper", trilu},
    {"EyeLike", 9, kOpsetMax, 1, 1, "dtype k", eye_like},
    {"NonZero", 9, kOpsetMax, 1, 1, "", non_zero},
    {"Compress", 9, kOpsetMax, 2, 2, "axis", compress},
    {"ReverseSequence", 10, kOpsetMax, 2, 2, "batch_axis time_axis", reverse_sequence},
    {"Unique", 11, kOpsetMax, 1, 1, "axis sorted", unique},
    {"NonMaxSuppression", 10, kOpsetMax, 2, 5, "center_point_box", non_max_suppression},
};

}  // namespace

OpTable index_ops() { return {kIndexOps, std::size(kIndexOps)}; }

}  // namespace weft::onnx
