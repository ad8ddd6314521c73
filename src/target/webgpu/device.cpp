#include "target/webgpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weft::target::webgpu {
namespace {

using runtime::DeviceSpan;

constexpr std::uint64_t kWord = 4;                     // copies are of whole words
constexpr std::uint64_t kStep = 16;                    // of the sizes of buffers and bindings
constexpr std::uint64_t kParameterBytes = 256 << 10;   // of the launches of one pass
constexpr std::uint64_t kPiece = 64 << 20;             // copied at once
constexpr std::uint32_t kUsualAlignment = 256;         // of bindings

std::uint64_t rounded(std::uint64_t n, std::uint64_t step) { return (n + step - 1) / step * step; }

struct Memory final : runtime::DeviceMemory {
  Memory(std::shared_ptr<Session> s, Buffer* b, std::uint64_t n) : session(std::move(s)), buffer(b), bytes(n) {}
  ~Memory() override { session->library.BufferRelease(buffer); }
  std::shared_ptr<Session> session;
  Buffer* buffer;
  std::uint64_t bytes;
};

struct Code final : runtime::DeviceCode {
  explicit Code(std::shared_ptr<Session> s) : session(std::move(s)) {}
  ~Code() override {
    for (const Entry& e : entries) session->library.ComputePipelineRelease(e.pipeline);
  }
  struct Entry {
    ComputePipeline* pipeline;
    BindGroupLayout* layout;  // the device's
    std::uint64_t programs;   // that one work group runs
  };
  std::int64_t alignment() const override { return 1; }
  std::shared_ptr<Session> session;
  std::vector<Entry> entries;
};

const Memory& memory_of(DeviceSpan span) { return static_cast<const Memory&>(*span.memory); }

// Where a span is bound: from an aligned place before it on, and how many bytes into that it starts.
struct Bound {
  BindGroupEntry entry;
  std::uint32_t skipped = 0;
};
Bound bound(DeviceSpan span, std::uint32_t number, std::uint64_t alignment) {
  const Memory& memory = memory_of(span);
  Bound b;
  const std::uint64_t offset = std::min(static_cast<std::uint64_t>(span.offset), memory.bytes - kWord);
  b.entry.binding = number;
  b.entry.buffer = memory.buffer;
  b.entry.offset = offset / alignment * alignment;
  b.skipped = static_cast<std::uint32_t>(offset - b.entry.offset);
  const std::uint64_t rest = memory.bytes - b.entry.offset;
  b.entry.size = std::min(rest, rounded(std::max<std::uint64_t>(b.skipped + static_cast<std::uint64_t>(span.bytes), 1), kStep));
  return b;
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(int number) {
  const std::vector<Found>& all = *WEFT_TRY(adapters());
  if (number >= static_cast<int>(all.size())) {
    return user_error("no-device", "there is no such WebGPU adapter")
        .expected(fmt::format("one of {}", all.size()))
        .found(fmt::format("webgpu:{}", number))
        .suggest("'weft doctor' lists them");
  }
  const Found& found = all[static_cast<std::size_t>(number)];
  if (!found.facts.has_i64) return unsupported("no-device", "a WebGPU adapter without 64-bit integers in shaders").at(found.facts.name);
  std::shared_ptr<Device> device(new Device(WEFT_TRY(Session::begin(found))));
  device->parameters_ = WEFT_TRY(device->session_->buffer(kUniform | kCopyFrom | kCopyTo, kParameterBytes));
  return device;
}

Device::~Device() {
  if (pass_ != nullptr) {
    library_.ComputePassEncoderEnd(pass_);
    library_.ComputePassEncoderRelease(pass_);
    library_.CommandEncoderRelease(encoder_);
  }
  if (parameters_ != nullptr) library_.BufferRelease(parameters_);
  if (staging_ != nullptr) library_.BufferRelease(staging_);
  for (const Layout& l : layouts_) {
    if (l.pipeline != nullptr) library_.PipelineLayoutRelease(l.pipeline);
    if (l.group != nullptr) library_.BindGroupLayoutRelease(l.group);
  }
}

Result<std::unique_ptr<runtime::DeviceMemory>> Device::allocate(std::int64_t bytes) {
  const std::uint64_t size = std::max(kStep, rounded(static_cast<std::uint64_t>(bytes), kStep));
  Buffer* buffer = WEFT_TRY(session_->buffer(kStorage | kCopyFrom | kCopyTo, size));
  return std::unique_ptr<runtime::DeviceMemory>(std::make_unique<Memory>(session_, buffer, size));
}

// The last bytes of a copy go as a word of their own; what shares that word with them is nobody's.
Result<void> Device::upload(DeviceSpan to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  WEFT_TRY(submit());
  const Memory& memory = memory_of(to);
  const auto* data = static_cast<const std::uint8_t*>(from);
  const auto total = static_cast<std::uint64_t>(bytes), offset = static_cast<std::uint64_t>(to.offset), whole = total / kWord * kWord;
  for (std::uint64_t at = 0; at < whole; at += kPiece) {
    library_.QueueWriteBuffer(session_->queue, memory.buffer, offset + at, data + at, std::min(kPiece, whole - at));
  }
  if (whole < total) {
    std::uint8_t last[kWord] = {};
    std::memcpy(last, data + whole, total - whole);
    library_.QueueWriteBuffer(session_->queue, memory.buffer, offset + whole, last, kWord);
  }
  return session_->checked("wgpuQueueWriteBuffer");
}

Result<void> Device::read(void* to, Buffer* from, std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t size = rounded(bytes, kWord);
  if (size > staging_bytes_) {
    if (staging_ != nullptr) library_.BufferRelease(staging_);
    staging_ = nullptr;
    staging_bytes_ = 0;
    staging_ = WEFT_TRY(session_->buffer(kMapRead | kCopyTo, size));
    staging_bytes_ = size;
  }
  CommandEncoder* encoder = library_.DeviceCreateCommandEncoder(session_->device, nullptr);
  library_.CommandEncoderCopyBufferToBuffer(encoder, from, at, staging_, 0, size);
  WEFT_TRY(submit(encoder));
  auto status = std::make_unique<std::atomic<std::uint32_t>>(0);
  CallbackInfo<OnMapped> mapped;
  mapped.callback = [](std::uint32_t s, Text, void* user, void*) { *static_cast<std::atomic<std::uint32_t>*>(user) = s; };
  mapped.user1 = status.get();
  library_.BufferMapAsync(staging_, kMapForReading, 0, size, mapped);
  if (const auto done = session_->wait(*status); !done.ok()) {
    status.release();  // the callback may still come
    return done.error();
  }
  WEFT_TRY(session_->checked("wgpuBufferMapAsync"));
  if (*status != kSuccess) return internal_error(fmt::format("wgpuBufferMapAsync failed with status {}", status->load()));
  const void* data = library_.BufferGetConstMappedRange(staging_, 0, size);
  if (data == nullptr) return internal_error("wgpuBufferGetConstMappedRange gives nothing");
  std::memcpy(to, data, bytes);
  library_.BufferUnmap(staging_);
  return {};
}

Result<void> Device::download(void* to, DeviceSpan from, std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEFT_TRY(submit());
  const auto total = static_cast<std::uint64_t>(bytes);
  for (std::uint64_t at = 0; at < total; at += kPiece) {
    WEFT_TRY(read(static_cast<std::uint8_t*>(to) + at, memory_of(from).buffer, static_cast<std::uint64_t>(from.offset) + at, std::min(kPiece, total - at)));
  }
  return {};
}

Result<void> Device::submit(CommandEncoder* encoder) {
  CommandBuffer* commands = library_.CommandEncoderFinish(encoder, nullptr);
  library_.CommandEncoderRelease(encoder);
  const auto finished = session_->checked("wgpuCommandEncoderFinish");
  if (finished.ok()) library_.QueueSubmit(session_->queue, 1, &commands);
  if (commands != nullptr) library_.CommandBufferRelease(commands);
  WEFT_TRY(finished);
  return session_->checked("wgpuQueueSubmit");
}

Result<void> Device::submit() {
  if (pass_ == nullptr) return session_->checked("a call");
  library_.ComputePassEncoderEnd(pass_);
  library_.ComputePassEncoderRelease(pass_);
  pass_ = nullptr;
  library_.QueueWriteBuffer(session_->queue, parameters_, 0, parameter_bytes_.data(), parameter_bytes_.size());
  parameter_bytes_.clear();
  return submit(encoder_);
}

Result<void> Device::begin_pass() {
  if (pass_ != nullptr) return {};
  encoder_ = library_.DeviceCreateCommandEncoder(session_->device, nullptr);
  pass_ = library_.CommandEncoderBeginComputePass(encoder_, nullptr);
  return session_->checked("wgpuCommandEncoderBeginComputePass");
}

// Where in the buffer of parameters these words will be.
Result<std::uint64_t> Device::add_parameters(const std::vector<std::uint32_t>& words) {
  const std::uint64_t bytes = rounded(words.size() * sizeof(std::uint32_t), kUsualAlignment);
  if (bytes > kParameterBytes) return unsupported("buffers", "a kernel of so many sizes on a WebGPU device");
  if (parameter_bytes_.size() + bytes > kParameterBytes) WEFT_TRY(submit());
  const std::uint64_t at = parameter_bytes_.size();
  parameter_bytes_.resize(at + bytes);
  std::memcpy(parameter_bytes_.data() + at, words.data(), words.size() * sizeof(std::uint32_t));
  return at;
}

// Parameters and bindings as codegen/text/text.h states them.
Result<void> Device::launch(const runtime::DeviceLaunch& launch) {
  const Code::Entry& kernel = static_cast<const Code&>(*launch.code).entries[static_cast<std::size_t>(launch.kernel)];
  const Limits& limits = session_->facts.limits;
  const std::uint64_t groups = rounded(static_cast<std::uint64_t>(launch.grid), kernel.programs) / kernel.programs;
  const std::uint64_t across = std::min<std::uint64_t>(groups, limits.groups_per_dimension), down = rounded(groups, across) / across;
  if (down > limits.groups_per_dimension) {
    return user_error("grid-too-large", "a kernel has more programs than a WebGPU device starts at once").found(fmt::format("{}", launch.grid));
  }
  const Bound status = bound(launch.status, 1, limits.storage_alignment);
  std::vector<std::uint32_t> words = {static_cast<std::uint32_t>(launch.grid), static_cast<std::uint32_t>(status.skipped / sizeof(std::int32_t)), 0, 0};
  std::vector<BindGroupEntry> entries(2);
  entries[1] = status.entry;
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const Bound b = bound(launch.buffers[i], static_cast<std::uint32_t>(i + 2), limits.storage_alignment);
    if (b.entry.size > limits.storage_binding_bytes) {
      return user_error("out-of-device-memory", "a tensor is larger than what a WebGPU kernel can be given")
          .expected(fmt::format("at most {} bytes", limits.storage_binding_bytes))
          .found(fmt::format("{} bytes", b.entry.size))
          .at(name());
    }
    entries.push_back(b.entry);
    words.push_back(b.skipped);
  }
  for (std::int64_t n : launch.sizes) {
    words.push_back(static_cast<std::uint32_t>(n));
    words.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(n) >> 32));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (session_->lost) return session_->lost_error();
  entries[0].offset = WEFT_TRY(add_parameters(words));
  entries[0].buffer = parameters_;
  entries[0].size = rounded(words.size() * sizeof(std::uint32_t), kStep);
  WEFT_TRY(begin_pass());
  BindGroupDescriptor bindings;
  bindings.layout = kernel.layout;
  bindings.count = entries.size();
  bindings.entries = entries.data();
  BindGroup* group = library_.DeviceCreateBindGroup(session_->device, &bindings);
  WEFT_TRY(session_->checked("wgpuDeviceCreateBindGroup"));
  library_.ComputePassEncoderSetPipeline(pass_, kernel.pipeline);
  library_.ComputePassEncoderSetBindGroup(pass_, 0, group, 0, nullptr);
  library_.ComputePassEncoderDispatchWorkgroups(pass_, static_cast<std::uint32_t>(across), static_cast<std::uint32_t>(down), 1);
  library_.BindGroupRelease(group);
  return session_->checked("wgpuComputePassEncoderDispatchWorkgroups");
}

