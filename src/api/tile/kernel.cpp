// Kernels: recorded once, then interpreted, stepped through or compiled.
#include <fmt/format.h>

#include <algorithm>

#include "api/state.h"
#include "api/tile/launch.h"
#include "codegen/llvm/codegen.h"
#include "compile/kernels.h"
#include "runtime/pool.h"

namespace weft::tile {

// Exactly one of code, device and neither (the interpreter).
struct CompiledKernel::State {
  std::shared_ptr<const Kernel::State> kernel;
  int threads = 0;
  std::optional<codegen::LoadedCode> code;
  runtime::KernelFn fn = nullptr;
  std::shared_ptr<runtime::Device> device;
  std::shared_ptr<const runtime::DeviceCode> device_code;
};

Error no_kernel() { return user_error("no-kernel", "this kernel was never made").suggest("use what weft::tile::kernel returns"); }

namespace {

Result<kernel::Function> lowered(const Kernel::State& kernel, const compiler::Options& how) {
  if (kernel.recorded.error) return *kernel.recorded.error;
  return compiler::lower_program(kernel.recorded.function, compiler::machine_of(how), "tile_kernel");
}

Result<void> run_here(const CompiledKernel::State& s, std::int64_t grid, Bound& bound) {
  std::vector<void*> buffers;
  for (const BufferView& view : bound.buffers) buffers.push_back(view.data);
  std::int64_t status = 0;
  struct Call {
    runtime::KernelFn fn;
    void* const* buffers;
    const std::int64_t* sizes;
    std::int64_t* status;
  } call{s.fn, buffers.data(), bound.sizes.data(), &status};
  const int threads = s.threads > 0 ? s.threads : runtime::decide_threads().threads;
  runtime::parallel_for(grid, threads, [](void* context, std::int64_t begin, std::int64_t end, int) {
    const Call& c = *static_cast<const Call*>(context);
    c.fn(c.buffers, c.sizes, begin, end, nullptr, c.status);
  }, &call);
  return status == 0 ? Result<void>() : failed_check(*s.kernel, status);
}

Result<void> run_on_device(const CompiledKernel::State& s, std::int64_t grid, Bound& bound) {
  const std::vector<ssa::Buffer>& declared = s.kernel->recorded.function.buffers;
  std::vector<std::unique_ptr<runtime::DeviceMemory>> memory;
  std::vector<runtime::DeviceSpan> spans;
  std::vector<std::int64_t> bytes;
  const auto place = [&](const void* data, std::int64_t size) -> Result<void> {
    memory.push_back(WEFT_TRY(s.device->allocate(std::max<std::int64_t>(size, 8))));
    spans.push_back({memory.back().get(), 0, size});
    bytes.push_back(size);
    return size > 0 ? s.device->upload(spans.back(), data, size) : Result<void>();
  };
  for (std::size_t i = 0; i < bound.buffers.size(); ++i) {
    const auto size = storage_bytes(declared[i].dtype, bound.buffers[i].elements);
    WEFT_TRY(place(bound.buffers[i].data, static_cast<std::int64_t>(size.value_or(0))));
  }
  std::int32_t status = 0;
  WEFT_TRY(place(&status, sizeof status));
  runtime::DeviceLaunch launch;
  launch.code = s.device_code.get();
  launch.buffers = std::span(spans).first(bound.buffers.size());
  launch.sizes = bound.sizes;
  launch.grid = grid;
  launch.status = spans.back();
  WEFT_TRY(s.device->launch(launch));
  WEFT_TRY(s.device->finish());
  WEFT_TRY(s.device->download(&status, spans.back(), sizeof status));
  for (std::size_t i = 0; i < bound.buffers.size(); ++i) {
    if (declared[i].written && bytes[i] > 0) WEFT_TRY(s.device->download(bound.buffers[i].data, spans[i], bytes[i]));
  }
  return status == 0 ? Result<void>() : failed_check(*s.kernel, status);
}

Result<Traffic> interpret_bound(const Kernel::State& kernel, std::int64_t grid, Bound& bound) {
  Watch watch(bound.buffers);
  WEFT_TRY(tile::interpret(kernel.recorded.function, bound.buffers, bound.sizes, grid, &watch));
  return Traffic{watch.bytes_loaded, watch.bytes_stored};
}

}  // namespace

Kernel record(std::string name, std::function<void(Recorder&)> body) {
  auto state = std::make_shared<Kernel::State>();
  state->name = name;
  Recorder recorder(std::move(name));
  body(recorder);
  state->recorded = recorder.finish();
  state->body = std::move(body);
  return Kernel{std::move(state)};
}

const std::string& Kernel::name() const {
  static const std::string kNone;
  return state ? state->name : kNone;
}

Result<CompiledKernel> Kernel::compile(const CompileOptions& options) const {
  return at_the_edge([&]() -> Result<CompiledKernel> {
    if (!state) return no_kernel();
    if (state->recorded.error) return *state->recorded.error;
    auto compiled = std::make_shared<CompiledKernel::State>();
    compiled->kernel = state;
    compiled->threads = options.threads;
    if (options.target == "ref") return CompiledKernel{std::move(compiled)};
    const compiler::Options how = WEFT_TRY(compiler_options(options));
    WEFT_TRY(require_here(how));
    if (how.cpu_too) return unsupported("target", "a kernel of its own runs in one place").found(options.target);
    const kernel::Function function = WEFT_TRY(lowered(*state, how));
    if (how.target) {
      compiled->device = how.target->device();
      compiled->device_code = WEFT_TRY(how.target->build(std::span(&function, 1)));
      return CompiledKernel{std::move(compiled)};
    }
    const codegen::Entry entry{&function, function.name};
    const codegen::Object object = WEFT_TRY(codegen::compile_object(std::span(&entry, 1), codegen::target_for(how.machine)));
    compiled->code = WEFT_TRY(codegen::LoadedCode::load(std::span(&object, 1)));
    compiled->fn = WEFT_TRY(compiled->code->lookup(function.name));
    return CompiledKernel{std::move(compiled)};
  });
}

Result<void> CompiledKernel::run(std::int64_t grid, const Arguments& arguments) const {
  return at_the_edge([&]() -> Result<void> {
    if (!state) return user_error("no-kernel", "this kernel was never compiled").suggest("use what Kernel::compile returns");
    auto bound = WEFT_TRY(bind(*state->kernel, grid, arguments));
    if (grid == 0) return {};
    Result<void> done;
    if (state->fn) {
      done = run_here(*state, grid, *bound);
    } else if (state->device_code) {
      done = run_on_device(*state, grid, *bound);
    } else if (auto traffic = interpret_bound(*state->kernel, grid, *bound); !traffic.ok()) {
      done = traffic.error();
    }
    show_prints(state->kernel->recorded, *bound);
    return done;
  });
}

Result<Traffic> Kernel::interpret(std::int64_t grid, const Arguments& arguments) const {
  return at_the_edge([&]() -> Result<Traffic> {
    if (!state) return no_kernel();
    auto bound = WEFT_TRY(bind(*state, grid, arguments));
    auto traffic = interpret_bound(*state, grid, *bound);
    show_prints(state->recorded, *bound);
    return traffic;
  });
}

Result<Traffic> Kernel::debug(std::int64_t grid, const Arguments& arguments) const {
  return at_the_edge([&]() -> Result<Traffic> {
    if (!state) return no_kernel();
    auto bound = WEFT_TRY(bind(*state, grid, arguments));
    std::span<const BufferView> buffers = bound->buffers;
    if (!state->recorded.prints.empty()) buffers = buffers.first(buffers.size() - 2);  // print() shows at once
    Watch watch(buffers);
    for (std::int64_t program = 0; program < grid; ++program) {
      Recorder recorder(state->name);
      Stepper stepper(recorder.function(), buffers, bound->sizes, program, watch);
      recorder.step_with(stepper, program);
      state->body(recorder);
      if (recorder.error()) return *recorder.error();
    }
    return Traffic{watch.bytes_loaded, watch.bytes_stored};
  });
}

Result<std::string> Kernel::text(const std::string& stage, const CompileOptions& options) const {
  return at_the_edge([&]() -> Result<std::string> {
    if (!state) return no_kernel();
    if (state->recorded.error) return *state->recorded.error;
    if (stage == "tile") return ssa::print(state->recorded.function);
    const compiler::Options how = WEFT_TRY(compiler_options(options));
    const kernel::Function function = WEFT_TRY(lowered(*state, how));
    if (stage == "kernel") return ssa::print(function);
    if (stage == "source" && how.target) return how.target->print(std::span(&function, 1));
    const codegen::Entry entry{&function, function.name};
    const auto target = codegen::target_for(how.machine);
    if (stage == "llvm" && !how.target) return codegen::emit_llvm_ir(std::span(&entry, 1), target);
    if (stage == "asm" && !how.target) return codegen::emit_assembly(std::span(&entry, 1), target);
    return user_error("unknown-stage", fmt::format("a kernel has no text '{}' for the target '{}'", stage, options.target))
        .suggest("there is tile, kernel, llvm and asm, and source of a target that compiles text");
  });
}

}  // namespace weft::tile
