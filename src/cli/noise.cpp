#include "cli/noise.h"

#include <algorithm>
#include <cmath>

namespace weft::cli {
namespace {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::ValueId;

DType wide(DType t) { return t == DType::F32 ? DType::F64 : t; }

Result<Tensor> widened(const Tensor& t) {
  if (t.dtype() != DType::F32) return t;
  Tensor result = WEFT_TRY(Tensor::empty(DType::F64, t.shape()));
  for (std::int64_t i = 0; i < t.size(); ++i) result.set_f64(i, t.f64(i));
  return result;
}

Result<Attrs> widened(const Attrs& attrs) {
  Attrs result;
  for (const auto& [key, value] : attrs.all()) {
    if (const DType* t = std::get_if<DType>(&value)) {
      result.set(key, wide(*t));
    } else if (const Tensor* data = std::get_if<Tensor>(&value)) {
      result.set(key, WEFT_TRY(widened(*data)));
    } else {
      result.set(key, value);
    }
  }
  return result;
}

Result<Graph> widened(const Graph& g) {
  Graph result;
  result.name = g.name;
  result.facts = g.facts;
  std::vector<ValueId> at(g.values().size(), -1);
  for (ValueId v : g.inputs()) at[v] = result.add_input({wide(g.type(v).dtype), g.type(v).shape}, g.value(v).name);
  for (const Node& node : g.nodes()) {
    if (node.op == graph::Op::Bitcast) return unsupported("unsupported-op", "the graph looks at the bits of numbers");
    std::vector<ValueId> operands;
    for (ValueId v : node.operands) operands.push_back(at[v]);
    std::vector<std::shared_ptr<const Graph>> regions;
    for (const auto& region : node.regions) regions.push_back(std::make_shared<Graph>(WEFT_TRY(widened(*region))));
    const auto id = WEFT_TRY(result.add_node(node.op, operands, WEFT_TRY(widened(node.attrs)), std::move(regions), node.origin));
    const std::vector<ValueId> results = result.node(id).results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      at[node.results[i]] = results[i];
      result.set_shape(results[i], g.type(node.results[i]).shape);
    }
  }
  std::vector<ValueId> outputs;
  for (ValueId v : g.outputs()) outputs.push_back(at[v]);
  result.set_outputs(outputs);
  return result;
}

}  // namespace

Result<std::vector<double>> rounding_noise(const Graph& graph, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& want) {
  std::vector<Tensor> wide_inputs;
  for (const Tensor& t : inputs) wide_inputs.push_back(WEFT_TRY(widened(t)));
  const std::vector<Tensor> exact = WEFT_TRY(graph::interpret(WEFT_TRY(widened(graph)), wide_inputs));
  std::vector<double> noise(want.size(), 0);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i].dtype() != DType::F32 || exact[i].shape() != want[i].shape()) continue;
    for (std::int64_t k = 0; k < want[i].size(); ++k) {
      const double off = std::abs(want[i].f64(k) - exact[i].f64(k));
      if (std::isfinite(off)) noise[i] = std::max(noise[i], off);
    }
  }
  return noise;
}

}  // namespace weft::cli
