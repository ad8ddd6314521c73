#include "runtime/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/pool.h"
#include "runtime/run.h"
#include "runtime/touched.h"

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
    ActiveRun active;
    Bindings none;
    return Run(*this, inputs, outputs, options, none, Run::Role::Whole).execute();
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return user_error("out-of-memory", "not enough memory for this run");
  } catch (const std::exception& e) {
    return internal_error(e.what());
  }
}

Run::Run(const Executable& executable, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
         const RunOptions& options, const Bindings& outer, Role role, const Kept* kept)
    : executable_(executable),
      plan_(executable.plan()),
      inputs_(inputs),
      outputs_(outputs),
      options_(options),
      outer_(outer),
      role_(role),
      kept_(kept) {
  threads_ = std::min(options.threads > 0 ? options.threads : decide_threads().threads, kMaxThreads);
  {
    std::lock_guard<std::mutex> lock(executable_.state_->mutex);
    auto& free = executable_.state_->free_memory;
    if (!free.empty()) {
      memory_ = std::move(free.back());
      free.pop_back();
    }
  }
  if (!memory_) memory_ = std::make_unique<RunMemory>();
}

Run::~Run() {
  for (Tensor& t : memory_->dynamic) t = Tensor();
  try {
    std::lock_guard<std::mutex> lock(executable_.state_->mutex);
    executable_.state_->free_memory.push_back(std::move(memory_));
  } catch (const std::exception&) {
    // No memory to remember it by: it is freed.
  }
}

namespace {

void grow(std::unique_ptr<std::byte[]>& storage, std::int64_t& have, std::int64_t need, std::byte*& start) {
  if (have >= need) return;
  storage.reset();
  have = 0;
  storage.reset(new std::byte[static_cast<std::size_t>(need + kAlignment)]);
  have = need;
  auto at = reinterpret_cast<std::uintptr_t>(storage.get());
  start = storage.get() + (kAlignment - at % kAlignment) % kAlignment;
}

bool overlap(const Tensor& a, const Tensor& b) {
  if (is_string(a.dtype()) || is_string(b.dtype())) return a.data() == b.data() && a.data() != nullptr;
  const auto* x = static_cast<const std::byte*>(a.data());
  const auto* y = static_cast<const std::byte*>(b.data());
  const std::size_t m = a.byte_size(), n = b.byte_size();
  return m > 0 && n > 0 && std::less<>()(x, y + n) && std::less<>()(y, x + m);
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
    if (inputs_[i].data() == nullptr && inputs_[i].size() > 0) {
      return user_error("no-data", "the input has no data").at(plan_.input_names[i]);
    }
    key.push_back(inputs_[i].rank());
    key.insert(key.end(), inputs_[i].shape().begin(), inputs_[i].shape().end());
  }
  for (const auto& [symbol, value] : outer_) key.push_back(value);
  has_late_ = false;
  if (!layout_ || layout_->key != key) {
    layout_ = WEFT_TRY(executable_.find_layout(key, inputs_, outer_));
    WEFT_TRY(prepare_memory());
  }
  prepare_pointers();
  WEFT_TRY(prepare_device());
  return prepare_outputs();
}

Result<void> Run::prepare_memory() {
  std::int64_t scratch = 0;
  for (const KernelEntry& kernel : plan_.kernels) scratch = std::max(scratch, aligned(kernel.scratch));
  grow(memory_->arena_storage, memory_->arena_bytes, layout_->memory.total, memory_->arena);
  grow(memory_->scratch_storage, memory_->scratch_bytes, scratch * threads_, memory_->scratch);
  memory_->pointers.assign(plan_.slots.size(), nullptr);
  memory_->dynamic.resize(plan_.slots.size());
  for (std::size_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.kind == Slot::Kind::Constant) memory_->pointers[s] = const_cast<void*>(plan_.constants[slot.index].data());
    if (slot.kind == Slot::Kind::Temp && layout_->known[s]) memory_->pointers[s] = memory_->arena + layout_->offsets[s];
  }
  return {};
}

// What may differ between executions of the same shapes.
void Run::prepare_pointers() {
  for (std::size_t s = 0; s < plan_.slots.size(); ++s) {
    const Slot& slot = plan_.slots[s];
    if (slot.kind == Slot::Kind::Input) {
      memory_->pointers[s] = const_cast<void*>(inputs_[slot.index].data());
    } else if (slot.kind == Slot::Kind::Dynamic || (slot.kind == Slot::Kind::Temp && !layout_->known[s])) {
      memory_->pointers[s] = nullptr;
      memory_->dynamic[s] = Tensor();
    } else if (slot.kind == Slot::Kind::Output) {
      memory_->pointers[s] = nullptr;
    }
  }
}

