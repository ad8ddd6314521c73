#include "weft/weft.h"

#include <algorithm>
#include <cstring>

#include "api/specialise.h"
#include "api/state.h"
#include "api/stored.h"
#include "base/knobs.h"
#include "compile/clock.h"
#include "compile/limits.h"
#include "compile/products.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "transform/choices.h"

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

// A handle that was never given a model or program: of it there are no ports.
const std::vector<Port> kNoPorts;
const CompileStats kNoStats;

// The interpreter's results, into the caller's memory where there is some.
Result<void> deliver(std::vector<Tensor> results, const std::vector<Port>& ports, std::vector<Tensor>& outputs) {
  outputs.resize(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    Tensor& to = outputs[i];
    const Tensor& from = results[i];
    if (!to.defined()) {
      to = from;
      continue;
    }
    if (to.dtype() != from.dtype() || to.shape() != from.shape()) {
      return user_error("output-mismatch", "the tensor given for the output does not fit")
          .at(ports[i].name)
          .expected(name(from.dtype()) + shape_str(from.shape()))
          .found(name(to.dtype()) + shape_str(to.shape()));
    }
    if (is_string(to.dtype())) {
      to.mutable_strings() = from.string_values();
    } else if (from.byte_size() > 0) {
      std::memcpy(to.mutable_data(), from.data(), from.byte_size());
    }
  }
  return {};
}

constexpr std::size_t kRememberedVariants = 8;

// The variant of a program for inputs of these shapes; compiled once, by whoever comes first.
std::shared_ptr<Variant> variant_for(const Program::State& state, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  std::lock_guard<std::mutex> lock(state.variants_mutex);
  auto& all = state.variants;
  auto known = std::find_if(all.begin(), all.end(), [&](const auto& v) { return v->shapes == shapes; });
  if (known == all.end()) {
    if (all.size() == kRememberedVariants) all.erase(all.begin());  // whoever runs it has a share in it
    all.push_back(std::make_shared<Variant>());
    all.back()->shapes = std::move(shapes);
  } else {
    std::rotate(known, known + 1, all.end());
  }
  return all.back();
}

Result<void> run_variant(const Program::State& state, const onnx::ImportOptions& how, const std::vector<Tensor>& inputs,
                         std::vector<Tensor>& outputs, const RunOptions& options) {
  const std::shared_ptr<Variant> variant = variant_for(state, inputs);
  std::call_once(variant->once, [&] {
    variant->program = at_the_edge([&]() -> Result<Program> {
      return compile(WEFT_TRY(import_again(Model{state.model}, how)), state.options);
    });
  });
  if (!variant->program.ok()) return variant->program.error();
  return variant->program->run_into(inputs, outputs, options);
}

Result<void> run_exact(const Program::State& state, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                       const RunOptions& options) {
  std::call_once(state.exact_once, [&] {
    CompileOptions exact = state.options;
    for (const char* pass : {"winograd", "split-products"}) exact.passes_off.push_back(pass);
    state.exact = compile(Model{state.model}, exact);
  });
  if (!state.exact.ok()) return state.exact.error();
  return state.exact->run_into(inputs, outputs, options);
}

Result<void> run_as_compiled(const Program::State& state, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                             const RunOptions& options) {
  if (!state.executable) {
    return deliver(WEFT_TRY(graph::interpret(*state.model->graph(), inputs)), state.model->outputs, outputs);
  }
  runtime::RunOptions how;
  how.threads = state.threads;
  how.stop = options.stop;
  return state.executable->run(inputs, outputs, how);
}

}  // namespace

const std::vector<Port>& Model::inputs() const { return state ? state->inputs : kNoPorts; }
const std::vector<Port>& Model::outputs() const { return state ? state->outputs : kNoPorts; }
const std::vector<Port>& Program::inputs() const { return state ? state->model->inputs : kNoPorts; }
const std::vector<Port>& Program::outputs() const { return state ? state->model->outputs : kNoPorts; }
const CompileStats& Program::stats() const { return state ? state->stats : kNoStats; }
const char* version() { return "0.1.0"; }

Result<onnx::Imported> Model::State::read() const {
  if (!source_.graph) {
    compiler::Clock clock(load_ms);
    source_ = WEFT_TRY(onnx::read_model_file(path));
    WEFT_TRY(onnx::validate(source_));
  }
  compiler::Clock clock(import_ms);
  return onnx::import_model(source_, how);
}

Result<void> Model::State::import() {
  onnx::Imported imported = WEFT_TRY(read());
  inputs = ports(imported.graph, imported.graph.inputs(), imported.input_names);
  outputs = ports(imported.graph, imported.graph.outputs(), imported.output_names);
  facts = imported.graph.facts;
  graph_ = std::make_shared<graph::Graph>(std::move(imported.graph));
  return {};
}

void Model::State::need() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (graph_) return;
  if (content_of(path) != content) throw user_error("model-changed", "the model's file is another than when it was loaded").at(path);
  graph_ = std::make_shared<graph::Graph>(read().value().graph);
}

const onnx::Model& Model::State::source() const {
  need();
  return source_;
}

const std::shared_ptr<const graph::Graph>& Model::State::graph() const {
  need();
  return graph_;
}

void Model::State::set_graph(std::shared_ptr<const graph::Graph> graph) { graph_ = std::move(graph); }

