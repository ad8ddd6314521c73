#include "loop/lower/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "loop/lower/complex.h"
#include "loop/lower/fuse.h"
#include "loop/lower/lower.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// Shapes that differ in one axis only: the element counts are equal, so that axis is too, by another name.
bool renames_one_axis(const Shape& from, const Shape& to) {
  if (from.size() != to.size()) return false;
  std::size_t other = 0;
  for (std::size_t d = 0; d < from.size(); ++d) other += from[d] == to[d] ? 0 : 1;
  return other == 1;
}

}  // namespace

void Reader::note(const Node& node) {
  if (!node.origin || node.origin->node.empty()) return;
  auto& origins = group_.origins;
  if (std::find(origins.begin(), origins.end(), node.origin->node) == origins.end()) {
    origins.push_back(node.origin->node);
  }
}

void Reader::bind(ValueId value, std::vector<ExprId> at, ExprId expr) {
  bound_[value] = {std::move(at), expr};
}

ParamId Reader::input(ValueId value, const Shape& shape) {
  for (std::size_t p = 0; p < args_.size(); ++p) {
    if (args_[p] == value && group_.params[p].shape == shape) return static_cast<ParamId>(p);
  }
  Param param;
  param.role = Role::Input;
  param.dtype = storage_dtype(graph_.type(value).dtype);
  param.shape = shape;
  const DType t = graph_.type(value).dtype;
  param.constant = graph_.constant(value) != nullptr && !is_packed(t) && !is_complex(t);
  args_.push_back(value);
  return group_.add_param(std::move(param));
}

ParamId Reader::output(ValueId value, Role role) {
  Param param;
  const DType t = graph_.type(value).dtype;
  param.role = role;
  param.dtype = storage_dtype(t);
  param.shape = is_packed(t) ? packed_shape(t, graph_.type(value).shape) : graph_.type(value).shape;
  if (is_complex(t)) param.shape.push_back(2);
  args_.push_back(value);
  return group_.add_param(std::move(param));
}

ParamId Reader::scratch(ValueId arg, DType dtype, const Shape& shape, Role role) {
  for (std::size_t p = 0; p < args_.size(); ++p) {
    if (args_[p] == arg && arg != kOnChip) return static_cast<ParamId>(p);
  }
  Param param;
  param.role = role;
  param.dtype = dtype;
  param.shape = shape;
  args_.push_back(arg);
  return group_.add_param(std::move(param));
}

ExprId Reader::both(ExprId a, ExprId b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return group_.scalar(ScalarOp::And, DType::Bool, {a, b});
}

ExprId Reader::in_range(ExprId index, const Dim& extent) {
  ExprId low = group_.scalar(ScalarOp::Ge, DType::Bool, {index, group_.constant_i64(0)});
  ExprId high = group_.scalar(ScalarOp::Lt, DType::Bool, {index, group_.size(extent)});
  return both(low, high);
}

ExprId Reader::read(ValueId value, const std::vector<ExprId>& at, ExprId guard, int part) {
  if (auto it = bound_.find(value); it != bound_.end() && it->second.first == at) {
    return it->second.second;
  }
  Key key{value, at, guard, part};
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  const Node* node = graph_.def(value);
  ExprId e;
  if (const Tensor* data = graph_.constant(value); data && data->size() == 1 && !is_complex(data->dtype())) {
    DType t = compute_dtype(data->dtype());
    e = is_float(t) ? group_.constant(t, data->f64(0)) : group_.constant_i64(data->i64(0), t);
  } else if (stored_[value]) {
    e = read_stored(value, graph_.type(value).shape, at, guard, part);
  } else {
    WEFT_CHECK(node, "a graph input is not stored");
    e = read_node(*node, value, at, guard, part);
  }
  memo_.emplace(std::move(key), e);
  return e;
}

ExprId Reader::read_apart(ValueId value, std::size_t axis, std::int64_t inner, std::vector<ExprId> at, ExprId within) {
  Shape shape = graph_.type(value).shape;
  if (stored_[value] && graph_.constant(value)) {
    shape[axis] = floor_div(shape[axis], Dim(inner));
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(inner));
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis) + 1, within);
    return read_stored(value, shape, at, -1, 0);
  }
  at[axis] = group_.iadd(group_.imul(at[axis], group_.constant_i64(inner)), within);
  return read(value, at);
}