Result<void> Device::finish() {
  std::uint32_t word = 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  WEFT_TRY(submit());
  return read(&word, parameters_, 0, sizeof word);
}

Result<Device::Layout> Device::layout(std::size_t buffers) {
  if (buffers + 1 > session_->facts.limits.storage_buffers) {
    return unsupported("buffers", fmt::format("a kernel of {} buffers: this WebGPU device has {}", buffers, session_->facts.limits.storage_buffers - 1)).at(name());
  }
  if (layouts_.size() <= buffers) layouts_.resize(buffers + 1);
  Layout& l = layouts_[buffers];
  if (l.pipeline != nullptr) return l;
  std::vector<LayoutEntry> entries(buffers + 2);
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].binding = static_cast<std::uint32_t>(i);
  entries[0].buffer.type = kUniformBinding;
  LayoutDescriptor bindings;
  bindings.count = entries.size();
  bindings.entries = entries.data();
  l.group = library_.DeviceCreateBindGroupLayout(session_->device, &bindings);
  PipelineLayoutDescriptor whole;
  whole.count = 1;
  whole.layouts = &l.group;
  l.pipeline = library_.DeviceCreatePipelineLayout(session_->device, &whole);
  WEFT_TRY(session_->checked("wgpuDeviceCreatePipelineLayout"));
  return l;
}

