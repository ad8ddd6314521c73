#include "cli/levels.h"

#include <cstring>

#include "base/machine.h"
#include "compile/prepare.h"
#include "kernel/kernel.h"
#include "kernel/simd/lower.h"
#include "schedule/schedule.h"
#include "tile/lower.h"

namespace weft::cli {
namespace {

using loop::Role;

bool is_written(const loop::Param& p) { return p.role == Role::Output || p.role == Role::InOut; }

// Memory of every parameter that has some: inputs shared, outputs fresh.
Result<std::vector<Tensor>> memory_of(const loop::Step& step, const std::vector<Tensor>& values, const Bindings& bindings,
                                      const std::vector<loop::StorageMap>& maps) {
  std::vector<Tensor> memory(step.group.params.size());
  for (std::size_t p = 0; p < memory.size(); ++p) {
    const loop::Param& param = step.group.params[p];
    if (param.role == Role::OnChip) continue;
    const std::vector<std::int64_t> shape = WEFT_TRY(evaluate(param.shape, bindings));
    if (is_written(param)) {
      memory[p] = WEFT_TRY(Tensor::zeros(param.dtype, shape));
      continue;
    }
    memory[p] = values[step.args[p]];
    const bool laid_out = !maps.empty() && !(maps[p] == loop::StorageMap{});
    if (laid_out) memory[p] = WEFT_TRY(compiler::prepare_constant(memory[p], shape, maps[p]));
  }
  return memory;
}

template <class View>
View view_of(Tensor& t, bool written) {
  void* data = written ? t.mutable_data() : const_cast<void*>(t.data());  // interpreters only read inputs
  return View{data, t.size()};
}

std::vector<Tensor> outputs_of(const loop::Step& step, const std::vector<Tensor>& memory) {
  std::vector<Tensor> outputs;
  for (std::size_t p = 0; p < memory.size(); ++p) {
    if (is_written(step.group.params[p])) outputs.push_back(memory[p]);
  }
  return outputs;
}

Result<std::vector<Tensor>> run_loop(const loop::Step& step, const std::vector<Tensor>& values, const Bindings& bindings) {
  std::vector<Tensor> memory = WEFT_TRY(memory_of(step, values, bindings, {}));
  std::vector<loop::BufferView> buffers;
  for (std::size_t p = 0; p < memory.size(); ++p) {
    const loop::Param& param = step.group.params[p];
    buffers.push_back(param.role == Role::OnChip ? loop::BufferView{nullptr, 0}
                                                 : view_of<loop::BufferView>(memory[p], is_written(param)));
  }
  WEFT_TRY(loop::interpret(step.group, buffers, bindings));
  return outputs_of(step, memory);
}

// The variant that a run with these sizes takes.
Result<const schedule::Variant*> variant_for(const schedule::Schedule& schedule, const Bindings& bindings) {
  for (const schedule::Variant& v : schedule.variants) {
    if (!v.guard) return &v;
    const std::int64_t size = WEFT_TRY(v.guard->size.evaluate(bindings));
    if (v.guard->lo <= size && size <= v.guard->hi) return &v;
  }
  return internal_error("a schedule without a variant for these sizes");
}

template <class View, class Interpret>
Result<std::vector<Tensor>> run_function(const loop::Step& step, const std::vector<Tensor>& values, const Bindings& bindings,
                                         const schedule::Record& record, const tile::Lowered& lowered, Interpret interpret) {
  std::vector<Tensor> memory = WEFT_TRY(memory_of(step, values, bindings, record.maps));
  std::vector<View> buffers;
  for (const loop::ParamId p : lowered.buffers) {
    buffers.push_back(view_of<View>(memory[p], is_written(step.group.params[p])));
  }
  const std::vector<std::int64_t> sizes = WEFT_TRY(evaluate(lowered.sizes, bindings));
  WEFT_TRY(interpret(buffers, sizes, WEFT_TRY(lowered.grid.evaluate(bindings))));
  return outputs_of(step, memory);
}

}  // namespace

std::vector<graph::ValueId> written_by(const loop::Step& step) {
  std::vector<graph::ValueId> values;
  if (step.kind != loop::Step::Kind::Kernel) return values;
  for (std::size_t p = 0; p < step.args.size(); ++p) {
    if (is_written(step.group.params[p])) values.push_back(step.args[p]);
  }
  return values;
}

Result<std::vector<LevelResult>> run_levels(const graph::Graph& graph, const loop::Step& step,
                                            const std::vector<Tensor>& values, const Bindings& bindings) {
  const Machine machine = host_machine();
  std::vector<LevelResult> results;
  results.push_back({"loop", WEFT_TRY(run_loop(step, values, bindings))});
  const schedule::Schedule schedule = schedule::schedule(step.group, machine, graph.facts);
  const schedule::Variant* variant = WEFT_TRY(variant_for(schedule, bindings));
  const tile::Lowered lowered = WEFT_TRY(tile::lower(step.group, variant->record));
  results.push_back({"tile", WEFT_TRY(run_function<tile::BufferView>(
                                 step, values, bindings, variant->record, lowered,
                                 [&](const auto& buffers, const auto& sizes, std::int64_t grid) {
                                   return tile::interpret(lowered.function, buffers, sizes, grid);
                                 }))});
  kernel::Function function = WEFT_TRY(kernel::lower_simd(lowered.function, machine));
  WEFT_TRY(kernel::expand_math(function));
  results.push_back({"kernel", WEFT_TRY(run_function<kernel::BufferView>(
                                   step, values, bindings, variant->record, lowered,
                                   [&](const auto& buffers, const auto& sizes, std::int64_t grid) {
                                     return kernel::interpret(function, buffers, sizes, grid);
                                   }))});
  return results;
}

}  // namespace weft::cli
