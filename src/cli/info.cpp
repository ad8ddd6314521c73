// weft info: what a model is, or an object file that `weft compile` wrote.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "api/state.h"
#include "base/bytes.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/table.h"
#include "codegen/llvm/codegen.h"
#include "cost/cost.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "loop/lower/lower.h"
#include "schedule/choices.h"

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

struct Contents {
  std::map<std::string, int> operators;
  int tensors = 0;  // initializers and constants
  double elements = 0, bytes = 0;

  void add(const Tensor& tensor) {
    ++tensors;
    elements += static_cast<double>(tensor.size());
    bytes += static_cast<double>(tensor.byte_size());
  }
};

// Of the bodies of branches and loops, too.
void count(const std::vector<onnx::Node>& nodes, Contents& into);

void count(const onnx::Graph& graph, Contents& into) {
  for (const onnx::NamedTensor& t : graph.initializers) into.add(t.tensor);
  count(graph.nodes, into);
}

void count(const std::vector<onnx::Node>& nodes, Contents& into) {
  for (const onnx::Node& node : nodes) {
    ++into.operators[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
    for (const onnx::Attribute& attribute : node.attributes) {
      if (const auto* tensor = attribute.as<Tensor>()) into.add(*tensor);
      if (const auto* graph = attribute.as<onnx::GraphPtr>()) count(**graph, into);
      if (const auto* graphs = attribute.as<std::vector<onnx::GraphPtr>>()) {
        for (const onnx::GraphPtr& graph : *graphs) count(*graph, into);
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

// The sizes that are open, by the names that --dim takes.
void print_sizes(const onnx::Graph& graph) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : graph.inputs) {
    for (std::size_t axis = 0; input.type.shape && axis < input.type.shape->size(); ++axis) {
      const onnx::DimSpec& spec = (*input.type.shape)[axis];
      const std::string name = onnx::size_name(spec, input.name, axis);
      if (!spec.value && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  fmt::print("\nopen sizes  {}\n", names.empty() ? "none" : joined(names));
}

void print_weights(const Contents& contents) {
  fmt::print("weights     {} tensor{}, {} elements, {}\n", contents.tensors, contents.tensors == 1 ? "" : "s",
             count_text(contents.elements), bytes_text(contents.bytes));
}

void print_histogram(const Contents& contents) {
  std::vector<std::pair<std::string, int>> sorted(contents.operators.begin(), contents.operators.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({"operator", "nodes"});
  for (const auto& [op, nodes] : sorted) table.row({op, std::to_string(nodes)});
  fmt::print("\n");
  print(table);
}

// The float operations of a graph, bodies of branches and loops included.
struct Work {
  double flops = 0;
  int kernels = 0;
  int unknown = 0;       // kernels of sizes that are known only when they run
  int open_loops = 0;    // counted as one iteration
  int branches = 0;      // the costlier side counts

  void add(const Work& body, double times) {
    flops += times * body.flops;
    kernels += body.kernels;
    unknown += body.unknown;
    open_loops += body.open_loops;
    branches += body.branches;
  }
};

Result<Work> work_of(const graph::Graph& graph, const Bindings& bindings);

// How often the body of a loop or scan runs, where that is known.
std::optional<double> iterations(const graph::Graph& graph, const graph::Node& node, const Bindings& bindings) {
  if (node.op == graph::Op::Scan) {
    const graph::ValueId first = node.operands[static_cast<std::size_t>(node.attrs.integer(graph::Attr::Carried))];
    const auto length = graph.type(first).shape[0].evaluate(bindings);
    return length.ok() ? std::optional(static_cast<double>(*length)) : std::nullopt;
  }
  const Tensor* count = graph.constant(node.operands[0]);
  constexpr std::int64_t kMost = 1 << 30;  // a larger count stands for "until the condition fails"
  if (count == nullptr || count->size() != 1 || count->i64(0) > kMost) return std::nullopt;
  return static_cast<double>(std::max<std::int64_t>(0, count->i64(0)));
}

Result<void> add_control(const graph::Graph& graph, const graph::Node& node, const Bindings& bindings, Work& total) {
  std::vector<Work> bodies;
  for (const auto& region : node.regions) bodies.push_back(WEFT_TRY(work_of(*region, bindings)));
  if (bodies.empty()) return {};
  if (node.op == graph::Op::If) {
    const bool first = bodies[0].flops >= bodies[1].flops;
    total.add(bodies[0], first ? 1 : 0);
    total.add(bodies[1], first ? 0 : 1);
    ++total.branches;
    return {};
  }
  const auto times = iterations(graph, node, bindings);
  total.add(bodies[0], times.value_or(1));
  total.open_loops += times ? 0 : 1;
  return {};
}

Result<Work> work_of(const graph::Graph& graph, const Bindings& bindings) {
  Work total;
  for (const loop::Step& step : WEFT_TRY(loop::lower(graph, schedule::lowering_choices(host_machine()))).steps) {
    if (step.kind != loop::Step::Kind::Kernel) {
      WEFT_TRY(add_control(graph, graph.node(step.node), bindings, total));
      continue;
    }
    ++total.kernels;
    const auto count = cost::group_cost(step.group).flops.evaluate(bindings);
    count.ok() ? void(total.flops += static_cast<double>(*count)) : void(++total.unknown);
  }
  return total;
}

// For the sizes that --dim gives.
Result<void> print_cost(const ModelArguments& arguments) {
  const Model model = WEFT_TRY(load_model(arguments));
  const graph::Graph graph = WEFT_TRY(transform::optimize(*model.state->graph()));
  const std::vector<Tensor> inputs = WEFT_TRY(model_inputs(model, arguments));
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const Bindings bindings = WEFT_TRY(graph::bind_inputs(graph, shapes));
  const Work work = WEFT_TRY(work_of(graph, bindings));
  std::string sizes;
  for (const auto& [symbol, value] : bindings) sizes += fmt::format(" {}={}", symbol, value);
  fmt::print("prims       {}\nkernels     {}\nFLOPs       {}{}\n", graph.nodes().size(), work.kernels, count_text(work.flops),
             sizes.empty() ? "" : " at" + sizes);
  const auto note = [](int count, const char* what) {
    if (count > 0) fmt::print("            {} {}\n", count, what);
  };
  note(work.branches, "branches: the costlier side is counted");
  note(work.open_loops, "loops whose length is known only when they run: one iteration is counted");
  note(work.unknown, "kernels whose sizes are known only when they run are not counted");
  return {};
}

void print_object(const codegen::ObjectInfo& object) {
  const Machine& machine = object.machine;
  fmt::print("object      machine code for {} ({})\nvectors     {} bits\nneeds       {}\n", machine.name, machine.arch,
             machine.vector_bits, machine.features.empty() ? "nothing else" : joined(machine.features, " "));
  const auto runs = check_runs_on(machine, measured_machine());
  fmt::print("runs here   {}\n", runs.ok() ? std::string("yes") : std::string("no: ") + runs.error().what());
  fmt::print("kernels     {}\n", object.symbols.size());
  for (const std::string& symbol : object.symbols) fmt::print("            {}\n", symbol);
}

Result<int> info_of(const ModelArguments& arguments) {
  WEFT_TRY(require_file(arguments.path));
  const auto file = WEFT_TRY(MappedFile::open(arguments.path));
  if (file->text().starts_with("\x7f" "ELF")) {
    print_object(WEFT_TRY(codegen::object_info(file->text())));
    return kSuccess;
  }
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
  Contents contents;
  count(*model.graph, contents);
  for (const onnx::Function& function : model.functions) count(function.nodes, contents);
  print_sizes(*model.graph);
  print_weights(contents);
  if (const auto cost = print_cost(arguments); !cost.ok()) {
    if (cost.error().kind() != ErrorKind::Unsupported) return cost.error();
    fmt::print("FLOPs       unknown: this model is not supported; 'weft check' says what is missing\n");
  }
  print_histogram(contents);
  return kSuccess;
}

}  // namespace

Action add_info(CLI::App& app) {
  auto arguments = std::make_shared<ModelArguments>();
  add_model_options(app, *arguments);
  add_input_option(app, *arguments);
  return [arguments] { return info_of(*arguments); };
}

}  // namespace weft::cli