ExprId Reader::read_stored(ValueId value, const Shape& shape, const std::vector<ExprId>& at, ExprId guard, int part) {
  const DType t = graph_.type(value).dtype;
  const auto load = [&](const Shape& seen, const std::vector<ExprId>& place) {
    ParamId param = input(value, seen);
    return guard < 0 ? group_.load(param, place) : group_.load_if(guard, param, place);
  };
  if (is_complex(t)) {
    Shape pairs = shape;
    pairs.push_back(2);
    std::vector<ExprId> place = at;
    place.push_back(group_.constant_i64(part));
    return load(pairs, place);
  }
  if (!is_packed(t)) {
    ExprId e = load(shape, at);
    return is_narrow(t) ? decode(t, e) : group_.cast(e, compute_dtype(t));
  }
  const PackedPlace place = packed_place(group_, t, shape, at);
  ExprId byte = load(packed_shape(t, shape), place.at);
  ExprId shift = group_.cast(group_.imul(place.part, group_.constant_i64(bits(t))), DType::U8);
  ExprId code = group_.scalar(ScalarOp::Shr, DType::U8, {byte, shift});
  return decode(t, group_.scalar(ScalarOp::And, DType::U8, {code, group_.constant_i64((1 << bits(t)) - 1, DType::U8)}));
}

ExprId Reader::decode(DType t, ExprId code) {
  ExprId value = decode_narrow(group_, t, code);
  codes_[{t, value}] = code;
  return value;
}

ExprId Reader::to_storage(ValueId value, ExprId expr) {
  const DType t = graph_.type(value).dtype;
  if (!is_narrow(t)) return group_.cast(expr, storage_dtype(t));
  if (auto it = codes_.find({t, expr}); it != codes_.end()) return it->second;
  return encode_narrow(group_, t, expr, false);
}

// The value that a t can hold nearest to an arithmetic result in the compute dtype.
ExprId Reader::rounded(DType t, ExprId value, bool saturate) {
  if (!is_narrow(t)) return value;
  return is_float(t) ? decode(t, encode_narrow(group_, t, value, saturate)) : wrap_packed(group_, t, value);
}

ExprId Reader::read_node(const Node& node, ValueId value, const std::vector<ExprId>& at, ExprId guard, int part) {
  const graph::OpInfo& op = info(node.op);
  note(node);
  switch (op.family) {
    case graph::Family::Unary:
    case graph::Family::Binary:
    case graph::Family::Select:
      return read_elementwise(node, at, guard, part);
    case graph::Family::Cast:
      return read_cast(node, at, guard, part);
    case graph::Family::Movement:
      return read_movement(node, at, guard, part);
    case graph::Family::Source:
      return read_source(node, at);
    case graph::Family::Gather:
      return read_gather(node, at, guard, part);
    default:
      WEFT_CHECK(false, fmt::format("'{}' (value {}) is neither stored nor readable", op.name, value));
  }
}

ExprId Reader::read_elementwise(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  if (is_complex(graph_.type(node.operands.back()).dtype)) return read_complex(node, at, guard, part);
  std::vector<ExprId> args;
  for (ValueId operand : node.operands) args.push_back(read(operand, at, guard));
  auto op = parse_scalar_op(info(node.op).name);
  WEFT_CHECK(op, fmt::format("no scalar op named '{}'", info(node.op).name));
  const DType t = graph_.type(node.results[0]).dtype;
  ExprId result = group_.scalar(*op, compute_dtype(t), std::move(args));
  return node.op == GOp::Select ? result : rounded(t, result, false);
}

ExprId Reader::read_complex(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  const DType t = graph_.type(node.operands.back()).dtype;
  if (node.op == GOp::Select) {
    ExprId a = read(node.operands[1], at, guard, part), b = read(node.operands[2], at, guard, part);
    return group_.scalar(ScalarOp::Select, compute_dtype(t), {read(node.operands[0], at, guard), a, b});
  }
  std::vector<Pair> pairs;
  for (ValueId v : node.operands) pairs.push_back({read(v, at, guard, 0), read(v, at, guard, 1)});
  return complex_op(group_, node.op, t, pairs, part);
}

