// weft diff: the first value that compiled code gets wrong, with what it was made of.
//
// First the graph passes are held against the graph as given. Then the graph as compiled gets every value that its
// kernels store as an output, runs both ways, and the values are compared in the order in which they are made. Whatever
// differs, the smallest part of the ONNX model that shows it is written as a case that `weft conformance` runs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "api/state.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/errors.h"
#include "cli/levels.h"
#include "cli/model.h"
#include "cli/options.h"
#include "cli/reproducer.h"
#include "cli/table.h"
#include "schedule/choices.h"

namespace weft::cli {
namespace {

using graph::Graph;
using graph::ValueId;
using Tensors = std::vector<Tensor>;

struct DiffArguments : ModelArguments {
  double rtol = 1e-3, atol = 1e-4;
  bool levels = false;
  std::string output_dir = "weft-reproducer";
};

Difference differ(const Tensor& got, const Tensor& want, const DiffArguments& a) {
  return compare(got, want, {a.rtol, a.atol * largest_magnitude(want)});
}

bool same(const Tensors& got, const Tensors& want, const DiffArguments& a) {
  bool equal = got.size() == want.size();
  for (std::size_t i = 0; equal && i < want.size(); ++i) equal = differ(got[i], want[i], a).within();
  return equal;
}

// The name of the first pass after which the graph's outputs are others, or "".
Result<std::string> wrong_pass(const Graph& given, const Tensors& inputs, const DiffArguments& a) {
  const Tensors want = WEFT_TRY(graph::interpret(given, inputs));
  transform::PassOptions options = WEFT_TRY(compiler_options(compile_options(a))).passes;
  const auto right = [&](int limit) -> Result<bool> {
    options.limit = limit;
    const Graph changed = WEFT_TRY(transform::optimize(given, options));
    return same(WEFT_TRY(graph::interpret(changed, inputs)), want, a);
  };
  if (WEFT_TRY(right(-1))) return std::string();
  int k = 0;
  for (const transform::Pass& pass : transform::passes()) {
    if (std::find(options.off.begin(), options.off.end(), pass.name) != options.off.end()) continue;
    if (!WEFT_TRY(right(++k))) return std::string(pass.name);
  }
  return internal_error("the passes differ from one run to the next");
}

// What is watched: the values that steps make, in that order, without those that are made twice.
std::vector<ValueId> made_values(const Graph& g, const loop::Partition& partition) {
  std::vector<ValueId> values;
  const auto add = [&](ValueId v) {
    if (v >= 0 && std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v);
  };
  for (const loop::Step& step : partition.steps) {
    for (const ValueId v : step.kind == loop::Step::Kind::Kernel ? written_by(step) : g.node(step.node).results) add(v);
  }
  return values;
}

// Everything that the interpreter knows, by value.
Result<Tensors> known_values(const Graph& g, const loop::Partition& partition, const std::vector<ValueId>& watched,
                             const Tensors& inputs, const Tensors& made) {
  Tensors values(g.values().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[g.inputs()[i]] = inputs[i];
  for (std::size_t i = 0; i < watched.size(); ++i) values[watched[i]] = made[i];
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const Bindings bindings = WEFT_TRY(graph::bind_inputs(g, shapes));
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (const Tensor* constant = g.constant(static_cast<ValueId>(v))) values[v] = *constant;
    const ValueId base = partition.alias[v];
    if (values[v].defined() || base == static_cast<ValueId>(v) || !values[base].defined()) continue;
    const auto shape = evaluate(g.type(static_cast<ValueId>(v)).shape, bindings);
    if (shape.ok()) values[v] = values[base].reshaped(*shape);
  }
  return values;
}

const loop::Step* step_of(const Graph& g, const loop::Partition& partition, ValueId value) {
  for (const loop::Step& step : partition.steps) {
    const std::vector<ValueId> made = step.kind == loop::Step::Kind::Kernel ? written_by(step) : g.node(step.node).results;
    if (std::find(made.begin(), made.end(), value) != made.end()) return &step;
  }
  return nullptr;
}

std::vector<ValueId> read_by(const Graph& g, const loop::Step& step) {
  if (step.kind != loop::Step::Kind::Kernel) return g.node(step.node).operands;
  std::vector<ValueId> values;
  for (std::size_t p = 0; p < step.args.size(); ++p) {
    if (step.group.params[p].role == loop::Role::Input && step.args[p] >= 0) values.push_back(step.args[p]);
  }
  return values;
}

std::vector<std::string> origins_of(const Graph& g, const loop::Step& step) {
  if (step.kind == loop::Step::Kind::Kernel) return step.group.origins;
  const graph::Node& node = g.node(step.node);
  return {node.origin ? node.origin->node : info(node.op).name};
}

std::string value_name(const Graph& g, ValueId v) {
  return g.value(v).name.empty() ? fmt::format("%{}", v) : g.value(v).name;
}

void print_inputs(const Graph& g, const std::vector<ValueId>& inputs, const Tensors& values) {
  Table table({"reads", "type", "first elements"});
  for (const ValueId v : inputs) {
    std::vector<std::string> first;
    for (std::int64_t i = 0; values[v].defined() && i < std::min<std::int64_t>(6, values[v].size()); ++i) {
      first.push_back(element_text(values[v], i));
    }
    table.row({value_name(g, v) + (g.constant(v) ? " (constant)" : ""), str(g.type(v)), joined(first, " ")});
  }
  print(table);
}

Result<void> print_levels(const Graph& g, const loop::Step& step, const Tensors& values, const Tensors& inputs,
                          const DiffArguments& a) {
  if (step.kind != loop::Step::Kind::Kernel) {
    fmt::print("this step is no kernel: it has no levels\n");
    return {};
  }
  if (std::any_of(step.args.begin(), step.args.end(), loop::is_scratch)) {
    fmt::print("this kernel is one of several of its node: it has no levels of its own\n");
    return {};
  }
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const Bindings bindings = WEFT_TRY(graph::bind_inputs(g, shapes));
  const std::vector<ValueId> outputs = written_by(step);
  Table table({"level", "value", "max abs", "verdict"});
  std::string culprit;
  for (const LevelResult& result : WEFT_TRY(run_levels(g, step, values, bindings))) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Difference d = differ(result.outputs[i], values[outputs[i]], a);
      table.row({result.level, value_name(g, outputs[i]), number_text(d.max_abs), d.within() ? "ok" : "WRONG"});
      if (!d.within() && culprit.empty()) culprit = result.level;
    }
  }
  fmt::print("\n");
  print(table);
  fmt::print("{}\n", culprit.empty() ? "all levels are right: the fault lies in the machine code or the plan"
                                     : "wrong from the " + culprit + " level on");
  return {};
}

