#include "graph/content.h"

#include <algorithm>

namespace weft::graph {

namespace {

constexpr std::int64_t kMaxElements = 256;
constexpr int kMaxDepth = 256;

std::optional<std::vector<std::int64_t>> small_static_shape(const Type& type) {
  if (!is_int(type.dtype) && !is_bool(type.dtype)) return std::nullopt;
  auto sizes = static_sizes(type.shape);
  if (!sizes) return std::nullopt;
  std::int64_t count = 1;
  for (std::int64_t d : *sizes) {
    if (d < 0 || d > kMaxElements) return std::nullopt;
    count *= d;
    if (count > kMaxElements) return std::nullopt;
  }
  return sizes;
}

std::int64_t count_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t n = 1;
  for (std::int64_t d : sizes) n *= d;
  return n;
}

// Calls f(flat index, coordinates) over a static shape.
template <class F>
void walk(const std::vector<std::int64_t>& sizes, F&& f) {
  std::vector<std::int64_t> at(sizes.size(), 0);
  std::int64_t n = count_of(sizes);
  for (std::int64_t flat = 0; flat < n; ++flat) {
    f(flat, at);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

std::int64_t flat_index(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& at) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) flat = flat * sizes[d] + at[d];
  return flat;
}

// Division as Graph IR has it truncates; that is floor where both sides are known not to be negative.
std::optional<Dim> divide(const DimFacts& facts, const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    if (b.is(0)) return Dim(0);
    if (b.is(-1)) return a.value() == INT64_MIN ? a : -a;
    return Dim(a.value() / b.value());
  }
  if (facts.range(a).lo >= 0 && facts.range(b).lo > 0) return facts.simplify(floor_div(a, b));
  // A division without remainder holds for every divisor but 0; where the divisor is a size that may be 0, all that is
  // computed from it is empty, and the quotient's value is of no interest.
  Dim quotient = floor_div(a, b);
  if (quotient * b == a) return quotient;
  return std::nullopt;
}

std::optional<Dim> compare(const DimFacts& facts, Op op, const Dim& a, const Dim& b) {
  switch (op) {
    case Op::Eq:
    case Op::Ne: {
      bool wanted = op == Op::Eq;
      if (facts.known_equal(a, b)) return Dim(wanted ? 1 : 0);
      SymbolRange r = facts.range(a - b);
      if (r.lo > 0 || r.hi < 0) return Dim(wanted ? 0 : 1);
      return std::nullopt;
    }
    case Op::Lt:
      if (facts.known_less(a, b)) return Dim(1);
      if (facts.known_less_equal(b, a)) return Dim(0);
      return std::nullopt;
    case Op::Le:
      if (facts.known_less_equal(a, b)) return Dim(1);
      if (facts.known_less(b, a)) return Dim(0);
      return std::nullopt;
    case Op::Gt:
      return compare(facts, Op::Lt, b, a);
    case Op::Ge:
      return compare(facts, Op::Le, b, a);
    default:
      return std::nullopt;
  }
}

std::optional<Dim> binary(const DimFacts& facts, Op op, const Dim& a, const Dim& b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return divide(facts, a, b);
    case Op::Mod:
      if (b.is(0)) return Dim(0);
      return b.is_const() || facts.range(b).lo > 0 ? std::optional<Dim>(mod(a, b)) : std::nullopt;
    case Op::Max: return facts.simplify(max(a, b));
    case Op::Min: return facts.simplify(min(a, b));
    case Op::And: return a.is(0) || b.is(0) ? std::optional<Dim>(0) : a.is(1) && b.is(1) ? std::optional<Dim>(1) : std::nullopt;
    case Op::Or: return a.is(1) || b.is(1) ? std::optional<Dim>(1) : a.is(0) && b.is(0) ? std::optional<Dim>(0) : std::nullopt;
    default: return compare(facts, op, a, b);
  }
}

}  // namespace

const std::optional<Shape>& Contents::of(ValueId value) { return at_depth(value, 0); }

