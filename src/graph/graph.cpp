#include "graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::graph {
namespace {

void declare_symbols(const Shape& shape, DimFacts& facts) {
  if (is_static(shape)) return;
  std::set<std::string> symbols;
  for (const Dim& d : shape) d.collect_symbols(symbols);
  for (const std::string& s : symbols) {
    if (facts.symbols().count(s) == 0) facts.declare(s, {});
  }
}

}  // namespace

std::string str(const Origin& origin) {
  return origin.op.empty() ? origin.node : fmt::format("{} ({})", origin.node, origin.op);
}

bool is_pure(const Node& node) {
  const OpInfo& op = info(node.op);
  if (!op.regions) return op.pure;
  for (const auto& region : node.regions) {
    for (const Node& inner : region->nodes()) {
      if (!is_pure(inner)) return false;
    }
  }
  return true;
}

std::vector<std::string> bound_symbols(const Node& node) {
  std::vector<std::string> symbols;
  const Attr attr = node.op == Op::Bind ? Attr::Shape : Attr::Symbol;
  if (node.op != Op::Bind && !node.attrs.has(Attr::Symbol)) return symbols;
  for (const Dim& d : node.attrs.dims(attr)) {
    if (auto symbol = d.as_symbol()) symbols.push_back(*symbol);
  }
  return symbols;
}

ValueId Graph::add_input(Type type, std::string name) {
  declare_symbols(type.shape, facts);
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back(
      {std::move(type), kGraphInput, static_cast<int>(inputs_.size()), std::move(name)});
  inputs_.push_back(id);
  return id;
}

Result<NodeId> Graph::add_node(Op op, std::vector<ValueId> operands, Attrs attrs,
                               std::vector<std::shared_ptr<const Graph>> regions,
                               std::shared_ptr<const Origin> origin) {
  std::vector<Type> operand_types;
  for (ValueId v : operands) {
    WEFT_CHECK(v >= 0 && v < static_cast<ValueId>(values_.size()),
               fmt::format("{}: operand %{} is not in the graph", info(op).name, v));
    operand_types.push_back(values_[v].type);
  }
  auto inferred = infer({op, std::move(operand_types), attrs, regions, facts});
  if (!inferred.ok()) {
    Error error = inferred.error();
    if (origin != nullptr && error.where().empty()) error.at(str(*origin));
    return error;
  }

  const NodeId id = append({op, std::move(operands), {}, std::move(attrs), std::move(regions), std::move(origin)}, std::move(*inferred));
  // The symbols of a shape that a value has are declared.
  const Node& node = nodes_[id];
  const auto declare = [&](const std::vector<ValueId>& values, const Shape& shape) {
    const auto has = [&](ValueId v) { return values_[v].type.shape == shape; };
    if (std::none_of(values.begin(), values.end(), has)) declare_symbols(shape, facts);
  };
  for (ValueId v : node.results) declare(node.operands, values_[v].type.shape);
  for (const auto& [key, value] : node.attrs.all()) {
    if (const auto* dims = std::get_if<Shape>(&value)) declare(node.results, *dims);
  }
  return id;
}

Result<NodeId> Graph::copy_node(const Graph& from, const Node& node, std::vector<ValueId> operands,
                                std::vector<std::shared_ptr<const Graph>> regions) {
  bool alike = operands.size() == node.operands.size() && regions == node.regions;
  for (std::size_t i = 0; alike && i < operands.size(); ++i) alike = type(operands[i]) == from.type(node.operands[i]);
  if (!alike) return add_node(node.op, std::move(operands), node.attrs, std::move(regions), node.origin);
  std::vector<Type> types;
  types.reserve(node.results.size());
  for (ValueId v : node.results) types.push_back(from.type(v));
  return append({node.op, std::move(operands), {}, node.attrs, std::move(regions), node.origin}, std::move(types));
}

NodeId Graph::append(Node node, std::vector<Type> types) {
  const auto id = static_cast<NodeId>(nodes_.size());
  node.results.reserve(types.size());
  for (Type& type : types) {
    node.results.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({std::move(type), id, static_cast<int>(node.results.size()) - 1, ""});
  }
  nodes_.push_back(std::move(node));
  return id;
}

const Tensor* Graph::constant(ValueId id) const {
  const Node* node = def(id);
  return node != nullptr && node->op == Op::Constant ? &node->attrs.data(Attr::Data) : nullptr;
}

}  // namespace weft::graph
