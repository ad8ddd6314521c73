// Reductions, arg reductions, softmax.
#include <algorithm>
#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/norm.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

struct Reduction {
  std::vector<std::int64_t> axes;
  bool keep = true;
  bool nothing = false;  // no axes given and that means: no reduction
};

// Axes are an attribute, from opset `operand_since` on an operand.
Result<Reduction> reduction(NodeContext& c, std::int64_t operand_since) {
  Reduction r;
  r.keep = c.integer("keepdims", 1) != 0;
  if (c.opset() >= operand_since) {
    if (c.has(1)) r.axes = WEFT_TRY(c.ints(1, "axes"));
  } else {
    r.axes = c.integers("axes");
  }
  if (r.axes.empty()) {
    r.nothing = c.integer("noop_with_empty_axes", 0) != 0;
    if (!r.nothing) {
      r.axes.resize(c.rank(0));
      std::iota(r.axes.begin(), r.axes.end(), 0);
    }
  }
  r.axes = WEFT_TRY(c.axes(r.axes, c.rank(0)));
  return r;
}


ValueId reduced(NodeContext& c, Op op, ValueId x, const Reduction& r) {
  return r.nothing ? x : c.b.reduce(op, x, r.axes, r.keep);
}

template <Op op, std::int64_t kSince>
Result<void> plain(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, kSince));
  c.out(0, reduced(c, op, c.in(0), r));
  return {};
}

Result<void> mean(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, 18));
  c.out(0, r.nothing ? c.in(0) : ops::mean(c.b, c.in(0), r.axes, r.keep));
  return {};
}

Result<void> l1(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, 18));
  c.out(0, reduced(c, Op::ReduceSum, c.b.unary(Op::Abs, c.in(0)), r));
  return {};
}

Result<void> l2(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, 18));
  ValueId sum = reduced(c, Op::ReduceSum, c.b.binary(Op::Mul, c.in(0), c.in(0)), r);
  DType t = c.dtype(0);
  c.out(0, is_float(t) ? c.b.unary(Op::Sqrt, sum) : c.b.cast(c.b.unary(Op::Sqrt, c.b.cast(sum, DType::F64)), t));
  return {};
}

Result<void> sum_square(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, 18));
  c.out(0, reduced(c, Op::ReduceSum, c.b.binary(Op::Mul, c.in(0), c.in(0)), r));
  return {};
}

ValueId log_of(NodeContext& c, ValueId x) {
  DType t = c.b.dtype(x);
  return is_float(t) ? c.b.unary(Op::Log, x) : c.b.cast(c.b.unary(Op::Log, c.b.cast(x, DType::F64)), t);
}

Result<void> log_sum(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, 18));
  c.out(0, log_of(c, reduced(c, Op::ReduceSum, c.in(0), r)));
  return {};
}

// max + log(sum(exp(x - max))); where the max is infinite the difference would be NaN, so 0 is taken off there.
Result<void> log_sum_exp(NodeContext& c) {
  Reduction r = WEFT_TRY(reduction(c, 18));
  DType t = c.dtype(0), wide = is_float(t) ? t : DType::F64;
  ValueId x = c.b.cast(c.in(0), wide);
  if (r.nothing) {
    c.out(0, c.in(0));
    return {};
  }
  ValueId most = c.b.reduce(Op::ReduceMax, x, r.axes, true);
  most = c.b.select(c.b.unary(Op::IsInf, most), c.b.scalar(wide, 0), most);
  ValueId sum = c.b.reduce(Op::ReduceSum, c.b.unary(Op::Exp, c.b.binary(Op::Sub, x, most)), r.axes, true);
  ValueId y = c.b.binary(Op::Add, c.b.unary(Op::Log, sum), most);
  if (!r.keep) {
    Shape kept;
    for (int d = 0; d < c.rank(0); ++d) {
      if (std::find(r.axes.begin(), r.axes.end(), d) == r.axes.end()) kept.push_back(c.shape(0)[d]);
    }
    y = c.b.reshape(y, kept);
  }
  c.out(0, c.b.cast(y, t));
  return {};
}