const std::optional<Shape>& Contents::at_depth(ValueId value, int depth) {
  auto it = known_.find(value);
  if (it == known_.end()) it = known_.emplace(value, compute(value, depth)).first;
  return it->second;
}

std::optional<Shape> Contents::compute(ValueId value, int depth) {
  if (depth > kMaxDepth) return std::nullopt;
  const Type& type = graph_.type(value);
  auto sizes = small_static_shape(type);
  const Node* node = graph_.def(value);
  if (!sizes || !node) return std::nullopt;
  switch (info(node->op).family) {
    case Family::Source:
      if (node->op == Op::Constant) {
        Shape result;
        const Tensor& t = node->attrs.data(Attr::Data);
        for (std::int64_t k = 0; k < t.size(); ++k) result.push_back(t.i64(k));
        return result;
      }
      if (node->op == Op::ShapeValue) return node->attrs.dims(Attr::Shape);
      if (node->op == Op::Iota) {
        Shape result;
        std::int64_t axis = node->attrs.integer(Attr::Axis);
        walk(*sizes, [&](std::int64_t, const auto& at) { result.push_back(at[axis]); });
        return result;
      }
      return std::nullopt;
    case Family::Cast: {
      const Type& from = graph_.type(node->operands[0]);
      if (node->op != Op::Cast || !(is_int(from.dtype) || is_bool(from.dtype))) return std::nullopt;
      auto x = at_depth(node->operands[0], depth + 1);
      // A narrower type might wrap; sizes are taken to fit 32 bits, truth is 0 or 1.
      if (x && (bits(type.dtype) < 32 || is_bool(type.dtype))) {
        for (const Dim& d : *x) {
          if (!d.is_const() || d.value() < 0 || d.value() > 1) return std::nullopt;
        }
      }
      return x;
    }
    case Family::Unary:
    case Family::Binary:
    case Family::Select:
      return elementwise(*node, depth);
    case Family::Movement:
      return movement(*node, depth);
    case Family::Gather:
      return gather(*node, depth);
    case Family::Reduce:
      return reduce(*node, depth);
    default:
      return std::nullopt;
  }
}

std::optional<Shape> Contents::elementwise(const Node& node, int depth) {
  std::vector<Shape> args;
  for (ValueId v : node.operands) {
    const auto& x = at_depth(v, depth + 1);
    if (!x) return std::nullopt;
    args.push_back(*x);
  }
  Shape result;
  for (std::size_t k = 0; k < args[0].size(); ++k) {
    std::optional<Dim> d;
    if (node.op == Op::Select) {
      if (args[0][k].is_const()) d = args[0][k].is(0) ? args[2][k] : args[1][k];
      else if (args[1][k] == args[2][k]) d = args[1][k];
    } else if (node.op == Op::Not && is_bool(graph_.type(node.results[0]).dtype)) {
      if (args[0][k].is_const()) d = Dim(args[0][k].is(0) ? 1 : 0);
    } else if (node.op == Op::Neg) {
      d = -args[0][k];
    } else if (args.size() == 2) {
      d = binary(graph_.facts, node.op, args[0][k], args[1][k]);
    }
    if (!d) return std::nullopt;
    result.push_back(*d);
  }
  return result;
}