ExprId Reader::read_cast(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  ExprId x = read(node.operands[0], at, guard, part);
  DType from = graph_.type(node.operands[0]).dtype;
  DType to = graph_.type(node.results[0]).dtype;
  if (is_complex(to)) {
    return part == 0 || is_complex(from) ? group_.cast(x, part_dtype(to)) : group_.constant(part_dtype(to), 0);
  }
  if (node.op == GOp::Bitcast) {
    ExprId raw = is_narrow(from) ? to_storage(node.operands[0], x) : group_.cast(x, from);
    if (is_narrow(to)) return decode(to, group_.scalar(ScalarOp::Bitcast, DType::U8, {raw}));
    return group_.cast(group_.scalar(ScalarOp::Bitcast, to, {raw}), compute_dtype(to));
  }
  // The rounding of a narrow float is part of the cast's meaning; arithmetic goes on in the compute dtype.
  if (from == to) return x;
  if (is_packed(to) && !is_float(to)) return to_packed(group_, to, x);
  if (is_narrow(to)) return rounded(to, x, node.attrs.flag(Attr::Saturate));
  return group_.cast(group_.cast(x, to), compute_dtype(to));
}

std::vector<ExprId> Reader::linear_to_coordinates(ExprId linear, const Shape& shape, std::size_t begin,
                                                  std::size_t end) {
  std::vector<ExprId> coordinates(end - begin);
  for (std::size_t d = end; d-- > begin;) {
    if (shape[d].is(1)) {
      coordinates[d - begin] = group_.constant_i64(0);
      continue;
    }
    bool first = true;
    for (std::size_t o = begin; o < d; ++o) first = first && shape[o].is(1);
    if (first) {
      coordinates[d - begin] = linear;
      linear = group_.constant_i64(0);
      continue;
    }
    ExprId size = group_.size(shape[d]);
    coordinates[d - begin] = group_.imod(linear, size);
    linear = group_.ifloordiv(linear, size);
  }
  return coordinates;
}

// `to` is the shape that `at` indexes, `from` the operand's. Axes are matched in runs of equal products, so that only
// runs that really regroup elements pay for division.
std::vector<ExprId> Reader::reshape_coordinates(const Shape& from, const Shape& to, const std::vector<ExprId>& at) {
  if (renames_one_axis(from, to)) return at;
  std::vector<ExprId> result;
  std::size_t f = 0, t = 0;
  auto emit_run = [&](std::size_t f_end, std::size_t t_end) {
    ExprId linear = group_.constant_i64(0);
    for (std::size_t d = t; d < t_end; ++d) {
      if (to[d].is(1)) continue;
      linear = group_.iadd(group_.imul(linear, group_.size(to[d])), at[d]);
    }
    auto coordinates = linear_to_coordinates(linear, from, f, f_end);
    result.insert(result.end(), coordinates.begin(), coordinates.end());
    f = f_end;
    t = t_end;
  };
  while (f < from.size() && t < to.size()) {
    std::size_t f_end = f + 1, t_end = t + 1;
    Dim f_size = from[f], t_size = to[t];
    while (!(f_size == t_size)) {
      bool grow_from;
      if (f_size.is_const() && t_size.is_const()) {
        grow_from = f_size.value() < t_size.value();
        if ((grow_from && f_end == from.size()) || (!grow_from && t_end == to.size())) break;
      } else {
        grow_from = f_end - f <= t_end - t;
        if (grow_from && f_end == from.size()) grow_from = false;
        if (!grow_from && t_end == to.size()) grow_from = true;
        if (grow_from && f_end == from.size()) break;
      }
      if (grow_from) {
        f_size = f_size * from[f_end++];
      } else {
        t_size = t_size * to[t_end++];
      }
    }
    if (!(f_size == t_size)) {
      f_end = from.size();
      t_end = to.size();
    }
    emit_run(f_end, t_end);
  }
  while (f < from.size()) {
    WEFT_CHECK(from[f].is(1) || from[f].is(0) || t == to.size(), "reshape runs do not match");
    result.push_back(group_.constant_i64(0));
    ++f;
  }
  return result;
}