Result<void> report_value(const Graph& g, const loop::Partition& partition, ValueId v, const std::string& what,
                          const Tensors& values, const Tensors& inputs, const DiffArguments& a,
                          std::vector<std::string>& suspects) {
  const loop::Step* step = step_of(g, partition, v);
  if (!step) return internal_error("a value that no step makes");
  suspects = origins_of(g, *step);
  fmt::print("first wrong value: {} {}, made by {}\n{}\n\n", value_name(g, v), str(g.type(v)), joined(suspects, " + ", 6), what);
  print_inputs(g, read_by(g, *step), values);
  if (a.levels) WEFT_TRY(print_levels(g, *step, values, inputs, a));
  return {};
}

Result<Tensors> run_compiled(const Graph& g, const Tensors& inputs, const compiler::Options& options, int threads) {
  const compiler::Compiled compiled = WEFT_TRY(compiler::compile(g, options));
  const runtime::Executable executable(compiled.plan);
  Tensors outputs;
  runtime::RunOptions how;
  how.threads = threads;
  WEFT_TRY(executable.run(inputs, outputs, how));
  return outputs;
}

// The first difference, printed; false where there is none. Labels of the nodes that may be at fault go to `suspects`.
Result<bool> find_difference(const Model& model, const Tensors& inputs, const DiffArguments& a,
                             std::vector<std::string>& suspects) {
  if (const std::string pass = WEFT_TRY(wrong_pass(*model.state->graph(), inputs, a)); !pass.empty()) {
    fmt::print("the graph pass '{}' changes the result\n", pass);
    return true;
  }
  compiler::Options options = WEFT_TRY(compiler_options(compile_options(a)));
  Graph g = WEFT_TRY(transform::optimize(*model.state->graph(), options.passes));
  const loop::Partition partition = WEFT_TRY(loop::lower(g, schedule::lowering_choices(options.machine)));
  const std::vector<ValueId> watched = made_values(g, partition);
  for (const transform::Pass& pass : transform::passes()) options.passes.off.push_back(pass.name);  // they ran already
  const Tensors plain = WEFT_TRY(run_compiled(g, inputs, options, a.threads));
  const Tensors right = WEFT_TRY(graph::interpret(g, inputs));
  g.set_outputs(watched);
  const Tensors got = WEFT_TRY(run_compiled(g, inputs, options, a.threads));
  const Tensors want = WEFT_TRY(graph::interpret(g, inputs));
  const Tensors values = WEFT_TRY(known_values(g, partition, watched, inputs, want));
  for (std::size_t i = 0; i < watched.size(); ++i) {
    const Difference d = differ(got[i], want[i], a);
    if (d.within()) continue;
    WEFT_TRY(report_value(g, partition, watched[i], describe(d, got[i], want[i]), values, inputs, a, suspects));
    return true;
  }
  if (!same(plain, right, a)) {
    fmt::print("the outputs differ, but no value does once all of them are kept: the fault depends on fusion or memory\n");
    return true;
  }
  fmt::print("no difference: {} values compared\n", watched.size());
  return false;
}

