#include "runtime/execute.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "runtime/pool.h"
#include "runtime/run.h"

namespace weft::runtime {

Executable::Executable(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)), state_(new State) {
  state_->bodies.resize(plan_->steps.size());
  for (std::size_t k = 0; k < plan_->steps.size(); ++k) {
    auto add = [&](const std::shared_ptr<const Plan>& body) {
      state_->bodies[k].push_back(std::make_unique<Executable>(body));
    };
    if (const auto* branch = std::get_if<BranchStep>(&plan_->steps[k])) {
      add(branch->then_plan);
      add(branch->else_plan);
    }
    if (const auto* loop = std::get_if<LoopStep>(&plan_->steps[k])) add(loop->body);
    if (const auto* scan = std::get_if<ScanStep>(&plan_->steps[k])) add(scan->body);
  }
}

Executable::~Executable() = default;

Result<void> Executable::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                             const RunOptions& options) const {
  try {
    Bindings none;
    return Run(*this, inputs, outputs, options, none).execute();
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return user_error("out-of-memory", "not enough memory for this run");
  }
}

Run::Run(const Executable& executable, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
         const RunOptions& options, const Bindings& outer)
    : executable_(executable),
      plan_(executable.plan()),
      inputs_(inputs),
      outputs_(outputs),
      options_(options),
      outer_(outer) {
  threads_ = options.threads > 0 ? options.threads : decide_threads().threads;
  std::lock_guard<std::mutex> lock(executable_.state_->mutex);
  auto& free = executable_.state_->free_memory;
  if (free.empty()) {
    memory_ = std::make_unique<RunMemory>();
  } else {
    memory_ = std::move(free.back());
    free.pop_back();
  }
}

Run::~Run() {
  for (Tensor& t : memory_->dynamic) t = Tensor();
  std::lock_guard<std::mutex> lock(executable_.state_->mutex);
  executable_.state_->free_memory.push_back(std::move(memory_));
}

namespace {

std::byte* grow(std::unique_ptr<std::byte[]>& storage, std::int64_t& have, std::int64_t need, std::byte* old) {
  if (have >= need) return old;
  storage.reset(new std::byte[need + kAlignment]);
  have = need;
  auto at = reinterpret_cast<std::uintptr_t>(storage.get());
  return storage.get() + (kAlignment - at % kAlignment) % kAlignment;
}

}  // namespace

Result<void> Run::prepare() {
  if (inputs_.size() != plan_.inputs.size()) {
    return user_error("wrong-input-count", "the number of inputs is wrong")
        .expected(std::to_string(plan_.inputs.size()))
        .found(std::to_string(inputs_.size()));
  }
  auto& key = memory_->key;
  key.clear();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Slot& slot = plan_.slots[plan_.inputs[i]];
    if (inputs_[i].dtype() != slot.dtype) {
      return user_error("dtype-mismatch", "the input has the wrong element type")
          .at(plan_.input_names[i])
          .expected(name(slot.dtype))
          .found(name(inputs_[i].dtype()));
    }
    key.push_back(inputs_[i].rank());
    key.insert(key.end(), inputs_[i].shape().begin(), inputs_[i].shape().end());
  }
  for (const auto& [symbol, value] : outer_) key.push_back(value);
  layout_ = WEFT_TRY(executable_.find_layout(key, inputs_, outer_));

  std::int64_t scratch = 0;
  for (const KernelEntry& kernel : plan_.kernels) scratch = std::max(scratch, kernel.scratch);
  scratch = (scratch + kAlignment - 1) / kAlignment * kAlignment;
  memory_->arena = grow(memory_->arena_storage, memory_->arena_bytes, layout_->memory.total, memory_->arena);
  memory_->scratch = grow(memory_->scratch_storage, memory_->scratch_bytes, scratch * threads_, memory_->scratch);
  memory_->pointers.assign(plan_.slots.size(), nullptr);
  memory_->dynamic.resize(plan_.slots.size());
  for (std::size_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.kind == Slot::Kind::Input) memory_->pointers[s] = const_cast<void*>(inputs_[slot.index].data());
    if (slot.kind == Slot::Kind::Constant) memory_->pointers[s] = const_cast<void*>(plan_.constants[slot.index].data());
    if (slot.kind == Slot::Kind::Temp && layout_->known[s]) memory_->pointers[s] = memory_->arena + layout_->offsets[s];
  }
  return prepare_outputs();
}