std::optional<Shape> Contents::movement(const Node& node, int depth) {
  std::vector<Shape> args;
  std::vector<std::vector<std::int64_t>> sizes;
  for (ValueId v : node.operands) {
    const auto& x = at_depth(v, depth + 1);
    if (!x) return std::nullopt;
    args.push_back(*x);
    sizes.push_back(*static_sizes(graph_.type(v).shape));
  }
  auto to = *static_sizes(graph_.type(node.results[0]).shape);
  if (node.op == Op::Reshape) return args[0];
  Shape result;
  bool known = true;
  walk(to, [&](std::int64_t, const std::vector<std::int64_t>& at) {
    std::vector<std::int64_t> from(sizes[0].size());
    std::size_t which = 0;
    switch (node.op) {
      case Op::Transpose:
        for (std::size_t d = 0; d < at.size(); ++d) from[node.attrs.ints(Attr::Axes)[d]] = at[d];
        break;
      case Op::Broadcast:
        for (std::size_t d = 0; d < from.size(); ++d) from[d] = sizes[0][d] == 1 ? 0 : at[node.attrs.ints(Attr::Axes)[d]];
        break;
      case Op::Slice:
        for (std::size_t d = 0; d < from.size(); ++d) {
          const Dim& start = node.attrs.dims(Attr::Starts)[d];
          if (!start.is_const()) known = false;
          else from[d] = start.value() + at[d] * node.attrs.ints(Attr::Steps)[d];
        }
        break;
      case Op::Reverse: {
        from = at;
        for (std::int64_t axis : node.attrs.ints(Attr::Axes)) from[axis] = sizes[0][axis] - 1 - at[axis];
        break;
      }
      case Op::Concat: {
        std::int64_t axis = node.attrs.integer(Attr::Axis);
        from = at;
        while (from[axis] >= sizes[which][axis]) from[axis] -= sizes[which++][axis];
        break;
      }
      default:
        known = false;
    }
    if (known) result.push_back(args[which][flat_index(sizes[which], from)]);
  });
  return known ? std::optional<Shape>(result) : std::nullopt;
}

std::optional<Shape> Contents::gather(const Node& node, int depth) {
  if (node.op != Op::Gather) return std::nullopt;
  const auto& x = at_depth(node.operands[0], depth + 1);
  const auto& indices = at_depth(node.operands[1], depth + 1);
  if (!x || !indices) return std::nullopt;
  auto from = *static_sizes(graph_.type(node.operands[0]).shape);
  auto index_sizes = *static_sizes(graph_.type(node.operands[1]).shape);
  auto to = *static_sizes(graph_.type(node.results[0]).shape);
  std::size_t axis = node.attrs.integer(Attr::Axis);
  Shape result;
  bool known = true;
  walk(to, [&](std::int64_t, const std::vector<std::int64_t>& at) {
    std::vector<std::int64_t> index_at(at.begin() + axis, at.begin() + axis + index_sizes.size());
    const Dim& index = (*indices)[flat_index(index_sizes, index_at)];
    std::int64_t i = index.is_const() ? index.value() : from[axis];
    if (i < 0) i += from[axis];
    if (i < 0 || i >= from[axis]) {
      known = false;
      return;
    }
    std::vector<std::int64_t> source(at.begin(), at.begin() + axis);
    source.push_back(i);
    source.insert(source.end(), at.begin() + axis + index_sizes.size(), at.end());
    result.push_back((*x)[flat_index(from, source)]);
  });
  return known ? std::optional<Shape>(result) : std::nullopt;
}

std::optional<Shape> Contents::reduce(const Node& node, int depth) {
  Op op = node.op == Op::ReduceSum    ? Op::Add
          : node.op == Op::ReduceProd ? Op::Mul
          : node.op == Op::ReduceMax  ? Op::Max
          : node.op == Op::ReduceMin  ? Op::Min
                                      : Op::Constant;
  const auto& x = at_depth(node.operands[0], depth + 1);
  if (!x || op == Op::Constant || x->empty()) return std::nullopt;
  auto from = *static_sizes(graph_.type(node.operands[0]).shape);
  auto to = *static_sizes(graph_.type(node.results[0]).shape);
  const auto& axes = node.attrs.ints(Attr::Axes);
  std::vector<std::optional<Dim>> result(count_of(to));
  bool known = true;
  walk(from, [&](std::int64_t flat, const std::vector<std::int64_t>& at) {
    std::vector<std::int64_t> kept;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) == axes.end()) kept.push_back(at[d]);
    }
    auto& slot = result[flat_index(to, kept)];
    std::optional<Dim> next = slot ? binary(graph_.facts, op, *slot, (*x)[flat]) : (*x)[flat];
    if (!next) known = false;
    slot = next;
  });
  if (!known) return std::nullopt;
  Shape dims;
  for (const auto& d : result) dims.push_back(*d);
  return dims;
}

}  // namespace weft::graph