Result<void> write_reproducer(const Model& model, const Tensors& inputs, const std::vector<std::string>& suspects,
                              const DiffArguments& a) {
  const compiler::Options options = WEFT_TRY(compiler_options(compile_options(a)));
  const Compiled compiled = [&](const Graph& g, const Tensors& given) { return run_compiled(g, given, options, a.threads); };
  const auto right = [&](const Tensor& got, const Tensor& want) { return differ(got, want, a).within(); };
  const auto found = WEFT_TRY(find_reproducer(model, inputs, suspects, compiled, right));
  if (!found) {
    fmt::print("\nno part of the model differs when it is compiled on its own: there is no reproducer but the model\n");
    return {};
  }
  double atol = std::numeric_limits<double>::infinity();
  for (const Tensor& want : found->want) atol = std::min(atol, a.atol * largest_magnitude(want));
  WEFT_TRY(write_case(a.output_dir, *found, {a.rtol, atol}));
  std::vector<std::string> labels;
  for (const onnx::Node& node : found->model.graph->nodes) labels.push_back(node.label());
  fmt::print("\nreproducer in {}: {} of {} nodes ({})\nit fails by itself: weft conformance {}\n", a.output_dir, labels.size(),
             model.state->source().graph->nodes.size(), joined(labels, ", ", 4), a.output_dir);
  return {};
}

Result<int> diff(const DiffArguments& a) {
  const Model model = WEFT_TRY(load_model(a));
  const Tensors inputs = WEFT_TRY(model_inputs(model, a));
  std::vector<std::string> suspects;
  if (!WEFT_TRY(find_difference(model, inputs, a, suspects))) return kSuccess;
  WEFT_TRY(write_reproducer(model, inputs, suspects, a));
  return kFailure;
}

}  // namespace

Action add_diff(CLI::App& app) {
  auto a = std::make_shared<DiffArguments>();
  add_run_options(app, *a);
  add_option(app, "--rtol", a->rtol, "tolerance relative to each element");
  add_option(app, "--atol", a->atol, "tolerance relative to the value's largest magnitude");
  add_flag(app, "--levels", a->levels, "run the kernel's loop, tile and kernel forms, each by its interpreter");
  add_option(app, "--output-dir", a->output_dir,
             "a folder that receives the smallest part of the model that differs: model.onnx and its data");
  return [a] { return diff(*a); };
}

}  // namespace weft::cli
