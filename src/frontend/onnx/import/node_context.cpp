#include "frontend/onnx/import/node_context.h"

#include <fmt/format.h>

#include "frontend/onnx/import/importer.h"

namespace weft::onnx {

bool NodeContext::has(int i) const { return i < input_count() && !node_.inputs[i].empty(); }

ValueId NodeContext::in(int i) const {
  WEFT_CHECK(has(i), fmt::format("operand {} of {} is not there", i, node_.op_type));
  return importer_.scope().find(node_.inputs[i]);
}

const Sequence* NodeContext::sequence(int i) const {
  return has(i) ? importer_.scope().find_sequence(node_.inputs[i]) : nullptr;
}

const Tensor* NodeContext::constant(int i) const { return has(i) ? b.graph().constant(in(i)) : nullptr; }

std::optional<Shape> NodeContext::dims(int i) const {
  if (!has(i)) return std::nullopt;
  return importer_.contents(in(i));
}

Result<Shape> NodeContext::dims_or_bind(int i, const char* what, SymbolRange range, Beyond beyond) {
  if (auto known = dims(i)) return *known;
  const graph::Type t = type(i);
  if (!is_int(t.dtype)) return bad(fmt::format("{} must be an integer tensor", what));
  if (t.rank() > 1 || (t.rank() == 1 && !t.shape[0].is_const())) {
    return missing(fmt::format("{} of a length known only at run time", what));
  }
  std::int64_t count = t.rank() == 0 ? 1 : t.shape[0].value();
  if (count > 64) return missing(fmt::format("{} with more than 64 elements known only at run time", what));
  Shape symbols;
  for (std::int64_t k = 0; k < count; ++k) symbols.push_back(fresh_symbol(what, range));
  ValueId bound = in(i);
  if (beyond == Beyond::End) {
    const auto end = [&](std::int64_t v) { return b.constant(Tensor::scalar_i64(DType::I64, v)); };
    bound = b.binary(graph::Op::Min, b.binary(graph::Op::Max, b.cast(bound, DType::I64), end(range.lo)), end(range.hi));
  }
  b.nodes(graph::Op::Bind, {bound}, graph::Attrs().set(graph::Attr::Shape, symbols));
  return symbols;
}

Result<std::vector<std::int64_t>> NodeContext::ints(int i, const char* what) const {
  auto known = dims(i);
  if (!known && constant(i) && is_int(constant(i)->dtype())) {
    std::vector<std::int64_t> values;
    for (std::int64_t k = 0; k < constant(i)->size(); ++k) values.push_back(constant(i)->i64(k));
    return values;
  }
  if (!known) return missing(fmt::format("{} known only at run time", what));
  auto values = static_sizes(*known);
  if (!values) return missing(fmt::format("{} that depend on symbolic sizes", what));
  return *values;
}

const Attribute* NodeContext::find(std::string_view name) const { return node_.find_attribute(name); }

template <class T>
const T* NodeContext::get(std::string_view name) const {
  const Attribute* a = find(name);
  if (!a) return nullptr;
  const T* value = a->as<T>();
  if (!value) b.fail(bad(fmt::format("attribute '{}' has the wrong type ({})", name, onnx::name(a->type()))));
  return value;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t fallback) const {
  const auto* v = get<std::int64_t>(name);
  return v ? *v : fallback;
}

double NodeContext::real(std::string_view name, double fallback) const {
  const auto* v = get<float>(name);
  return v ? static_cast<double>(*v) : fallback;
}

std::string NodeContext::text(std::string_view name, std::string_view fallback) const {
  const auto* v = get<std::string>(name);
  return v ? *v : std::string(fallback);
}

std::vector<std::int64_t> NodeContext::integers(std::string_view name, std::vector<std::int64_t> fallback) const {
  const auto* v = get<std::vector<std::int64_t>>(name);
  return v ? *v : std::move(fallback);
}

std::vector<float> NodeContext::reals(std::string_view name, std::vector<float> fallback) const {
  const auto* v = get<std::vector<float>>(name);
  return v ? *v : std::move(fallback);
}

std::vector<std::string> NodeContext::texts(std::string_view name) const {
  const auto* v = get<std::vector<std::string>>(name);
  return v ? *v : std::vector<std::string>();
}

const Tensor* NodeContext::tensor(std::string_view name) const { return get<Tensor>(name); }

GraphPtr NodeContext::subgraph(std::string_view name) const {
  const auto* v = get<GraphPtr>(name);
  return v ? *v : nullptr;
}

void NodeContext::out(int i, ValueId value) {
  if (!wants(i)) return;
  importer_.scope().values[node_.outputs[i]] = value;
  if (value >= 0 && b.graph().value(value).name.empty()) b.graph().set_name(value, node_.outputs[i]);
}

void NodeContext::out(int i, Sequence sequence) {
  if (wants(i)) importer_.scope().sequences[node_.outputs[i]] = std::move(sequence);
}

Result<std::int64_t> NodeContext::axis(std::int64_t value, int rank) const {
  if (value < -rank || value >= rank) {
    return bad(fmt::format("axis {} is out of range for rank {}", value, rank)).expected(fmt::format("{} to {}", -rank, rank - 1));
  }
  return value < 0 ? value + rank : value;
}

Result<std::vector<std::int64_t>> NodeContext::axes(std::vector<std::int64_t> values, int rank) const {
  std::vector<bool> seen(rank, false);
  for (std::int64_t& a : values) {
    a = WEFT_TRY(axis(a, rank));
    if (seen[a]) return bad(fmt::format("axis {} is given twice", a));
    seen[a] = true;
  }
  return values;
}

Error NodeContext::bad(std::string message) const {
  return user_error("invalid-node", fmt::format("{}: {}", node_.op_type, message)).at(node_.label());
}

Error NodeContext::missing(std::string what) const {
  return unsupported("unsupported-node", fmt::format("{}: {}", node_.op_type, what)).at(node_.label());
}

Dim NodeContext::fresh_symbol(std::string_view hint, SymbolRange range) { return importer_.fresh_symbol(hint, range); }

}  // namespace weft::onnx