Result<std::shared_ptr<const runtime::DeviceCode>> Device::build(const std::vector<Kernel>& kernels) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (session_->lost) return session_->lost_error();
  auto code = std::make_shared<Code>(session_);
  for (const Kernel& k : kernels) {
    const Layout layout = WEFT_TRY(this->layout(k.buffers));
    WgslSource source;
    source.code = {k.source.data(), k.source.size()};
    Labelled wanted;
    wanted.next = &source.chain;
    ShaderModule* module = library_.DeviceCreateShaderModule(session_->device, &wanted);
    auto fine = session_->checked("wgpuDeviceCreateShaderModule");
    PipelineDescriptor pipeline;
    pipeline.layout = layout.pipeline;
    pipeline.compute.module = module;
    pipeline.compute.entry = {k.entry.data(), k.entry.size()};
    if (fine.ok()) {
      code->entries.push_back({library_.DeviceCreateComputePipeline(session_->device, &pipeline), layout.group,
                               k.alone ? static_cast<std::uint64_t>(k.group) : 1});
      fine = session_->checked("wgpuDeviceCreateComputePipeline");
    }
    if (module != nullptr) library_.ShaderModuleRelease(module);
    if (!fine.ok()) return internal_error(fmt::format("'{}' refuses generated WGSL: {}\n{}", name(), fine.error().message(), k.source));
  }
  return std::shared_ptr<const runtime::DeviceCode>(std::move(code));
}

}  // namespace weft::target::webgpu
