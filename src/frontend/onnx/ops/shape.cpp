// Sources, casts, and operators that only rename elements: Reshape, Transpose, Slice and their kin.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

Result<void> identity(NodeContext& c) {
  if (const Sequence* s = c.sequence(0)) {
    c.out(0, Sequence(*s));
  } else {
    c.out(0, c.in(0));
  }
  return {};
}

Result<void> constant(NodeContext& c) {
  Tensor value;
  if (const Tensor* t = c.tensor("value")) {
    value = *t;
  } else if (c.has_attr("value_float")) {
    value = Tensor::scalar(DType::F32, c.real("value_float", 0));
  } else if (c.has_attr("value_int")) {
    value = Tensor::scalar_i64(DType::I64, c.integer("value_int", 0));
  } else if (c.has_attr("value_ints")) {
    value = Tensor::of(c.integers("value_ints"));
  } else if (c.has_attr("value_floats")) {
    std::vector<float> list = c.reals("value_floats");
    value = WEFT_TRY(Tensor::empty(DType::F32, {static_cast<std::int64_t>(list.size())}));
    std::copy(list.begin(), list.end(), value.as_mutable<float>());
  } else if (c.has_attr("value_string")) {
    value = Tensor::strings({}, {c.text("value_string", "")});
  } else if (c.has_attr("value_strings")) {
    std::vector<std::string> list = c.texts("value_strings");
    std::int64_t n = static_cast<std::int64_t>(list.size());
    value = Tensor::strings({n}, std::move(list));
  } else {
    return c.bad("no value is given");
  }
  c.out(0, c.b.constant(std::move(value)));
  return {};
}

// Sizes from an operand must not be negative.
Result<Shape> size_operand(NodeContext& c, int i, const char* what) {
  Shape dims = WEFT_TRY(c.dims_or_bind(i, what, SymbolRange{}));
  for (const Dim& d : dims) {
    if (d.is_const() && d.value() < 0) return c.bad(fmt::format("{} {} is negative", what, d.value()));
  }
  return dims;
}

Result<void> constant_of_shape(NodeContext& c) {
  Shape shape = WEFT_TRY(size_operand(c, 0, "shape"));
  Tensor value = Tensor::scalar(DType::F32, 0);
  if (const Tensor* t = c.tensor("value")) {
    if (t->size() != 1) return c.bad("value must have one element");
    value = t->reshaped({});
  }
  c.out(0, c.b.broadcast_to(c.b.constant(std::move(value)), shape));
  return {};
}

Result<void> shape(NodeContext& c) {
  const Shape& dims = c.shape(0);
  std::int64_t rank = c.rank(0);
  auto clamp = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
  std::int64_t start = clamp(c.integer("start", 0)), end = clamp(c.integer("end", rank));
  Shape part;
  for (std::int64_t d = start; d < end; ++d) part.push_back(dims[d]);
  c.out(0, c.b.shape_value(std::move(part)));
  return {};
}

Result<void> size(NodeContext& c) {
  c.out(0, c.b.reshape(c.b.shape_value({product(c.shape(0))}), {}));
  return {};
}

// Floats as f64 powers of two, the next one away from zero or towards it: bits below the exponent go.
ValueId power_of_two(NodeContext& c, ValueId x, bool up) {
  constexpr std::int64_t kMantissa = (std::int64_t{1} << 52) - 1;
  const auto word = [&](std::int64_t v) { return c.b.constant(Tensor::scalar_i64(DType::U64, v)); };
  x = c.b.cast(x, DType::F64);
  ValueId bits = c.b.node(Op::Bitcast, {x}, Attrs().set(Attr::DType, DType::U64));
  if (up) bits = c.b.binary(Op::Add, bits, word(kMantissa));
  bits = c.b.binary(Op::And, bits, word(~kMantissa));
  ValueId power = c.b.node(Op::Bitcast, {bits}, Attrs().set(Attr::DType, DType::F64));
  return c.b.select(c.b.unary(Op::IsNan, x), x, power);
}

