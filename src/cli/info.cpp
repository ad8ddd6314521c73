// weft info: what a model is.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "api/state.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cost/cost.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "loop/lower/lower.h"

namespace weft::cli {
namespace {

std::string type_text(const onnx::Type& type) {
  using Kind = onnx::Type::Kind;
  const std::string inner = type.element ? type_text(*type.element) : "?";
  switch (type.kind) {
    case Kind::Unset: return "?";
    case Kind::Sequence: return fmt::format("sequence of {}", inner);
    case Kind::Optional: return fmt::format("optional {}", inner);
    case Kind::Map: return fmt::format("map to {}", inner);
    case Kind::Tensor:
    case Kind::SparseTensor: break;
  }
  std::string text = type.kind == Kind::SparseTensor ? "sparse " : "";
  text += type.elem ? name(*type.elem) : "?";
  if (!type.shape) return text + " of any rank";
  std::vector<std::string> dims;
  for (const onnx::DimSpec& d : *type.shape) {
    dims.push_back(d.value ? std::to_string(*d.value) : d.param.empty() ? "?" : d.param);
  }
  return text + "[" + joined(dims) + "]";
}

// Operators, the bodies of branches, loops and functions included.
void count_nodes(const std::vector<onnx::Node>& nodes, std::map<std::string, int>& histogram) {
  for (const onnx::Node& node : nodes) {
    ++histogram[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
    for (const onnx::Attribute& attribute : node.attributes) {
      if (const auto* graph = attribute.as<onnx::GraphPtr>()) count_nodes((*graph)->nodes, histogram);
      if (const auto* graphs = attribute.as<std::vector<onnx::GraphPtr>>()) {
        for (const onnx::GraphPtr& graph : *graphs) count_nodes(graph->nodes, histogram);
      }
    }
  }
}

void print_ports(const char* what, const std::vector<onnx::ValueInfo>& values, const onnx::Graph& graph) {
  Table table({what, "type"});
  for (const onnx::ValueInfo& v : values) {
    const bool has_default = std::any_of(graph.initializers.begin(), graph.initializers.end(),
                                         [&](const onnx::NamedTensor& t) { return t.name == v.name; });
    if (!has_default) table.row({v.name, type_text(v.type)});
  }
  print(table);
}

void print_weights(const onnx::Graph& graph) {
  double elements = 0, bytes = 0;
  for (const onnx::NamedTensor& t : graph.initializers) {
    elements += static_cast<double>(t.tensor.size());
    bytes += static_cast<double>(t.tensor.byte_size());
  }
  fmt::print("\nweights     {} tensors, {} elements, {}\n", graph.initializers.size(), count_text(elements), bytes_text(bytes));
}

void print_histogram(const onnx::Model& model) {
  std::map<std::string, int> histogram;
  count_nodes(model.graph->nodes, histogram);
  for (const onnx::Function& function : model.functions) count_nodes(function.nodes, histogram);
  std::vector<std::pair<std::string, int>> sorted(histogram.begin(), histogram.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({"operator", "nodes"});
  for (const auto& [op, count] : sorted) table.row({op, std::to_string(count)});
  fmt::print("\n");
  print(table);
}

// Float operations and the traffic of the fused groups, for the sizes that --dim gives. Bodies of branches and loops
// are not counted: how often they run is known only then.
Result<void> print_cost(const ModelArguments& arguments) {
  const Model model = WEFT_TRY(load_model(arguments));
  const graph::Graph graph = WEFT_TRY(transform::optimize(*model.state->graph));
  const loop::Partition partition = WEFT_TRY(loop::lower(graph));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const Bindings bindings = WEFT_TRY(graph::bind_inputs(graph, shapes));
  double flops = 0;
  int groups = 0, unknown = 0;
  for (const loop::Step& step : partition.steps) {
    if (step.kind != loop::Step::Kind::Kernel) continue;
    ++groups;
    const auto count = cost::group_cost(step.group).flops.evaluate(bindings);
    count.ok() ? void(flops += static_cast<double>(*count)) : void(++unknown);
  }
  std::string sizes;
  for (const auto& [symbol, value] : bindings) sizes += fmt::format(" {}={}", symbol, value);
  fmt::print("prims       {}\nkernels     {}\nFLOPs       {}{}{}\n", graph.nodes().size(), groups, count_text(flops),
             sizes.empty() ? "" : " at" + sizes,
             unknown > 0 ? fmt::format(" ({} kernels of sizes known only when they run are not counted)", unknown) : "");
  return {};
}

Result<int> info_of(const ModelArguments& arguments) {
  WEFT_TRY(require_file(arguments.path));
  const onnx::Model model = WEFT_TRY(onnx::read_model_file(arguments.path));
  WEFT_TRY(onnx::validate(model));
  std::vector<std::string> opsets;
  for (const auto& [domain, version] : model.opset_imports) {
    opsets.push_back(fmt::format("{} {}", domain.empty() ? "ai.onnx" : domain, version));
  }
  fmt::print("producer    {} {}\nIR version  {}\nopsets      {}\n", model.producer_name, model.producer_version,
             model.ir_version, joined(opsets));
  fmt::print("\n");
  print_ports("input", model.graph->inputs, *model.graph);
  fmt::print("\n");
  print_ports("output", model.graph->outputs, *model.graph);
  print_weights(*model.graph);
  if (const auto cost = print_cost(arguments); !cost.ok()) {
    if (cost.error().kind() != ErrorKind::Unsupported) return cost.error();
    fmt::print("FLOPs       unknown: this model is not supported; 'weft check' says what is missing\n");
  }
  print_histogram(model);
  return kSuccess;
}

}  // namespace

Action add_info(CLI::App& app) {
  auto arguments = std::make_shared<ModelArguments>();
  add_model_options(app, *arguments);
  return [arguments] { return info_of(*arguments); };
}

}  // namespace weft::cli