Result<void> Run::prepare_outputs() {
  outputs_.resize(plan_.outputs.size());
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    SlotId s = plan_.outputs[i];
    const Slot& slot = plan_.slots[s];
    Tensor& t = outputs_[i];
    if (t.defined() && role_ == Role::Whole) WEFT_TRY(check_overlap(i));
    if (!layout_->known[s]) continue;
    const auto& sizes = layout_->shapes[s];
    bool fits = t.defined() && t.dtype() == slot.dtype && t.shape() == sizes;
    if (!fits && t.defined() && role_ == Role::Whole) {
      return user_error("output-mismatch", "the tensor given for the output does not fit")
          .at(plan_.output_names[i])
          .expected(name(slot.dtype) + shape_str(sizes))
          .found(name(t.dtype()) + shape_str(t.shape()));
    }
    if (!fits) t = WEFT_TRY(Tensor::empty(slot.dtype, sizes));
    if (!is_string(slot.dtype)) memory_->pointers[s] = WEFT_TRY(writable(s, t));
  }
  return {};
}

// Outputs are written while inputs are still read.
Result<void> Run::check_overlap(std::size_t output) const {
  auto refuse = [&](const std::string& with) {
    return user_error("output-overlaps", "the memory given for the output is also that of " + with)
        .at(plan_.output_names[output]);
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (overlap(outputs_[output], inputs_[i])) return refuse("input '" + plan_.input_names[i] + "'");
  }
  for (std::size_t o = 0; o < output; ++o) {
    if (overlap(outputs_[output], outputs_[o])) return refuse("output '" + plan_.output_names[o] + "'");
  }
  return {};
}

Result<void> Run::check_stop() const {
  if (!options_.stop || !options_.stop->load(std::memory_order_relaxed)) return {};
  return user_error("stopped", "the run was stopped by its stop token");
}

Result<void> Run::execute() {
  WEFT_TRY(prepare());
  for (std::size_t k = 0; k < plan_.steps.size(); ++k) {
    WEFT_TRY(check_stop());
    const auto done = options_.profile ? profiled_step(k) : step(k);
    if (done.ok()) continue;
    WEFT_TRY(check_device());  // what went wrong there before comes first
    return done;
  }
  return finish_device();
}

Result<void> Run::profiled_step(std::size_t k) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  WEFT_TRY(step(k));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  StepProfile& profile = (*options_.profile)[&plan_.steps[k]];
  ++profile.runs;
  profile.seconds += seconds;
  const auto* launch = std::get_if<Launch>(&plan_.steps[k]);
  if (!launch || launch->info < 0) return {};
  const KernelInfo& info = plan_.infos[launch->info];
  const auto add = [&](const Dim& work, double& sum) -> Result<void> {
    sum += static_cast<double>(WEFT_TRY(work.evaluate(bindings())));
    return {};
  };
  WEFT_TRY(add(info.bytes_compulsory, profile.bytes_compulsory));
  WEFT_TRY(add(info.bytes_moved, profile.bytes_moved));
  return add(info.flops, profile.flops);
}

Result<void> Run::step(std::size_t k) {
  const PlanStep& s = plan_.steps[k];
  if (const auto* x = std::get_if<Launch>(&s)) return launch(*x, layout_->launches[k], k);
  if (const auto* x = std::get_if<HostCall>(&s)) return host(*x);
  if (const auto* x = std::get_if<BranchStep>(&s)) return branch(*x, k);
  if (const auto* x = std::get_if<LoopStep>(&s)) return loop(*x, k);
  if (const auto* x = std::get_if<ScanStep>(&s)) return scan(*x, k);
  const auto& copy = std::get<CopyStep>(s);
  if (is_kept(copy.to)) return {};  // in the same place as what it is a copy of
  return put(copy.to, WEFT_TRY(tensor(copy.from)), "");
}