// Integers of less than a byte take the low bits of the truncated value. Only f8e8m0, which holds powers of two, is
// rounded as round_mode says; the prim's cast rounds to nearest.
Result<ValueId> converted(NodeContext& c, DType to) {
  ValueId x = c.in(0);
  const std::string mode = c.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest") return c.bad(fmt::format("unknown round_mode '{}'", mode));
  if (to == DType::F8E8M0 && is_float(c.dtype(0)) && mode != "nearest") x = power_of_two(c, x, mode == "up");
  if (is_float(c.dtype(0)) && is_int(to) && bits(to) < 8) x = c.b.cast(x, DType::I32);
  return c.b.cast(x, to, c.integer("saturate", 1) != 0);
}

// Before opset 6 the type is written by name.
Result<void> cast_by_name(NodeContext& c) {
  const std::pair<const char*, DType> names[] = {
      {"FLOAT", DType::F32}, {"DOUBLE", DType::F64}, {"FLOAT16", DType::F16}, {"BOOL", DType::Bool}, {"STRING", DType::Str},
      {"INT8", DType::I8},   {"INT16", DType::I16},  {"INT32", DType::I32},   {"INT64", DType::I64}, {"UINT8", DType::U8},
      {"UINT16", DType::U16}, {"UINT32", DType::U32}, {"UINT64", DType::U64}};
  const std::string wanted = c.text("to", "");
  for (const auto& [name, to] : names) {
    if (wanted == name) return c.out(0, WEFT_TRY(converted(c, to))), Result<void>();
  }
  return c.bad(fmt::format("unknown element type '{}'", wanted));
}

Result<void> cast(NodeContext& c) {
  auto to = dtype_from_onnx(c.integer("to", 0));
  if (!to) return c.bad(fmt::format("unknown element type {}", c.integer("to", 0)));
  c.out(0, WEFT_TRY(converted(c, *to)));
  return {};
}

Result<void> cast_like(NodeContext& c) {
  c.out(0, WEFT_TRY(converted(c, c.dtype(1))));
  return {};
}

Result<void> bit_cast(NodeContext& c) {
  auto to = dtype_from_onnx(c.integer("to", 0));
  if (!to) return c.bad(fmt::format("unknown element type {}", c.integer("to", 0)));
  c.out(0, *to == c.dtype(0) ? c.in(0) : c.b.node(Op::Bitcast, {c.in(0)}, Attrs().set(Attr::DType, *to)));
  return {};
}

// What the sizes mean (0 copies an axis, -1 is what is left) is worked out by small tensors when they are known.
Result<void> reshape_at_run_time(NodeContext& c) {
  if (c.rank(1) != 1 || !c.shape(1)[0].is_const()) return c.missing("a shape of a length known only at run time");
  bool allow_zero = c.integer("allowzero", 0) != 0;
  const Shape from = c.shape(0);
  auto& b = c.b;
  auto number = [&](std::int64_t v) { return b.constant(Tensor::scalar_i64(DType::I64, v)); };
  auto size_of = [&](const Dim& d) { return b.reshape(b.shape_value({d}), {}); };
  std::vector<ValueId> sizes, inferred;
  ValueId known = number(1), zero = number(0), one = number(1);
  for (std::int64_t k = 0; k < c.shape(1)[0].value(); ++k) {
    ValueId s = b.cast(b.reshape(b.slice_axis(c.in(1), 0, k, 1), {}), DType::I64);
    if (!allow_zero && k < static_cast<std::int64_t>(from.size())) {
      s = b.select(b.binary(Op::Eq, s, zero), size_of(from[k]), s);
    }
    inferred.push_back(b.binary(Op::Eq, s, number(-1)));
    sizes.push_back(s);
    known = b.binary(Op::Mul, known, b.select(inferred.back(), one, s));
  }
  ValueId rest = b.binary(Op::Div, size_of(product(from)), known);
  Shape to;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    Dim size = c.fresh_symbol("size");
    b.nodes(Op::Bind, {b.select(inferred[k], rest, sizes[k])}, Attrs().set(Attr::Shape, Shape{size}));
    to.push_back(size);
  }
  c.out(0, b.reshape(c.in(0), std::move(to)));
  return {};
}