template <Op op>
Result<void> arg(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  if (c.shape(0)[axis].is(0)) return c.bad("the axis is empty: there is no element to pick");
  bool last = c.integer("select_last_index", 0) != 0;
  ValueId y = c.b.node(op, {c.in(0)}, Attrs().set(Attr::Axis, axis).set(Attr::Last, last));
  if (c.integer("keepdims", 1) != 0) {
    Shape kept = c.shape(0);
    kept[axis] = 1;
    y = c.b.reshape(y, kept);
  }
  c.out(0, y);
  return {};
}

// Before opset 13 the axes from `axis` on are one.
template <ValueId (*kForm)(graph::Builder&, ValueId, std::vector<std::int64_t>)>
Result<void> softmax(NodeContext& c) {
  std::int64_t axis = c.integer("axis", c.opset() < 13 ? 1 : -1);
  if (c.opset() < 13 && axis == c.rank(0)) {  // nothing left to normalise over: one element each
    c.out(0, kForm(c.b, c.in(0), {}));
    return {};
  }
  axis = WEFT_TRY(c.axis(axis, c.rank(0)));
  std::vector<std::int64_t> axes{axis};
  if (c.opset() < 13) {
    for (std::int64_t a = axis + 1; a < c.rank(0); ++a) axes.push_back(a);
  }
  c.out(0, kForm(c.b, c.in(0), axes));
  return {};
}

Result<void> hardmax(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", c.opset() < 13 ? 1 : -1), c.rank(0)));
  ValueId x = c.in(0);
  Shape shape = c.shape(0);
  if (c.opset() < 13) {  // one row of everything from the axis on
    Shape flat(shape.begin(), shape.begin() + axis);
    flat.push_back(product(Shape(shape.begin() + axis, shape.end())));
    x = c.b.reshape(x, flat);
  }
  ValueId best = c.b.node(Op::ArgMax, {x}, Attrs().set(Attr::Axis, axis).set(Attr::Last, false));
  Shape kept = c.b.shape(x);
  kept[axis] = 1;
  ValueId here = c.b.binary(Op::Eq, c.b.iota(DType::I64, c.b.shape(x), axis), c.b.reshape(best, kept));
  c.out(0, c.b.reshape(c.b.cast(here, c.dtype(0)), shape));
  return {};
}

constexpr const char* kAttributes = "axes keepdims noop_with_empty_axes";

constexpr OpEntry kReduceOps[] = {
    {"ReduceSum", 1, kOpsetMax, 1, 2, kAttributes, plain<Op::ReduceSum, 13>},
    {"ReduceProd", 1, kOpsetMax, 1, 2, kAttributes, plain<Op::ReduceProd, 18>},
    {"ReduceMax", 1, kOpsetMax, 1, 2, kAttributes, plain<Op::ReduceMax, 18>},
    {"ReduceMin", 1, kOpsetMax, 1, 2, kAttributes, plain<Op::ReduceMin, 18>},
    {"ReduceMean", 1, kOpsetMax, 1, 2, kAttributes, mean},
    {"ReduceL1", 1, kOpsetMax, 1, 2, kAttributes, l1},
    {"ReduceL2", 1, kOpsetMax, 1, 2, kAttributes, l2},
    {"ReduceSumSquare", 1, kOpsetMax, 1, 2, kAttributes, sum_square},
    {"ReduceLogSum", 1, kOpsetMax, 1, 2, kAttributes, log_sum},
    {"ReduceLogSumExp", 1, kOpsetMax, 1, 2, kAttributes, log_sum_exp},
    {"ArgMax", 1, kOpsetMax, 1, 1, "axis keepdims select_last_index", arg<Op::ArgMax>},
    {"ArgMin", 1, kOpsetMax, 1, 1, "axis keepdims select_last_index", arg<Op::ArgMin>},
    {"Softmax", 1, kOpsetMax, 1, 1, "axis", softmax<ops::softmax>},
    {"LogSoftmax", 1, kOpsetMax, 1, 1, "axis", softmax<ops::log_softmax>},
    {"Hardmax", 1, kOpsetMax, 1, 1, "axis", hardmax},
};

}  // namespace

OpTable reduce_ops() { return {kReduceOps, std::size(kReduceOps)}; }

}  // namespace weft::onnx
