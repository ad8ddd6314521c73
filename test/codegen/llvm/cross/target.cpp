// The emulated CPUs as targets of the command line: linked with the commands, `--target cortex-a76` runs a model's
// kernels there.
#include "target/target.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "codegen/llvm/cross/server.h"

namespace weft::cross {

namespace {

using runtime::DeviceSpan;

struct Memory final : runtime::DeviceMemory {
  Memory(std::shared_ptr<Server> s, std::int64_t o) : server(std::move(s)), offset(o) {}
  ~Memory() override { server->free(offset); }
  std::shared_ptr<Server> server;
  std::int64_t offset;
};

std::int64_t offset_of(DeviceSpan span) { return static_cast<Memory*>(span.memory)->offset + span.offset; }

struct Code final : runtime::DeviceCode {
  std::vector<std::int64_t> kernels;
  std::unique_ptr<runtime::DeviceMemory> scratch;  // as much as the greediest kernel asks for
};

class EmulatedDevice final : public runtime::Device {
 public:
  EmulatedDevice(std::string name, std::shared_ptr<Server> server) : name_(std::move(name)), server_(std::move(server)) {}
  const std::string& name() const override { return name_; }

  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t bytes) override {
    return std::unique_ptr<runtime::DeviceMemory>(std::make_unique<Memory>(server_, WEFT_TRY(server_->allocate(bytes))));
  }
  Result<void> upload(DeviceSpan to, const void* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(server_->at(offset_of(to)), from, static_cast<std::size_t>(bytes));
    return {};
  }
  Result<void> download(void* to, DeviceSpan from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, server_->at(offset_of(from)), static_cast<std::size_t>(bytes));
    return {};
  }
  Result<void> launch(const runtime::DeviceLaunch& launch) override {
    const auto& code = static_cast<const Code&>(*launch.code);
    std::vector<std::int64_t> buffers;
    for (DeviceSpan span : launch.buffers) buffers.push_back(offset_of(span));
    const std::lock_guard<std::mutex> lock(mutex_);  // of the scratch memory
    const std::int64_t status = WEFT_TRY(server_->run(code.kernels[static_cast<std::size_t>(launch.kernel)], buffers, launch.sizes, 0,
                                                      launch.grid, offset_of({code.scratch.get(), 0})));
    const auto reported = static_cast<std::int32_t>(status);
    return status > 0 ? upload(launch.status, &reported, sizeof reported) : Result<void>();
  }
  Result<void> finish() override { return {}; }

 private:
  std::string name_;
  std::shared_ptr<Server> server_;
  std::mutex mutex_;
};

class EmulatedTarget final : public target::Target {
 public:
  EmulatedTarget(const char* name, std::shared_ptr<Server> server)
      : server_(std::move(server)), device_(std::make_shared<EmulatedDevice>(name, server_)) {}

  const Machine& machine() const override { return server_->machine(); }
  std::shared_ptr<runtime::Device> device() const override { return device_; }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override {
    return codegen::emit_assembly(entries(kernels), codegen::target_for(machine()));
  }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    codegen::Options options;
    options.verify = true;
    const auto object = WEFT_TRY(codegen::compile_object(entries(kernels), codegen::target_for(machine()), options));
    std::vector<std::string> symbols;
    std::int64_t scratch = 0;
    for (const kernel::Function& f : kernels) {
      symbols.push_back(f.name);
      scratch = std::max(scratch, codegen::scratch_bytes(f));
    }
    auto code = std::make_shared<Code>();
    code->kernels = WEFT_TRY(server_->load(object, symbols));
    code->scratch = WEFT_TRY(device_->allocate(scratch));
    return std::shared_ptr<const runtime::DeviceCode>(code);
  }

 private:
  static std::vector<codegen::Entry> entries(std::span<const kernel::Function> kernels) {
    std::vector<codegen::Entry> all;
    for (const kernel::Function& f : kernels) all.push_back({&f, f.name});
    return all;
  }

  std::shared_ptr<Server> server_;
  std::shared_ptr<EmulatedDevice> device_;
};

template <std::size_t K>
Result<std::shared_ptr<const target::Target>> open(std::string_view) {
  const Emulated& what = emulated()[K];
  return std::shared_ptr<const target::Target>(std::make_shared<EmulatedTarget>(what.name, WEFT_TRY(Server::start(what))));
}

template <std::size_t... K>
bool add_all(std::index_sequence<K...>) {
  (target::add({emulated()[K].name, "that CPU, emulated", open<K>, nullptr}), ...);
  return true;
}

const bool added = add_all(std::make_index_sequence<5>());

}  // namespace

}  // namespace weft::cross