Result<void> reshape(NodeContext& c) {
  auto wanted = c.opset() < 5 ? Shape() : c.dims(1);
  if (c.opset() < 5) {
    for (const std::int64_t size : c.integers("shape")) wanted->push_back(size);
  }
  const Shape from = c.shape(0);
  if (!wanted) return reshape_at_run_time(c);
  bool allow_zero = c.integer("allowzero", 0) != 0;
  Shape to;
  int inferred = -1;
  Dim known = 1, rest = product(from);
  for (std::size_t k = 0; k < wanted->size(); ++k) {
    Dim d = (*wanted)[k];
    if (d.is(-1)) {
      if (inferred >= 0) return c.bad("two sizes are -1");
      inferred = static_cast<int>(k);
      to.push_back(1);
      continue;
    }
    if (d.is(0) && !allow_zero) {
      if (k >= from.size()) return c.bad(fmt::format("size {} is 0, and the input has no such axis", k));
      d = from[k];
    }
    if (d.is_const() && d.value() < -1) return c.bad(fmt::format("size {} is negative", d.value()));
    known = known * d;
    to.push_back(d);
  }
  if (inferred >= 0) {
    if (known.is(0)) {
      if (allow_zero) return c.bad("a size of -1 beside a size of 0 is undetermined");
      to[inferred] = 0;
      // Copied zeros: the inferred size comes from the other axes.
      Dim others = 1, source = 1;
      for (std::size_t k = 0; k < to.size(); ++k) {
        if (static_cast<int>(k) != inferred && !to[k].is(0)) others = others * to[k];
      }
      for (const Dim& d : from) source = d.is(0) ? source : source * d;
      to[inferred] = floor_div(source, others);
    } else {
      to[inferred] = c.b.graph().facts.simplify(floor_div(rest, known));
    }
  }
  c.out(0, c.b.reshape(c.in(0), std::move(to)));
  return {};
}

Result<void> flatten(NodeContext& c) {
  std::int64_t rank = c.rank(0), axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank) return c.bad(fmt::format("axis {} is out of range for rank {}", axis, rank));
  if (axis < 0) axis += rank;
  const Shape from = c.shape(0);
  Shape to{product(Shape(from.begin(), from.begin() + axis)), product(Shape(from.begin() + axis, from.end()))};
  c.out(0, c.b.reshape(c.in(0), std::move(to)));
  return {};
}

// From opset 13 the axes are an operand.
Result<std::vector<std::int64_t>> axes_of(NodeContext& c, std::int64_t operand_since, int operand) {
  if (c.opset() >= operand_since) {
    if (!c.has(operand)) return std::vector<std::int64_t>{};
    return c.ints(operand, "axes");
  }
  return c.integers("axes");
}

Result<void> squeeze(NodeContext& c) {
  std::vector<std::int64_t> axes = WEFT_TRY(axes_of(c, 13, 1));
  const Shape from = c.shape(0);
  axes = WEFT_TRY(c.axes(axes, c.rank(0)));
  bool given = c.opset() >= 13 ? c.has(1) : c.has_attr("axes");
  Shape to;
  for (std::size_t d = 0; d < from.size(); ++d) {
    bool named = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end();
    if (named && from[d].is_const() && !from[d].is(1)) {
      return c.bad(fmt::format("axis {} cannot be removed: its size is {}", d, from[d].str())).expected("1");
    }
    if (!given && !from[d].is_const()) return c.missing("without axes, on a symbolic size");
    if (named || (!given && from[d].is(1))) continue;
    to.push_back(from[d]);
  }
  c.out(0, c.b.reshape(c.in(0), std::move(to)));
  return {};
}

Result<void> unsqueeze(NodeContext& c) {
  std::vector<std::int64_t> axes = WEFT_TRY(axes_of(c, 13, 1));
  const Shape from = c.shape(0);
  int rank = c.rank(0) + static_cast<int>(axes.size());
  axes = WEFT_TRY(c.axes(axes, rank));
  Shape to;
  std::size_t next = 0;
  for (int d = 0; d < rank; ++d) {
    bool added = std::find(axes.begin(), axes.end(), d) != axes.end();
    to.push_back(added ? Dim(1) : from[next++]);
  }
  c.out(0, c.b.reshape(c.in(0), std::move(to)));
  return {};
}

Result<void> transpose(NodeContext& c) {
  std::vector<std::int64_t> axes(c.rank(0));
  std::iota(axes.rbegin(), axes.rend(), 0);
  if (c.has_attr("perm")) axes = WEFT_TRY(c.axes(c.integers("perm"), c.rank(0)));
  if (static_cast<int>(axes.size()) != c.rank(0)) {
    return c.bad("perm does not name every axis").expected(std::to_string(c.rank(0))).found(std::to_string(axes.size()));
  }
  c.out(0, c.b.transpose(c.in(0), axes));
  return {};
}

