#include "weft/weft.h"

#include "api/state.h"
#include "compile/clock.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"

namespace weft {

namespace {

std::vector<Port> ports(const graph::Graph& g, const std::vector<graph::ValueId>& values,
                        const std::vector<std::string>& names) {
  std::vector<Port> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const graph::Type& type = g.type(values[i]);
    result.push_back({names[i], type.dtype, type.shape});
  }
  return result;
}

}  // namespace

const std::vector<Port>& Model::inputs() const { return state->inputs; }
const std::vector<Port>& Model::outputs() const { return state->outputs; }
const std::vector<Port>& Program::inputs() const { return state->model->inputs; }
const std::vector<Port>& Program::outputs() const { return state->model->outputs; }
const CompileStats& Program::stats() const { return state->stats; }
const char* version() { return "0.1.0"; }

Result<Model> load(const std::string& path, const LoadOptions& options) {
  return at_the_edge([&]() -> Result<Model> {
    auto state = std::make_shared<Model::State>();
    state->path = path;
    {
      compiler::Clock clock(state->load_ms);
      state->source = WEFT_TRY(onnx::read_model_file(path));
      WEFT_TRY(onnx::validate(state->source));
    }
    compiler::Clock clock(state->import_ms);
    onnx::ImportOptions how;
    how.ranges = options.ranges;
    how.fixed = options.sizes;
    how.given = options.given;
    how.known = options.known;
    onnx::Imported imported = WEFT_TRY(onnx::import_model(state->source, how));
    state->inputs = ports(imported.graph, imported.graph.inputs(), imported.input_names);
    state->outputs = ports(imported.graph, imported.graph.outputs(), imported.output_names);
    state->graph = std::make_shared<graph::Graph>(std::move(imported.graph));
    return Model{std::move(state)};
  });
}

Result<Program> compile(const Model& model, const CompileOptions& options) {
  return at_the_edge([&]() -> Result<Program> {
    auto state = std::make_shared<Program::State>();
    state->model = model.state;
    state->target = options.target;
    state->threads = options.threads;
    if (options.target == "ref") return Program{std::move(state)};
    if (options.target != "cpu") {
      return user_error("unknown-target", "there is no such target").found(options.target).suggest("targets are cpu and ref");
    }
    compiler::Options how;
    how.cache = options.cache;
    how.passes.off = options.passes_off;
    how.jobs = options.threads;
    state->compiled = WEFT_TRY(compiler::compile(*model.state->graph, how));
    state->executable = std::make_unique<runtime::Executable>(state->compiled.plan);
    const compiler::Report& r = state->compiled.report;
    state->stats = {r.total_ms, r.nodes, r.prims, r.loops, r.kernels, r.unique_kernels, r.host_steps, r.from_cache};
    return Program{std::move(state)};
  });
}

Result<void> Program::run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                               const RunOptions& options) const {
  return at_the_edge([&]() -> Result<void> {
    if (!state->executable) {
      outputs = WEFT_TRY(graph::interpret(*state->model->graph, inputs));
      return {};
    }
    runtime::RunOptions how;
    how.threads = state->threads;
    how.stop = options.stop;
    return state->executable->run(inputs, outputs, how);
  });
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs, const RunOptions& options) const {
  std::vector<Tensor> outputs;
  WEFT_TRY(run_into(inputs, outputs, options));
  return outputs;
}

}  // namespace weft
