#include "transform/rules/match.h"

#include <cmath>

#include "graph/content.h"

namespace weft::transform {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::RewriteContext;
using graph::ValueId;
using GOp = graph::Op;

const Node* operand_def(const RewriteContext& c, std::size_t operand, GOp op) {
  const Node* def = c.builder.graph().def(c.operands[operand]);
  return def && def->op == op ? def : nullptr;
}

const graph::Type& result_type(const RewriteContext& c) { return c.from.type(c.node.results[0]); }

const Tensor* splat_of(const Graph& g, ValueId v) {
  const Node* node = g.def(v);
  while (node && (node->op == GOp::Broadcast || node->op == GOp::Reshape)) {
    v = node->operands[0];
    node = g.def(v);
  }
  const Tensor* data = g.constant(v);
  if (!data || data->size() != 1 || is_complex(data->dtype()) || is_string(data->dtype())) return nullptr;
  return data;
}

bool is_splat(const RewriteContext& c, ValueId v, double value) {
  const Tensor* data = splat_of(c.builder.graph(), v);
  if (!data) return false;
  if (!is_float(data->dtype())) return static_cast<double>(data->i64(0)) == value;
  return data->f64(0) == value && !(value == 0 && std::signbit(data->f64(0)));
}

namespace {

constexpr int kMaxDepth = 16;
constexpr std::int64_t kMaxElements = 1 << 16;

std::optional<Affine> affine_at(const Graph& g, ValueId v, int depth);

std::optional<Affine> affine_constant(const Tensor& t) {
  if (t.size() == 0 || t.size() > kMaxElements) return std::nullopt;
  const std::vector<std::int64_t> strides = row_major_strides(t.shape());
  Axes coefficients(t.shape().size(), 0);
  for (std::size_t a = 0; a < coefficients.size(); ++a) {
    if (t.shape()[a] < 2) continue;
    if (__builtin_sub_overflow(t.i64(strides[a]), t.i64(0), &coefficients[a])) return std::nullopt;
  }
  for (std::int64_t i = 0; i < t.size(); ++i) {
    __int128 value = t.i64(0);
    for (std::size_t a = 0; a < coefficients.size(); ++a) {
      value += static_cast<__int128>(i / strides[a] % t.shape()[a]) * coefficients[a];
    }
    if (value != t.i64(i)) return std::nullopt;
  }
  return Affine{t.i64(0), Shape(coefficients.begin(), coefficients.end())};
}

// Axes of other sizes than 1 keep their coefficients when only axes of size 1 come and go.
std::optional<Affine> affine_reshape(const Graph& g, const Node& node, int depth) {
  auto x = affine_at(g, node.operands[0], depth);
  const Shape& from = g.type(node.operands[0]).shape;
  const Shape& to = g.type(node.results[0]).shape;
  if (!x) return std::nullopt;
  Affine out{x->base, Shape(to.size(), Dim(0))};
  std::size_t j = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].is(1)) continue;
    while (j < to.size() && to[j].is(1)) ++j;
    if (j == to.size() || !g.facts.known_equal(from[i], to[j])) return std::nullopt;
    out.coefficients[j++] = x->coefficients[i];
  }
  while (j < to.size() && to[j].is(1)) ++j;
  return j == to.size() ? std::optional(out) : std::nullopt;
}

std::optional<Affine> affine_broadcast(const Graph& g, const Node& node, int depth) {
  auto x = affine_at(g, node.operands[0], depth);
  if (!x) return std::nullopt;
  const Shape& from = g.type(node.operands[0]).shape;
  Affine out{x->base, Shape(g.type(node.results[0]).shape.size(), Dim(0))};
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is(1)) out.coefficients[node.attrs.ints(Attr::Axes)[i]] = x->coefficients[i];
  }
  return out;
}

std::optional<Affine> affine_slice(const Graph& g, const Node& node, int depth) {
  auto x = affine_at(g, node.operands[0], depth);
  if (!x) return std::nullopt;
  for (std::size_t i = 0; i < x->coefficients.size(); ++i) {
    x->base = x->base + x->coefficients[i] * node.attrs.dims(Attr::Starts)[i];
    x->coefficients[i] = x->coefficients[i] * Dim(node.attrs.ints(Attr::Steps)[i]);
  }
  return x;
}

bool is_uniform(const Affine& a) {
  for (const Dim& d : a.coefficients) {
    if (!d.is(0)) return false;
  }
  return true;
}

std::optional<Affine> affine_binary(const Graph& g, const Node& node, int depth) {
  auto a = affine_at(g, node.operands[0], depth), b = affine_at(g, node.operands[1], depth);
  if (!a || !b) return std::nullopt;
  if (node.op == GOp::Mul) {
    if (!is_uniform(*b)) std::swap(a, b);
    if (!is_uniform(*b)) return std::nullopt;
    for (Dim& d : a->coefficients) d = d * b->base;
    a->base = a->base * b->base;
    return a;
  }
  const Dim sign = node.op == GOp::Sub ? -1 : 1;
  a->base = a->base + sign * b->base;
  for (std::size_t i = 0; i < a->coefficients.size(); ++i) {
    a->coefficients[i] = a->coefficients[i] + sign * b->coefficients[i];
  }
  return a;
}

std::optional<Affine> affine_at(const Graph& g, ValueId v, int depth) {
  // Sums wrap in the dtype, Dims do not: only i64, where Dims report the overflow.
  if (depth > kMaxDepth || g.type(v).dtype != DType::I64) {
    const Tensor* data = g.constant(v);
    return data && is_int(data->dtype()) && data->dtype() != DType::U64 ? affine_constant(*data) : std::nullopt;
  }
  if (const Tensor* data = g.constant(v)) return affine_constant(*data);
  const Node* node = g.def(v);
  if (!node) return std::nullopt;
  switch (node->op) {
    case GOp::Iota: {
      Affine a{0, Shape(g.type(v).shape.size(), Dim(0))};
      a.coefficients[node->attrs.integer(Attr::Axis)] = 1;
      return a;
    }
    case GOp::ShapeValue:
      if (g.type(v).shape.size() != 1 || !g.type(v).shape[0].is(1)) return std::nullopt;
      return Affine{node->attrs.dims(Attr::Shape)[0], {Dim(0)}};
    case GOp::Broadcast: return affine_broadcast(g, *node, depth + 1);
    case GOp::Reshape: return affine_reshape(g, *node, depth + 1);
    case GOp::Slice: return affine_slice(g, *node, depth + 1);
    case GOp::Add:
    case GOp::Sub:
    case GOp::Mul: return affine_binary(g, *node, depth + 1);
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<Affine> affine_of(const Graph& g, ValueId v) { return affine_at(g, v, 0); }

}  // namespace weft::transform