namespace {

struct LaunchContext {
  KernelFn fn;
  void* const* buffers;
  const std::int64_t* sizes;
  std::byte* scratch;
  std::int64_t scratch_stride;
  std::int64_t* status;
  const GuardedLaunch* guarded = nullptr;
};

void run_range(void* context, std::int64_t begin, std::int64_t end, int worker) {
  auto* c = static_cast<LaunchContext*>(context);
  c->fn(c->buffers, c->sizes, begin, end, c->scratch + worker * c->scratch_stride, c->status);
}

void run_range_guarded(void* context, std::int64_t begin, std::int64_t end, int worker) {
  auto* c = static_cast<LaunchContext*>(context);
  c->fn(c->guarded->buffers(), c->sizes, begin, end, c->guarded->scratch(worker), c->status);
}

}  // namespace

Result<void> Run::launch(const Launch& launch, const LaunchSizes& known, std::size_t k) {
  LaunchSizes bound;
  const LaunchSizes* sizes = &known;
  if (known.variant < 0) {
    bound = WEFT_TRY(resolve_launch(plan_, launch, bindings()));
    WEFT_CHECK(bound.variant >= 0, "a kernel's sizes are not bound when it is launched");
    sizes = &bound;
  }
  if (launch.on_device) return launch_on_device(launch, *sizes, k);
  if (!plan_.device) return launch_here(launch, *sizes);
  return launch_between(launch, *sizes);
}

// Of a kernel that not all runs take; which ones this run takes is known beforehand unless its sizes come late.
Result<KernelFn> Run::made(std::int32_t kernel) {
  KernelFn found = plan_.code->function(kernel);
  if (found == nullptr) {
    WEFT_TRY(plan_.code->require(std::span(&kernel, 1)));
    found = plan_.code->function(kernel);
  }
  return found;
}

Result<void> Run::launch_here(const Launch& launch, const LaunchSizes& sizes) {
  auto& arguments = memory_->arguments;
  arguments.clear();
  for (SlotId s : launch.buffers) {
    void* p = memory_->pointers[s];
    if (!p) p = WEFT_TRY(make(s));
    arguments.push_back(p);
  }
  const std::int32_t number = launch.variants[sizes.variant].kernel;
  const KernelEntry& kernel = plan_.kernels[number];
  std::int64_t status = 0;
  LaunchContext context{kernel.fn != nullptr ? kernel.fn : WEFT_TRY(made(number)),
                        arguments.data(),
                        sizes.sizes.data(),
                        memory_->scratch,
                        aligned(kernel.scratch),
                        &status};
  const int threads = std::min(fair_share(threads_), sizes.threads);
  if (const auto side = guard_side()) {
    const GuardedLaunch guarded(kernel.symbol, WEFT_TRY(guarded_buffers(launch, kernel)), kernel.scratch, threads, *side);
    context.guarded = &guarded;
    parallel_for(sizes.grid, threads, run_range_guarded, &context);
  } else {
    parallel_for(sizes.grid, threads, run_range, &context);
  }
  if (status != 0) return failed_check(launch, status);
  return {};
}

Result<std::vector<GuardedBuffer>> Run::guarded_buffers(const Launch& launch, const KernelEntry& kernel) const {
  std::vector<GuardedBuffer> buffers;
  for (std::size_t b = 0; b < launch.buffers.size(); ++b) {
    const SlotId s = base_of(plan_, launch.buffers[b]);
    const Slot& slot = plan_.slots[s];
    const std::int64_t size = slot.kind == Slot::Kind::Constant
                                  ? static_cast<std::int64_t>(plan_.constants[slot.index].byte_size())
                                  : WEFT_TRY(bytes(s));
    buffers.push_back({memory_->arguments[b], size, kernel.written[b]});
  }
  return buffers;
}

Error failed_check(const Launch& launch, std::int64_t code) {
  const bool named = code > 0 && code <= static_cast<std::int64_t>(launch.checks.size());
  if (named && launch.checks[code - 1] == kNeedsExact) return user_error("needs-exact", kNeedsExact);
  return user_error("index-out-of-range", named ? launch.checks[code - 1] : "a check of a kernel failed");
}

Result<void> Run::host(const HostCall& call) {
  std::vector<Tensor> inputs = WEFT_TRY(tensors(call.inputs));
  std::vector<Tensor> results = WEFT_TRY(call.call(inputs, late()));
  WEFT_TRY(check_requirements(plan_, bindings()));
  WEFT_CHECK(results.size() == call.outputs.size(), "a host op made the wrong number of results");
  for (std::size_t k = 0; k < results.size(); ++k) WEFT_TRY(put(call.outputs[k], std::move(results[k]), call.origin));
  return {};
}

}  // namespace weft::runtime