ExprId Reader::read_movement(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  ValueId x = node.operands[0];
  const Shape& from = graph_.type(x).shape;
  const Shape& to = graph_.type(node.results[0]).shape;
  std::vector<ExprId> coordinates(from.size());
  switch (node.op) {
    case GOp::Reshape:
      // Bytes do not move: a stored operand is simply seen in the result's shape.
      if (stored_[x] && !graph_.constant(x)) return read_stored(x, to, at, guard, part);
      if (stored_[x] && graph_.constant(x)->size() != 1) return read_stored(x, to, at, guard, part);
      return read(x, reshape_coordinates(from, to, at), guard, part);
    case GOp::Transpose: {
      const auto& axes = node.attrs.ints(Attr::Axes);
      for (std::size_t d = 0; d < axes.size(); ++d) coordinates[axes[d]] = at[d];
      return read(x, coordinates, guard, part);
    }
    case GOp::Broadcast: {
      const auto& axes = node.attrs.ints(Attr::Axes);
      for (std::size_t d = 0; d < axes.size(); ++d) {
        coordinates[d] = from[d].is(1) ? group_.constant_i64(0) : at[axes[d]];
      }
      return read(x, coordinates, guard, part);
    }
    case GOp::Slice: {
      const auto& starts = node.attrs.dims(Attr::Starts);
      const auto& steps = node.attrs.ints(Attr::Steps);
      for (std::size_t d = 0; d < from.size(); ++d) {
        coordinates[d] = group_.iadd(group_.imul(at[d], group_.constant_i64(steps[d])), group_.size(starts[d]));
      }
      return read(x, coordinates, guard, part);
    }
    case GOp::Reverse: {
      coordinates = at;
      for (std::int64_t axis : node.attrs.ints(Attr::Axes)) {
        coordinates[axis] = group_.isub(group_.size(from[axis] - 1), at[axis]);
      }
      return read(x, coordinates, guard, part);
    }
    case GOp::Pad:
      return read_pad(node, at, guard, part);
    case GOp::Concat:
      return read_concat(node, at, guard, part);
    default:
      check_failed("a movement with a reading", __FILE__, __LINE__, info(node.op).name);
  }
}

ExprId Reader::read_pad(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  ValueId x = node.operands[0];
  const Shape& from = graph_.type(x).shape;
  const Shape& lo = node.attrs.dims(Attr::Lo);
  const Shape& hi = node.attrs.dims(Attr::Hi);
  const std::string& mode = node.attrs.str(Attr::Mode);
  ExprId inside = -1;
  std::vector<ExprId> coordinates(from.size());
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (lo[d].is(0) && hi[d].is(0)) {
      coordinates[d] = at[d];
      continue;
    }
    ExprId i = group_.isub(at[d], group_.size(lo[d]));
    ExprId last = group_.size(from[d] - 1), zero = group_.constant_i64(0);
    if (mode == "constant") {
      inside = both(inside, in_range(i, from[d]));
    } else if (mode == "edge") {
      i = group_.scalar(ScalarOp::Max, DType::I64, {zero, group_.scalar(ScalarOp::Min, DType::I64, {i, last})});
    } else if (mode == "wrap") {
      i = group_.imod(i, group_.size(from[d]));
    } else {  // reflect: a triangle wave of period 2 (size - 1)
      ExprId period = group_.size(max(2 * (from[d] - 1), Dim(1)));
      ExprId m = group_.imod(i, period);
      i = group_.scalar(ScalarOp::Min, DType::I64, {m, group_.isub(period, m)});
      i = group_.scalar(ScalarOp::Min, DType::I64, {i, last});
    }
    coordinates[d] = i;
  }
  if (inside < 0) return read(x, coordinates, guard, part);
  ExprId value = read(x, coordinates, both(guard, inside), part);
  ExprId fill = read(node.operands[1], {}, -1, part);
  return group_.scalar(ScalarOp::Select, compute_dtype(graph_.type(x).dtype), {inside, value, fill});
}

ExprId Reader::read_concat(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  std::int64_t axis = node.attrs.integer(Attr::Axis);
  DType t = compute_dtype(graph_.type(node.results[0]).dtype);
  std::vector<Dim> offsets{Dim(0)};
  for (ValueId x : node.operands) offsets.push_back(offsets.back() + graph_.type(x).shape[axis]);
  ExprId result = -1;
  for (std::size_t k = node.operands.size(); k-- > 0;) {
    std::vector<ExprId> coordinates = at;
    coordinates[axis] = group_.isub(at[axis], group_.size(offsets[k]));
    ExprId low = k == 0 ? -1
                        : group_.scalar(ScalarOp::Ge, DType::Bool, {at[axis], group_.size(offsets[k])});
    ExprId high = k + 1 == node.operands.size()
                      ? -1
                      : group_.scalar(ScalarOp::Lt, DType::Bool, {at[axis], group_.size(offsets[k + 1])});
    ExprId value = read(node.operands[k], coordinates, both(guard, both(low, high)), part);
    result = result < 0 ? value : group_.scalar(ScalarOp::Select, t, {high, value, result});
  }
  return result;
}