Result<void> expand(NodeContext& c) {
  Shape wanted = WEFT_TRY(size_operand(c, 1, "shape"));
  Shape common = WEFT_TRY(c.b.broadcast_shapes({c.shape(0), wanted}));
  c.out(0, c.b.broadcast_to(c.in(0), std::move(common)));
  return {};
}

// Each axis becomes (repeat, size), spread and merged.
// Before opset 6: so many tiles along one axis.
Result<Shape> repeats_of(NodeContext& c) {
  if (c.opset() >= 6) return size_operand(c, 1, "repeats");
  const Shape tiles = WEFT_TRY(size_operand(c, 1, "tiles"));
  const std::vector<std::int64_t> axis = WEFT_TRY(c.ints(2, "axis"));
  if (tiles.size() != 1 || axis.size() != 1) return c.bad("tiles and axis are single numbers");
  Shape repeats(c.rank(0), Dim(1));
  repeats[WEFT_TRY(c.axis(axis[0], c.rank(0)))] = tiles[0];
  return repeats;
}

Result<void> tile(NodeContext& c) {
  Shape repeats = WEFT_TRY(repeats_of(c));
  const Shape from = c.shape(0);
  if (repeats.size() != from.size()) {
    return c.bad("repeats does not name every axis").expected(std::to_string(from.size())).found(std::to_string(repeats.size()));
  }
  Shape split, spread, merged;
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < from.size(); ++d) {
    spread.push_back(repeats[d]);
    axes.push_back(static_cast<std::int64_t>(spread.size()));
    spread.push_back(from[d]);
    merged.push_back(repeats[d] * from[d]);
  }
  c.out(0, c.b.reshape(c.b.broadcast_in(c.in(0), std::move(spread), axes), std::move(merged)));
  return {};
}

Result<void> concat(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 1), c.rank(0)));
  std::vector<ValueId> parts;
  for (int i = 0; i < c.input_count(); ++i) parts.push_back(c.in(i));
  c.out(0, c.b.concat(std::move(parts), axis));
  return {};
}

Result<void> split(NodeContext& c) {
  std::int64_t axis = WEFT_TRY(c.axis(c.integer("axis", 0), c.rank(0)));
  Dim total = c.shape(0)[axis];
  std::int64_t count = c.output_count();
  Shape sizes;
  if (c.opset() >= 13 && c.has(1)) {
    sizes = WEFT_TRY(size_operand(c, 1, "split"));
  } else if (c.opset() < 13 && c.has_attr("split")) {
    for (std::int64_t s : c.integers("split")) sizes.push_back(s);
  } else {
    std::int64_t parts = c.integer("num_outputs", count);
    if (parts != count) return c.bad("num_outputs is not the number of outputs");
    // From opset 18 the last part may be smaller.
    Dim each = c.opset() >= 18 ? ceil_div(total, Dim(parts)) : floor_div(total, Dim(parts));
    if (c.opset() < 18 && total.is_const() && total.value() % parts != 0) return c.bad("the axis does not divide evenly");
    for (std::int64_t k = 0; k + 1 < parts; ++k) sizes.push_back(each);
    sizes.push_back(total - each * (parts - 1));
  }
  if (static_cast<std::int64_t>(sizes.size()) != count) {
    return c.bad("there are not as many sizes as outputs").expected(std::to_string(count)).found(std::to_string(sizes.size()));
  }
  Dim start = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    if (sizes[k].is_const() && sizes[k].value() < 0) return c.bad("a part has a negative size");
    if (c.wants(k)) c.out(k, c.b.slice_axis(c.in(0), axis, start, sizes[k]));
    start = start + sizes[k];
  }
  if (start.is_const() && total.is_const() && !(start == total)) {
    return c.bad("the sizes of the parts do not add up").expected(total.str()).found(start.str());
  }
  return {};
}

// One axis of a Slice: start and size after clamping, for a known step.
struct Range {
  Dim start, size;
};

