// One case of a conformance suite: run, compared, judged.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "api/specialise.h"
#include "api/state.h"
#include "cli/cases.h"
#include "frontend/onnx/reader/reader.h"
#include "transform/pipeline.h"

namespace weft::cli {
namespace fs = std::filesystem;

namespace {

using onnx::DataValue;

// The tensors that the case has a file for, by the input's name: one with a default may be among them.
Result<std::map<std::string, Tensor>> given_inputs(const TestCase& test) {
  const onnx::Model model = WEFT_TRY(onnx::read_model_file(test.model));
  std::map<std::string, Tensor> given;
  for (std::size_t i = 0; model.graph && i < model.graph->inputs.size(); ++i) {
    const fs::path path = fs::path(test.data_sets[0]) / fmt::format("input_{}.pb", i);
    if (!fs::exists(path)) continue;
    const DataValue value = WEFT_TRY(onnx::read_data_file(path.string(), model.graph->inputs[i].type));
    if (const Tensor* tensor = std::get_if<Tensor>(&value.value)) given[model.graph->inputs[i].name] = *tensor;
  }
  return given;
}

Result<Model> load_case(const TestCase& test) {
  if (test.data_sets.empty()) return load(test.model);
  return WEFT_TRY(load_for(test.model, {}, WEFT_TRY(given_inputs(test)))).model;
}

Result<Program> build(const TestCase& test, const Judging& how) {
  return compile(WEFT_TRY(load_case(test)), compile_options(how));
}

// input_N.pb by the position of the model's inputs; those that the graph does not have are defaults and stay out.
Result<std::vector<Tensor>> read_inputs(const Model& model, const std::string& folder) {
  const std::vector<onnx::ValueInfo>& infos = model.state->source().graph->inputs;
  std::map<std::string, std::size_t> position;
  for (std::size_t i = 0; i < infos.size(); ++i) position.emplace(infos[i].name, i);
  std::vector<Tensor> inputs;
  for (const Port& port : model.inputs()) {
    const std::size_t i = position.at(port.name);
    const fs::path path = fs::path(folder) / fmt::format("input_{}.pb", i);
    if (!fs::exists(path)) return user_error("no-input", "the case has no such input").at(path.string());
    const DataValue value = WEFT_TRY(onnx::read_data_file(path.string(), infos[i].type));
    const Tensor* tensor = std::get_if<Tensor>(&value.value);
    if (!tensor) return unsupported("unsupported-type", "only tensors can be inputs").at(port.name);
    inputs.push_back(*tensor);
  }
  return inputs;
}

// The suite's formula for models without stored inputs: element i of n is i / n.
Result<std::vector<Tensor>> formula_inputs(const Model& model) {
  std::vector<Tensor> inputs;
  for (const Port& port : model.inputs()) {
    const auto shape = static_sizes(port.shape);
    if (!shape || !is_float(port.dtype)) return user_error("no-input", "an input cannot be made by formula").at(port.name);
    Tensor t = WEFT_TRY(Tensor::empty(port.dtype, *shape));
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, static_cast<float>(i) / static_cast<float>(t.size()));
    inputs.push_back(std::move(t));
  }
  return inputs;
}

Result<std::vector<DataValue>> read_outputs(const Model& model, const std::string& folder) {
  std::vector<DataValue> outputs;
  const std::vector<onnx::ValueInfo>& infos = model.state->source().graph->outputs;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const fs::path path = fs::path(folder) / fmt::format("output_{}.pb", i);
    if (!fs::exists(path)) return user_error("no-output", "the case has no such output").at(path.string());
    outputs.push_back(WEFT_TRY(onnx::read_data_file(path.string(), infos[i].type)));
  }
  return outputs;
}

std::string compare_all(const TestCase& test, const Model& model, const std::vector<Tensor>& got,
                        const std::vector<DataValue>& want) {
  if (got.size() != want.size()) return fmt::format("{} outputs instead of {}", got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Tensor* tensor = std::get_if<Tensor>(&want[i].value);
    const std::string& name = model.outputs()[i].name;
    if (!tensor) return fmt::format("output '{}': a tensor instead of a sequence or an optional value", name);
    const Difference d = compare(got[i], *tensor, test.tolerance);
    const bool right = test.any_value ? d.problem.empty() : d.within();
    if (!right) return fmt::format("output '{}': {}", name, describe(d, got[i], *tensor));
  }
  return "";
}

// What came of a run: the outputs, or the error that stopped it.
using Ran = Result<std::vector<Tensor>>;

std::string judge_refusal(const TestCase& test, const Error& error) {
  if (error.kind() == ErrorKind::Internal) return error.what();
  const std::string text = error.what();
  for (const std::string& word : test.names) {
    if (text.find(word) != std::string::npos) return "";
  }
  return test.names.empty() ? "" : fmt::format("refused, but the error names none of {}: {}", fmt::join(test.names, ", "), text);
}

std::string judge_values(const TestCase& test, const Model& model, const std::vector<Tensor>& got,
                         const std::string& folder) {
  const auto want = read_outputs(model, folder);
  if (!want.ok()) return want.error().what();
  std::string reason = compare_all(test, model, got, *want);
  for (const std::string& answer : test.answers) {
    if (reason.empty()) break;
    const auto other = read_outputs(model, answer);
    if (other.ok() && compare_all(test, model, got, *other).empty()) reason.clear();
  }
  return reason;
}

std::string judge_run(const TestCase& test, const Program& program, const std::string& folder) {
  const Model model{program.state->model};
  const auto inputs = read_inputs(model, folder);
  if (!inputs.ok() && test.expect == TestCase::Expect::Values) return inputs.error().what();
  const Ran ran = inputs.ok() ? program.run(*inputs) : Ran(inputs.error());
  if (test.expect == TestCase::Expect::Refuse) {
    return ran.ok() ? "it ran, though it should be refused" : judge_refusal(test, ran.error());
  }
  if (!ran.ok()) return test.refusal_ok ? judge_refusal(test, ran.error()) : ran.error().what();
  return judge_values(test, model, *ran, folder);
}

std::string judge_light(const TestCase& test, const Program& program) {
  const Model model{program.state->model};
  const auto inputs = formula_inputs(model);
  if (!inputs.ok()) return inputs.error().what();
  const Ran got = program.run(*inputs);
  if (!got.ok()) return got.error().what();
  const auto want = onnx::read_data_file(test.light_output, model.state->source().graph->outputs[0].type);
  if (!want.ok()) return want.error().what();
  return compare_all(test, model, *got, {*want});
}

}  // namespace

CompileOptions compile_options(const Judging& how) {
  CompileOptions options;
  options.target = how.target;
  options.code = how.code;
  options.cpu = how.cpu;
  options.threads = 1;
  options.cache = false;
  if (!how.optimised) {
    for (const transform::Pass& pass : transform::passes()) options.passes_off.push_back(pass.name);
  }
  return options;
}

std::string judge(const TestCase& test, const Judging& how) {
  const Result<Program> program = build(test, how);
  if (!program.ok()) {
    const bool may_refuse = test.expect == TestCase::Expect::Refuse || test.refusal_ok;
    return may_refuse ? judge_refusal(test, program.error()) : program.error().what();
  }
  if (!test.light_output.empty()) return judge_light(test, *program);
  if (test.data_sets.empty()) {
    if (test.expect == TestCase::Expect::Refuse) return judge_run(test, *program, test.folder);
    return "the case has no test_data_set_0";
  }
  for (const std::string& folder : test.data_sets) {
    if (std::string reason = judge_run(test, *program, folder); !reason.empty()) return reason;
  }
  return "";
}

}  // namespace weft::cli
