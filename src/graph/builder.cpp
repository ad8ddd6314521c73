#include "graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::graph {
namespace {

// How many results a failed call would have had, so that callers may index what they got.
std::size_t expected_results(Op op, const Attrs& attrs,
                             const std::vector<std::shared_ptr<const Graph>>& regions) {
  if (info(op).results >= 0) return static_cast<std::size_t>(info(op).results);
  if (!regions.empty() && regions[0] != nullptr) {
    const std::size_t outputs = regions[0]->outputs().size();
    return op == Op::Loop && outputs > 0 ? outputs - 1 : outputs;  // the condition is no result
  }
  if (!attrs.has(Attr::Types)) return 0;
  const auto types = parse_types(attrs.str(Attr::Types));
  return types.ok() ? types->size() : 0;
}

}  // namespace

Result<void> Builder::status() const {
  if (error_) return *error_;
  return {};
}

void Builder::fail(Error error) {
  if (error_) return;
  if (origin_ != nullptr && error.where().empty()) error.at(str(*origin_));
  error_ = std::move(error);
}

bool Builder::valid(const std::vector<ValueId>& values) const {
  return std::all_of(values.begin(), values.end(), [](ValueId v) { return v >= 0; });
}

std::vector<ValueId> Builder::nodes(Op op, std::vector<ValueId> operands, Attrs attrs,
                                    std::vector<std::shared_ptr<const Graph>> regions) {
  const std::size_t results = expected_results(op, attrs, regions);
  if (!valid(operands)) {
    if (!error_) fail(internal_error(fmt::format("{}: an operand was never built", info(op).name)));
    return std::vector<ValueId>(results, kInvalid);
  }
  auto id = graph_.add_node(op, std::move(operands), std::move(attrs), std::move(regions), origin_);
  if (!id.ok()) {
    fail(id.error());
    return std::vector<ValueId>(results, kInvalid);
  }
  return folding_ ? folded(*id) : graph_.node(*id).results;
}

std::vector<ValueId> Builder::folded(NodeId id) {
  const Node node = graph_.node(id);
  if (!info(node.op).pure || info(node.op).host || node.op == Op::Constant || !node.regions.empty()) return node.results;
  std::vector<Tensor> operands;
  for (ValueId v : node.operands) {
    const Tensor* data = graph_.constant(v);
    if (!data) return node.results;
    operands.push_back(*data);
  }
  for (ValueId v : node.results) {
    auto sizes = static_sizes(graph_.type(v).shape);
    if (!sizes) return node.results;
    std::size_t bytes = bits(graph_.type(v).dtype) / 8 + 1;
    for (std::int64_t d : *sizes) {
      if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(d), &bytes)) return node.results;
    }
    if (bytes > kFoldBytes) return node.results;
  }
  Bindings none;
  auto results = interpret_node(graph_, node, operands, none);
  if (!results.ok()) {
    // A symbolic size among the attributes is no fault: the node stays. Anything else would fail in every run.
    bool symbolic = results.error().code() == "unbound-size";
    if (results.error().kind() == ErrorKind::User && !symbolic) fail(results.error());
    return node.results;
  }
  std::vector<ValueId> values;
  for (Tensor& t : *results) values.push_back(constant(std::move(t)));
  return values;
}

ValueId Builder::node(Op op, std::vector<ValueId> operands, Attrs attrs,
                      std::vector<std::shared_ptr<const Graph>> regions) {
  const auto results = nodes(op, std::move(operands), std::move(attrs), std::move(regions));
  if (results.empty() && error_) return kInvalid;
  WEFT_CHECK(results.size() == 1, std::string(info(op).name) + " has not just one result");
  return results[0];
}

const Type& Builder::type(ValueId v) const {
  static const Type scalar;
  return v < 0 ? scalar : graph_.type(v);
}

ValueId Builder::constant(Tensor data) {
  return node(Op::Constant, {}, Attrs().set(Attr::Data, std::move(data)));
}

ValueId Builder::scalar(DType dtype, double value) {
  if (is_string(dtype)) {
    fail(internal_error("a number as a scalar of strings"));
    return kInvalid;
  }
  if (is_complex(dtype)) return cast(scalar(DType::F64, value), dtype);
  return constant(Tensor::scalar(dtype, value));
}

ValueId Builder::splat(const Type& type, double value) {
  return broadcast_in(scalar(type.dtype, value), type.shape, {});
}

ValueId Builder::shape_value(Shape dims) {
  if (auto sizes = static_sizes(dims)) return constant(Tensor::of(*sizes));
  return node(Op::ShapeValue, {}, Attrs().set(Attr::Shape, std::move(dims)));
}

ValueId Builder::iota(DType dtype, Shape shape, std::int64_t axis) {
  if (axis < 0) axis += static_cast<std::int64_t>(shape.size());
  return node(
      Op::Iota, {},
      Attrs().set(Attr::DType, dtype).set(Attr::Shape, std::move(shape)).set(Attr::Axis, axis));
}

ValueId Builder::binary(Op op, ValueId a, ValueId b) {
  if (!valid({a, b})) return node(op, {a, b});
  auto common = broadcast_shapes({shape(a), shape(b)});
  if (!common.ok()) {
    fail(common.error());
    return kInvalid;
  }
  return node(op, {broadcast_to(a, *common), broadcast_to(b, *common)});
}

ValueId Builder::select(ValueId cond, ValueId a, ValueId b) {
  if (!valid({cond, a, b})) return node(Op::Select, {cond, a, b});
  auto common = broadcast_shapes({shape(cond), shape(a), shape(b)});
  if (!common.ok()) {
    fail(common.error());
    return kInvalid;
  }
  return node(Op::Select,
              {broadcast_to(cond, *common), broadcast_to(a, *common), broadcast_to(b, *common)});
}

ValueId Builder::cast(ValueId x, DType dtype, bool saturate) {
  if (x >= 0 && this->dtype(x) == dtype) return x;
  Attrs attrs;
  attrs.set(Attr::DType, dtype);
  // Only the float formats of at most a byte have two readings of overflow.
  if (saturate && is_float(dtype) && bits(dtype) <= 8) attrs.set(Attr::Saturate, true);
  return node(Op::Cast, {x}, std::move(attrs));
}

}  // namespace weft::graph