Result<void> Run::prepare_outputs() {
  outputs_.resize(plan_.outputs.size());
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    SlotId s = plan_.outputs[i];
    const Slot& slot = plan_.slots[s];
    if (!layout_->known[s]) continue;
    if (!outputs_[i].defined()) {
      outputs_[i] = WEFT_TRY(Tensor::empty(slot.dtype, layout_->shapes[s]));
    } else if (outputs_[i].dtype() != slot.dtype || outputs_[i].shape() != layout_->shapes[s]) {
      return user_error("output-mismatch", "the tensor given for the output does not fit")
          .at(plan_.output_names[i])
          .expected(name(slot.dtype) + shape_str(layout_->shapes[s]))
          .found(name(outputs_[i].dtype()) + shape_str(outputs_[i].shape()));
    }
    if (!is_string(slot.dtype)) memory_->pointers[s] = outputs_[i].mutable_data();
  }
  return {};
}

Result<void> Run::execute() {
  WEFT_TRY(prepare());
  using Clock = std::chrono::steady_clock;
  if (options_.step_seconds) options_.step_seconds->assign(plan_.steps.size(), 0);
  for (std::size_t k = 0; k < plan_.steps.size(); ++k) {
    if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
      return user_error("stopped", "the run was stopped by its stop token");
    }
    auto start = options_.step_seconds ? Clock::now() : Clock::time_point();
    WEFT_TRY(step(k));
    if (options_.step_seconds) {
      (*options_.step_seconds)[k] = std::chrono::duration<double>(Clock::now() - start).count();
    }
  }
  return {};
}

Result<void> Run::step(std::size_t k) {
  const PlanStep& s = plan_.steps[k];
  if (const auto* x = std::get_if<Launch>(&s)) return launch(*x, layout_->launches[k]);
  if (const auto* x = std::get_if<HostCall>(&s)) return host(*x);
  if (const auto* x = std::get_if<BranchStep>(&s)) return branch(*x, k);
  if (const auto* x = std::get_if<LoopStep>(&s)) return loop(*x, k);
  if (const auto* x = std::get_if<ScanStep>(&s)) return scan(*x, k);
  return copy(std::get<CopyStep>(s));
}

namespace {

struct LaunchContext {
  KernelFn fn;
  void* const* buffers;
  const std::int64_t* sizes;
  std::byte* scratch;
  std::int64_t scratch_stride;
  std::int64_t* status;
};

void run_range(void* context, std::int64_t begin, std::int64_t end, int worker) {
  auto* c = static_cast<LaunchContext*>(context);
  c->fn(c->buffers, c->sizes, begin, end, c->scratch + worker * c->scratch_stride, c->status);
}

}  // namespace

Result<void> Run::launch(const Launch& launch, const LaunchSizes& known) {
  LaunchSizes late;
  const LaunchSizes* sizes = &known;
  if (known.variant < 0) {
    late = WEFT_TRY(resolve_launch(launch, bindings()));
    WEFT_CHECK(late.variant >= 0, "a kernel's sizes are not bound when it is launched");
    sizes = &late;
  }
  auto& arguments = memory_->arguments;
  arguments.clear();
  for (SlotId s : launch.buffers) {
    void* p = memory_->pointers[s];
    if (!p) p = WEFT_TRY(make(s));
    arguments.push_back(p);
  }
  const KernelEntry& kernel = plan_.kernels[launch.variants[sizes->variant].kernel];
  std::int64_t status = 0;
  std::int64_t stride = (kernel.scratch + kAlignment - 1) / kAlignment * kAlignment;
  LaunchContext context{kernel.fn, arguments.data(), sizes->sizes.data(), memory_->scratch, stride, &status};
  parallel_for(sizes->grid, threads_, run_range, &context);
  if (status != 0) {
    std::size_t code = static_cast<std::size_t>(status);
    std::string what = code <= launch.checks.size() ? launch.checks[code - 1] : "a check of a kernel failed";
    return user_error("index-out-of-range", what);
  }
  return {};
}