Range clamp_range(const DimFacts& facts, const Dim& extent, Dim start, Dim end, std::int64_t step) {
  auto from_end = [&](const Dim& d) -> Dim {
    if (d.is_const()) return d.value() < 0 ? extent + d : d;
    SymbolRange r = facts.range(d);
    if (r.lo >= 0) return d;
    if (r.hi < 0) return extent + d;
    // d, or d + extent where d < 0: the sign is 0 or -1.
    Dim negative = max(Dim(0), min(Dim(1), -d));
    return d + extent * negative;
  };
  bool huge_end = end.is_const() && end.value() >= INT32_MAX;
  bool tiny_end = end.is_const() && end.value() <= -INT32_MAX;
  Range r;
  if (step > 0) {
    start = start.is_const() && start.value() <= -INT32_MAX ? Dim(0) : start;
    r.start = facts.simplify(min(max(from_end(start), Dim(0)), extent));
    Dim stop = huge_end ? extent : tiny_end ? Dim(0) : facts.simplify(min(max(from_end(end), Dim(0)), extent));
    r.size = facts.simplify(max(ceil_div(stop - r.start, Dim(step)), Dim(0)));
  } else {
    bool huge_start = start.is_const() && start.value() >= INT32_MAX;
    r.start = huge_start ? extent - 1 : facts.simplify(min(max(from_end(start), Dim(-1)), extent - 1));
    Dim stop = tiny_end ? Dim(-1) : huge_end ? extent - 1 : facts.simplify(min(max(from_end(end), Dim(-1)), extent - 1));
    r.size = facts.simplify(max(ceil_div(r.start - stop, Dim(-step)), Dim(0)));
  }
  return r;
}

// With steps known only at run time: per axis, the start and the number of elements are computed by small tensors, and
// the elements are gathered.
Result<void> slice_at_run_time(NodeContext& c, std::vector<std::int64_t> axes) {
  if (!c.b.shape(c.in(1)).size() || !c.shape(1)[0].is_const()) return c.missing("starts of a length known only at run time");
  std::int64_t count = c.shape(1)[0].value();
  if (!c.has(3)) {
    axes.resize(count);
    std::iota(axes.begin(), axes.end(), 0);
  }
  axes = WEFT_TRY(c.axes(axes, c.rank(0)));
  if (static_cast<std::int64_t>(axes.size()) != count) return c.bad("starts, ends, axes and steps differ in length");
  auto& b = c.b;
  auto number = [&](std::int64_t v) { return b.constant(Tensor::scalar_i64(DType::I64, v)); };
  auto element = [&](int operand, std::int64_t k) {
    return b.cast(b.reshape(b.slice_axis(c.in(operand), 0, k, 1), {}), DType::I64);
  };
  auto clamp = [&](ValueId v, ValueId lo, ValueId hi) { return b.binary(Op::Min, b.binary(Op::Max, v, lo), hi); };
  ValueId x = c.in(0), zero = number(0), one = number(1), minus = number(-1);
  for (std::int64_t k = 0; k < count; ++k) {
    ValueId n = b.reshape(b.shape_value({c.shape(0)[axes[k]]}), {}), last = b.binary(Op::Sub, n, one);
    ValueId step = element(4, k), forward = b.binary(Op::Gt, step, zero);
    auto from_end = [&](ValueId v) { return b.select(b.binary(Op::Lt, v, zero), b.binary(Op::Add, v, n), v); };
    // Values far outside would wrap when the size is added: they are brought near first.
    ValueId far = number(std::int64_t{1} << 40), near = number(-(std::int64_t{1} << 40));
    ValueId start = from_end(clamp(element(1, k), near, far)), end = from_end(clamp(element(2, k), near, far));
    start = b.select(forward, clamp(start, zero, n), clamp(start, minus, last));
    end = b.select(forward, clamp(end, zero, n), clamp(end, minus, last));
    ValueId span = b.select(forward, b.binary(Op::Sub, end, start), b.binary(Op::Sub, start, end));
    ValueId stride = clamp(b.unary(Op::Abs, clamp(step, near, far)), one, far);
    ValueId whole = b.binary(Op::Div, b.binary(Op::Add, b.binary(Op::Max, span, zero), b.binary(Op::Sub, stride, one)), stride);
    Dim size = c.fresh_symbol("slice");
    b.nodes(Op::Bind, {whole}, Attrs().set(Attr::Shape, Shape{size}));
    ValueId index = b.binary(Op::Add, start, b.binary(Op::Mul, b.iota(DType::I64, {size}, 0), step));
    x = b.gather(x, index, axes[k]);
  }
  c.out(0, x);
  return {};
}