Result<Model> load(const std::string& path, const LoadOptions& options) {
  return at_the_edge([&]() -> Result<Model> {
    auto state = std::make_shared<Model::State>();
    state->path = path;
    state->cache = options.cache;
    state->how = {options.ranges, options.sizes, options.given, options.known};
    if (options.cache) {
      compiler::Clock clock(state->hash_ms);
      state->content = content_of(path);
      if (find_model(*state)) return Model{std::move(state)};
    }
    WEFT_TRY(state->import());
    if (state->source().has_external_data) state->content.clear();  // it says nothing of those files
    return Model{std::move(state)};
  });
}

Result<Model> import_again(const Model& model, const onnx::ImportOptions& how) {
  return at_the_edge([&]() -> Result<Model> {
    auto state = std::make_shared<Model::State>();
    state->path = model.state->path;
    state->how = how;
    state->cache = false;
    state->set_source(model.state->source());
    WEFT_TRY(state->import());
    return Model{std::move(state)};
  });
}

Result<compiler::Options> compiler_options(const CompileOptions& options) {
  compiler::Options how;
  const target::Places places = WEFT_TRY(target::open_places(options.target, options.code));
  how.target = places.device;
  how.cpu_too = places.device && places.cpu;
  how.cache = options.cache;
  how.passes.off.insert(how.passes.off.end(), options.passes_off.begin(), options.passes_off.end());
  how.jobs = options.threads;
  how.first_shapes = options.first_shapes;
  const auto precision = transform::parse_precision(options.precision);
  if (!precision) {
    return user_error("unknown-precision", "there is no such precision")
        .found(options.precision)
        .suggest("there is " + transform::listed(transform::kPrecisions, ", "));
  }
  how.passes.precision = *precision;
  const auto weights = transform::parse_weights(options.weights);
  if (!weights) {
    return user_error("unknown-weights", "weights cannot be kept so")
        .found(options.weights)
        .suggest("there is " + transform::listed(transform::kWeights, ", "));
  }
  how.passes.weights = *weights;
  how.tuned = options.tuned && knob_integer(Knob::Tuned) != 0;
  const auto for_machine = [&how] {
    compiler::choose_products(how.passes, how.target ? how.target->machine() : how.machine);
    return how;
  };
  if (restrict_to_level(how.machine, options.cpu)) {
    compiler::apply_measured_rates(how.machine);
    return for_machine();
  }
  const auto named = cpu_named(options.cpu);  // its code can be made here, if not run
  if (named) {
    how.machine = *named;
    how.tuned = false;
    return for_machine();
  }
  std::string names = "native";
  for (const std::string& cpu : cpu_names()) names += ", " + cpu;
  return user_error("unknown-cpu", "there is no such CPU").found(options.cpu).suggest("there is " + names);
}

Result<void> require_here(const compiler::Options& how) {
  if (!how.target) return check_runs_on(how.machine, measured_machine());
  if (how.target->device()) return {};
  return user_error("no-device", "the target is a kind of machine, none that is here")
      .found(how.target->machine().name)
      .suggest("kernels for it are printed by 'weft compile --emit source' and run by '--target sim:" + how.target->machine().name + "'");
}

Result<std::shared_ptr<const graph::Graph>> compiled_graph(const Program& program, const compiler::Options& how) {
  if (program.state->compiled.graph) return program.state->compiled.graph;
  return std::make_shared<const graph::Graph>(WEFT_TRY(transform::optimize(*program.state->model->graph(), how.passes)));
}

Result<Program> compile(const Model& model, const CompileOptions& options) {
  return at_the_edge([&]() -> Result<Program> {
    if (!model.state) return user_error("no-model", "this model was never loaded").suggest("use what weft::load returns");
    auto state = std::make_shared<Program::State>();
    state->model = model.state;
    state->target = options.target;
    state->threads = options.threads;
    state->options = options;
    if (options.target == "ref") {
      if (!options.code.empty()) return user_error("unknown-code", "the interpreter takes no code").found(options.code).suggest("leave it out");
      return Program{std::move(state)};
    }
    const compiler::Options how = WEFT_TRY(compiler_options(options));
    WEFT_TRY(require_here(how));
    bool found = false;
    {
      compiler::Clock clock(state->find_ms);
      found = find_program(*state, options, how);
    }
    if (found) {
      state->stats.compile_ms = state->find_ms;
      return Program{std::move(state)};
    }
    state->compiled = WEFT_TRY(compiler::compile(*model.state->graph(), how));
    state->executable = std::make_unique<runtime::Executable>(state->compiled.plan);
    const compiler::Report& r = state->compiled.report;
    state->stats = {r.total_ms, r.nodes, r.prims, r.loops, r.kernels, r.unique_kernels, r.host_steps, r.from_cache};
    {
      compiler::Clock clock(state->store_ms);
      store_program(*state, options, how);
    }
    return Program{std::move(state)};
  });
}

Result<void> Program::run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                               const RunOptions& options) const {
  return at_the_edge([&]() -> Result<void> {
    if (!state) return user_error("no-program", "this program was never compiled").suggest("use what weft::compile returns");
    auto done = run_as_compiled(*state, inputs, outputs, options);
    if (done.ok()) return done;
    if (done.error().code() == "needs-exact") return run_exact(*state, inputs, outputs, options);
    const auto how = fixing(Model{state->model}, inputs);
    return how ? run_variant(*state, *how, inputs, outputs, options) : done;
  });
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs, const RunOptions& options) const {
  std::vector<Tensor> outputs;
  WEFT_TRY(run_into(inputs, outputs, options));
  return outputs;
}

}  // namespace weft