Result<void> Run::host(const HostCall& call) {
  std::vector<Tensor> inputs;
  for (SlotId s : call.inputs) inputs.push_back(WEFT_TRY(tensor(s)));
  if (!has_late_) {
    late_ = layout_->bindings;
    has_late_ = true;
  }
  std::vector<Tensor> results = WEFT_TRY(call.call(inputs, late_));
  WEFT_TRY(check_requirements(plan_, late_));
  WEFT_CHECK(results.size() == call.outputs.size(), "a host op made the wrong number of results");
  for (std::size_t k = 0; k < results.size(); ++k) WEFT_TRY(put(call.outputs[k], std::move(results[k])));
  return {};
}

Result<void> Run::copy(const CopyStep& step) { return put(step.to, WEFT_TRY(tensor(step.from))); }

Result<std::vector<std::int64_t>> Run::shape(SlotId slot) const {
  if (layout_->known[slot]) return layout_->shapes[slot];
  return evaluate(plan_.slots[slot].shape, bindings());
}

Result<void*> Run::address(SlotId slot) {
  if (void* p = memory_->pointers[slot]) return p;
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Alias) return address(s.index);
  return memory_->pointers[slot];
}

Result<void*> Run::make(SlotId slot) {
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Alias) {
    return memory_->pointers[s.index] ? Result<void*>(memory_->pointers[s.index]) : make(s.index);
  }
  bool output = s.kind == Slot::Kind::Output;
  if (s.kind != Slot::Kind::Dynamic && s.kind != Slot::Kind::Temp && !output) return memory_->pointers[slot];
  Tensor& t = output ? outputs_[s.index] : memory_->dynamic[slot];
  std::vector<std::int64_t> sizes = WEFT_TRY(shape(slot));
  if (!t.defined()) t = WEFT_TRY(Tensor::empty(s.dtype, sizes));
  if (t.shape() != sizes || t.dtype() != s.dtype) {
    return user_error("output-mismatch", "the tensor given for an output does not fit")
        .expected(name(s.dtype) + shape_str(sizes))
        .found(name(t.dtype()) + shape_str(t.shape()));
  }
  return memory_->pointers[slot] = t.mutable_data();
}

Result<Tensor> Run::tensor(SlotId slot) {
  const Slot& s = plan_.slots[slot];
  std::vector<std::int64_t> sizes = WEFT_TRY(shape(slot));
  switch (s.kind) {
    case Slot::Kind::Input:
      return inputs_[s.index];
    case Slot::Kind::Constant:
      return plan_.constants[s.index].reshaped(sizes);
    case Slot::Kind::Output:
      return outputs_[s.index];
    case Slot::Kind::Alias:
      return WEFT_TRY(tensor(s.index)).reshaped(sizes);
    case Slot::Kind::Dynamic:
      if (memory_->dynamic[slot].defined()) return memory_->dynamic[slot];
      break;
    case Slot::Kind::Temp:
      if (memory_->dynamic[slot].defined()) return memory_->dynamic[slot];
      return Tensor::view(s.dtype, sizes, WEFT_TRY(address(slot)), nullptr);
  }
  return internal_error(fmt::format("slot {} is read before it is made", slot));
}

Result<Tensor> Run::target(SlotId slot) {
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Output) return outputs_[s.index];
  if (s.kind != Slot::Kind::Temp || !layout_->known[slot]) return Tensor();
  return Tensor::mutable_view(s.dtype, layout_->shapes[slot], memory_->pointers[slot]);
}

Result<void> Run::put(SlotId slot, Tensor value) {
  const Slot& s = plan_.slots[slot];
  if (s.kind == Slot::Kind::Dynamic) {
    memory_->dynamic[slot] = value;
    if (!is_string(s.dtype)) memory_->pointers[slot] = const_cast<void*>(memory_->dynamic[slot].data());
    return {};
  }
  if (s.kind == Slot::Kind::Output && !outputs_[s.index].defined()) {
    std::vector<std::int64_t> sizes = value.shape();
    outputs_[s.index] = WEFT_TRY(Tensor::empty(s.dtype, sizes));
  }
  if (is_string(s.dtype)) {
    outputs_[s.index].mutable_strings() = value.string_values();
    return {};
  }
  void* to = memory_->pointers[slot];
  if (!to) to = WEFT_TRY(make(slot));
  if (to != value.data() && value.byte_size() > 0) std::memcpy(to, value.data(), value.byte_size());
  return {};
}

}  // namespace weft::runtime