ExprId Reader::read_source(const Node& node, const std::vector<ExprId>& at) {
  DType t = compute_dtype(graph_.type(node.results[0]).dtype);
  switch (node.op) {
    case GOp::Iota:
      return group_.cast(at[node.attrs.integer(Attr::Axis)], t);
    case GOp::ShapeValue: {
      const Shape& dims = node.attrs.dims(Attr::Shape);
      ExprId result = group_.size(dims.empty() ? Dim(0) : dims.back());
      for (std::size_t k = dims.size() - (dims.empty() ? 0 : 1); k-- > 0;) {
        ExprId here = group_.scalar(ScalarOp::Eq, DType::Bool, {at[0], group_.constant_i64(static_cast<std::int64_t>(k))});
        result = group_.scalar(ScalarOp::Select, DType::I64, {here, group_.size(dims[k]), result});
      }
      return result;
    }
    case GOp::RandomBits: {
      const Shape& shape = graph_.type(node.results[0]).shape;
      ExprId element = group_.constant_i64(0);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        element = group_.iadd(group_.imul(element, group_.size(shape[d])), at[d]);
      }
      ExprId key = read(node.operands[0], {group_.constant_i64(0)}), stream = read(node.operands[0], {group_.constant_i64(1)});
      return random_bits(group_, t, element, key, stream);
    }
    default:
      WEFT_CHECK(false, fmt::format("source '{}' has no reading", info(node.op).name));
  }
}

ExprId Reader::wrap_index(const Node& node, ExprId index, const Dim& extent) {
  std::string where = node.origin ? node.origin->node : info(node.op).name;
  group_.checks.push_back(fmt::format("index out of range in '{}' ({})", where, info(node.op).name));
  return checked(index, extent);
}

ExprId Reader::checked(ExprId index, const Dim& extent) {
  Expr e;
  e.op = Op::Wrap;
  e.dtype = DType::I64;
  e.args = {group_.cast(index, DType::I64), group_.size(extent)};
  e.id = static_cast<std::int32_t>(group_.checks.size());
  return group_.add(std::move(e));
}

ExprId Reader::read_gather(const Node& node, const std::vector<ExprId>& at, ExprId guard, int part) {
  ValueId x = node.operands[0], indices = node.operands[1];
  const Shape& from = graph_.type(x).shape;
  std::size_t index_rank = graph_.type(indices).shape.size();
  std::vector<ExprId> coordinates;
  if (node.op == GOp::Gather) {
    std::size_t axis = node.attrs.integer(Attr::Axis);
    std::vector<ExprId> index_at(at.begin() + axis, at.begin() + axis + index_rank);
    coordinates.assign(at.begin(), at.begin() + axis);
    const ExprId index = read(indices, index_at, guard);
    coordinates.push_back(is_look_up(graph_, node) ? group_.cast(index, DType::I64) : wrap_index(node, index, from[axis]));
    coordinates.insert(coordinates.end(), at.begin() + axis + index_rank, at.end());
  } else if (node.op == GOp::GatherElements) {
    std::size_t axis = node.attrs.integer(Attr::Axis);
    coordinates = at;
    coordinates[axis] = wrap_index(node, read(indices, at, guard), from[axis]);
  } else {
    std::size_t batch = node.attrs.integer(Attr::Batch);
    std::size_t lead = index_rank - 1;  // axes of the result that the index's leading axes give
    std::int64_t depth = graph_.type(indices).shape.back().value();
    coordinates.assign(at.begin(), at.begin() + batch);
    for (std::int64_t k = 0; k < depth; ++k) {
      std::vector<ExprId> index_at(at.begin(), at.begin() + lead);
      index_at.push_back(group_.constant_i64(k));
      coordinates.push_back(wrap_index(node, read(indices, index_at, guard), from[batch + k]));
    }
    coordinates.insert(coordinates.end(), at.begin() + lead, at.end());
  }
  return read(x, coordinates, guard, part);
}

}  // namespace weft::loop
