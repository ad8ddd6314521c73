#include "target/cuda/session.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/knobs.h"

namespace weft::target::cuda {
namespace {

// Sizes come in steps, so that blocks fit again.
std::int64_t block_size(std::int64_t bytes) {
  constexpr std::int64_t kSmallStep = 512, kLarge = 1 << 20, kLargeStep = 2 << 20;
  const std::int64_t step = bytes <= kLarge ? kSmallStep : kLargeStep;
  return (std::max<std::int64_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

Result<std::shared_ptr<Device::Session>> Device::Session::begin(DeviceNumber number) {
  const Driver& d = *WEFT_TRY(cuda::driver());
  std::shared_ptr<Session> session(new Session(d));
  session->number = number;
  WEFT_TRY(session->checked("cuDevicePrimaryCtxRetain", d.DevicePrimaryCtxRetain(&session->context, number)));
  const Current current(*session);
  constexpr unsigned kNonBlocking = 1;  // the default stream of others does not hold it up
  WEFT_TRY(session->checked("cuStreamCreate", d.StreamCreate(&session->stream, kNonBlocking)));
  session->launches.emplace(d, session->stream);
  return session;
}

Device::Session::~Session() {
  if (context == nullptr) return;
  if (!lost) {  // a hung device would make each of these wait
    const Current current(*this);
    free_unused();
    if (launches) launches->end();
    if (stream != nullptr) driver.StreamDestroy(stream);
  }
  driver.DevicePrimaryCtxRelease(number);
}

Error Device::Session::lost_error() const {
  return user_error("device-lost", "the GPU was lost in an earlier call").suggest("load the model again in a new process");
}

Result<void> Device::Session::checked(const char* call, Status status) {
  if (status == kSuccess) return {};
  if (loses_device(status)) lost = true;
  return driver_error(driver, call, status);
}

Result<void> Device::Session::begin_waiting() {
  const Failed failed = launches->flush();
  return failed.call == nullptr ? Result<void>() : checked(failed.call, failed.status);
}

Result<void> Device::Session::wait() {
  WEFT_TRY(begin_waiting());
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::microseconds(200), kNap = std::chrono::microseconds(50);
  const std::int64_t limit = knob_integer(Knob::DeviceSeconds);
  const auto begin = Clock::now();
  for (;;) {
    if (lost) return lost_error();
    const Status status = driver.StreamQuery(stream);
    if (status != kNotReady) return checked("cuStreamQuery", status);
    const auto waited = Clock::now() - begin;
    if (limit > 0 && waited > std::chrono::seconds(limit)) break;
    if (waited > kSpin) std::this_thread::sleep_for(kNap);
  }
  lost = true;
  return user_error("device-hung", "the GPU does not finish what it was asked")
      .expected("at most " + std::to_string(limit) + " s")
      .suggest("WEFT_DEVICE_SECONDS allows more; a kernel of your own may never end");
}

Result<Address> Device::Session::take(std::int64_t bytes) {
  if (lost) return lost_error();
  const std::int64_t size = block_size(bytes);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = unused_.find(size); found != unused_.end() && !found->second.empty()) {
      const Address block = found->second.back();
      found->second.pop_back();
      return block;
    }
  }
  Address block = 0;
  Status status = driver.MemAlloc(&block, static_cast<std::size_t>(size));
  if (status == kOutOfMemory) {
    WEFT_TRY(wait());  // for what may still use the blocks
    free_unused();
    status = driver.MemAlloc(&block, static_cast<std::size_t>(size));
  }
  WEFT_TRY(checked("cuMemAlloc", status));
  return block;
}

// Work that still uses the block comes before any that the next owner asks for: there is one stream.
void Device::Session::give_back(Address block, std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  unused_[block_size(bytes)].push_back(block);
}

void Device::Session::free_unused() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [size, blocks] : unused_) {
    for (Address block : blocks) driver.MemFree(block);
  }
  unused_.clear();
}

}  // namespace weft::target::cuda
