#include "target/webgpu/session.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/knobs.h"

namespace weft::target::webgpu {
namespace {

struct Requested {
  GpuDevice* device = nullptr;
  std::string message;
  std::atomic<std::uint32_t> status = 0;
};

void on_device(std::uint32_t status, GpuDevice* device, Text message, void* requested, void*) {
  auto& r = *static_cast<Requested*>(requested);
  r.device = device;
  r.message = text_of(message);
  r.status = status;
}

}  // namespace

Result<std::shared_ptr<Session>> Session::begin(const Found& found) {
  const Library& l = *WEFT_TRY(webgpu::library());
  std::shared_ptr<Session> session(new Session(l, found.facts));
  std::vector<std::uint32_t> features;
  if (found.facts.has_i64) features.push_back(kShaderI64);
  if (found.facts.has_f64) features.push_back(kShaderF64);
  if (found.facts.has_i64_atomics) features.insert(features.end(), {kI64AtomicMinMax, kI64Atomics});
  DeviceDescriptor wanted;
  wanted.features = features.size();
  wanted.feature = features.data();
  wanted.limits = &found.facts.limits;
  wanted.lost.callback = on_lost;
  wanted.lost.user1 = session.get();
  wanted.error.callback = on_error;
  wanted.error.user1 = session.get();
  Requested requested;
  CallbackInfo<OnDevice> callback;
  callback.callback = on_device;
  callback.user1 = &requested;
  l.AdapterRequestDevice(found.adapter, &wanted, callback);  // calls back before it returns
  if (requested.status != kSuccess || requested.device == nullptr) {
    return user_error("no-device", fmt::format("'{}' gives no WebGPU device: {}", found.facts.name, requested.message));
  }
  session->device = requested.device;
  session->queue = l.DeviceGetQueue(session->device);
  return session;
}

Session::~Session() {
  if (queue != nullptr) library.QueueRelease(queue);
  if (device != nullptr) library.DeviceRelease(device);
}

void Session::on_error(GpuDevice* const*, std::uint32_t type, Text message, void* self, void*) {
  auto& s = *static_cast<Session*>(self);
  const std::lock_guard<std::mutex> lock(s.mutex_);
  if (s.reported_ != kNoError) return;  // what follows from the first
  s.reported_ = type;
  s.message_ = text_of(message);
}

void Session::on_lost(GpuDevice* const*, std::uint32_t reason, Text message, void* self, void*) {
  if (reason == kDestroyed) return;
  auto& s = *static_cast<Session*>(self);
  s.lost = true;
  const std::lock_guard<std::mutex> lock(s.mutex_);
  s.message_ = text_of(message);
}

Error Session::lost_error() const {
  return user_error("device-lost", fmt::format("the WebGPU device '{}' was lost", facts.name)).suggest("load the model again in a new process");
}

Result<void> Session::checked(const char* call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (lost) return lost_error();
  if (reported_ == kNoError) return {};
  const std::string what = fmt::format("{} failed: {}", call, message_);
  const bool memory = reported_ == kOutOfMemory;
  reported_ = kNoError;
  message_.clear();
  if (memory) return user_error("out-of-device-memory", what).suggest("the WebGPU device has too little memory for this model");
  return internal_error(what);
}

Result<void> Session::wait(const std::atomic<std::uint32_t>& done) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::microseconds(200), kNap = std::chrono::microseconds(50);
  const std::int64_t limit = knob_integer(Knob::DeviceSeconds);
  const auto begin = Clock::now();
  for (;;) {
    library.DevicePoll(device, 0, nullptr);
    if (done != 0) return {};
    if (lost) return lost_error();
    const auto waited = Clock::now() - begin;
    if (limit > 0 && waited > std::chrono::seconds(limit)) break;
    if (waited > kSpin) std::this_thread::sleep_for(kNap);
  }
  lost = true;
  return user_error("device-hung", "the WebGPU device does not finish what it was asked")
      .expected("at most " + std::to_string(limit) + " s")
      .suggest("WEFT_DEVICE_SECONDS allows more; a kernel of your own may never end");
}

Result<Buffer*> Session::buffer(std::uint64_t usage, std::uint64_t bytes) {
  if (lost) return lost_error();
  if (bytes > facts.limits.buffer_bytes) {
    return user_error("out-of-device-memory", "a buffer is larger than the WebGPU device allows")
        .expected(fmt::format("at most {} bytes", facts.limits.buffer_bytes))
        .found(fmt::format("{} bytes", bytes));
  }
  BufferDescriptor what;
  what.usage = usage;
  what.size = bytes;
  Buffer* made = library.DeviceCreateBuffer(device, &what);
  if (const auto ok = checked("wgpuDeviceCreateBuffer"); !ok.ok()) {
    if (made != nullptr) library.BufferRelease(made);
    return ok.error();
  }
  return made;
}

}  // namespace weft::target::webgpu