Result<void> slice(NodeContext& c) {
  Shape starts, ends;
  std::vector<std::int64_t> axes, steps;
  if (c.opset() >= 10) {
    starts = WEFT_TRY(c.dims_or_bind(1, "starts", NodeContext::kAnyInteger, NodeContext::Beyond::End));
    ends = WEFT_TRY(c.dims_or_bind(2, "ends", NodeContext::kAnyInteger, NodeContext::Beyond::End));
    if (c.has(3)) axes = WEFT_TRY(c.ints(3, "axes"));
    if (c.has(4)) {
      auto known = c.ints(4, "steps");
      if (!known.ok() && !c.constant(4)) return slice_at_run_time(c, axes);
      steps = WEFT_TRY(std::move(known));
    }
  } else {
    for (std::int64_t v : c.integers("starts")) starts.push_back(v);
    for (std::int64_t v : c.integers("ends")) ends.push_back(v);
    axes = c.integers("axes");
  }
  std::size_t count = starts.size();
  bool default_axes = c.opset() >= 10 ? !c.has(3) : !c.has_attr("axes");
  if (default_axes) {
    axes.resize(count);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(count, 1);
  if (ends.size() != count || axes.size() != count || steps.size() != count) {
    return c.bad("starts, ends, axes and steps differ in length");
  }
  axes = WEFT_TRY(c.axes(axes, c.rank(0)));
  const Shape from = c.shape(0);
  Shape start(from.size(), Dim(0)), sizes = from;
  std::vector<std::int64_t> step(from.size(), 1);
  for (std::size_t k = 0; k < count; ++k) {
    if (steps[k] == 0) return c.bad("a step is 0");
    steps[k] = std::clamp<std::int64_t>(steps[k], -INT32_MAX, INT32_MAX);
    Range r = clamp_range(c.b.graph().facts, from[axes[k]], starts[k], ends[k], steps[k]);
    start[axes[k]] = r.start;
    sizes[axes[k]] = r.size;
    step[axes[k]] = steps[k];
  }
  c.out(0, c.b.slice(c.in(0), std::move(start), std::move(sizes), std::move(step)));
  return {};
}

constexpr OpEntry kShapeOps[] = {
    {"Identity", 1, kOpsetMax, 1, 1, "", identity, "", true},
    {"Constant", 1, kOpsetMax, 0, 0,
     "value value_float value_floats value_int value_ints value_string value_strings", constant},
    {"ConstantOfShape", 9, kOpsetMax, 1, 1, "value", constant_of_shape},
    {"Shape", 1, kOpsetMax, 1, 1, "start end", shape},
    {"Size", 1, kOpsetMax, 1, 1, "", size},
    {"Cast", 1, 5, 1, 1, "to", cast_by_name},
    {"Cast", 6, kOpsetMax, 1, 1, "to saturate round_mode", cast},
    {"CastLike", 15, kOpsetMax, 2, 2, "saturate round_mode", cast_like},
    {"BitCast", 26, kOpsetMax, 1, 1, "to", bit_cast},
    {"Reshape", 1, 4, 1, 1, "shape", reshape},
    {"Reshape", 5, kOpsetMax, 2, 2, "allowzero", reshape},
    {"Flatten", 1, kOpsetMax, 1, 1, "axis", flatten},
    {"Squeeze", 1, kOpsetMax, 1, 2, "axes", squeeze},
    {"Unsqueeze", 1, kOpsetMax, 1, 2, "axes", unsqueeze},
    {"Transpose", 1, kOpsetMax, 1, 1, "perm", transpose},
    {"Expand", 8, kOpsetMax, 2, 2, "", expand},
    {"Tile", 1, 5, 3, 3, "", tile},
    {"Tile", 6, kOpsetMax, 2, 2, "", tile},
    {"Concat", 1, kOpsetMax, 1, -1, "axis", concat},
    {"Split", 1, 1, 1, 1, "axis split", split},
    {"Split", 2, kOpsetMax, 1, 2, "axis split num_outputs", split},
    {"Slice", 1, kOpsetMax, 1, 5, "starts ends axes", slice},
};

}  // namespace

OpTable shape_ops() { return {kShapeOps, std::size(kShapeOps)}; }

}  // namespace weft::onnx
