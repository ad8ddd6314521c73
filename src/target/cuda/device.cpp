#include "target/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "target/cuda/session.h"

namespace weft::target::cuda {
namespace {

using runtime::DeviceSpan;
using Session = Device::Session;

struct Memory final : runtime::DeviceMemory {
  Memory(std::shared_ptr<Session> s, Address a, std::int64_t n) : session(std::move(s)), address(a), bytes(n) {}
  ~Memory() override { session->give_back(address, bytes); }
  std::shared_ptr<Session> session;
  Address address;
  std::int64_t bytes;
};

struct Code final : runtime::DeviceCode {
  explicit Code(std::shared_ptr<Session> s) : session(std::move(s)) {}
  ~Code() override {
    if (module == nullptr || session->lost) return;
    const Session::Current current(*session);
    session->launches->forget(kernels);
    session->driver.ModuleUnload(module);
  }
  std::shared_ptr<Session> session;
  Module* module = nullptr;
  std::vector<Kernel*> kernels;
  std::vector<unsigned> threads;  // by kernel
};

Address address_of(DeviceSpan span) {
  return static_cast<Memory*>(span.memory)->address + static_cast<Address>(span.offset);
}

int attribute(const Driver& driver, Attribute what, DeviceNumber device) {
  int value = 0;
  return driver.DeviceGetAttribute(&value, what, device) == kSuccess ? value : 0;
}

Facts facts_of(const Driver& driver, DeviceNumber device) {
  Facts facts;
  char name[256] = "";
  driver.DeviceGetName(name, sizeof name, device);
  facts.name = name;
  facts.major = attribute(driver, kComputeMajor, device);
  facts.minor = attribute(driver, kComputeMinor, device);
  facts.multiprocessors = std::max(1, attribute(driver, kMultiprocessors, device));
  facts.l2_bytes = attribute(driver, kL2Bytes, device);
  facts.ghz = attribute(driver, kClockKilohertz, device) * 1e-6;
  constexpr double kTransfersAClock = 2, kBitsAByte = 8;
  facts.memory_gbytes = attribute(driver, kMemoryClockKilohertz, device) * 1e-6 * kTransfersAClock *
                        attribute(driver, kMemoryBusBits, device) / kBitsAByte;
  return facts;
}

Result<std::vector<DeviceNumber>> numbers(const Driver& driver) {
  int count = 0;
  if (const Status status = driver.DeviceGetCount(&count); status != kSuccess) return driver_error(driver, "cuDeviceGetCount", status);
  std::vector<DeviceNumber> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const Status status = driver.DeviceGet(&all[static_cast<std::size_t>(i)], i);
    if (status != kSuccess) return driver_error(driver, "cuDeviceGet", status);
  }
  return all;
}

}  // namespace

Result<std::vector<Facts>> devices() {
  const Driver& d = *WEFT_TRY(driver());
  std::vector<Facts> all;
  for (DeviceNumber number : WEFT_TRY(numbers(d))) all.push_back(facts_of(d, number));
  return all;
}

Result<std::shared_ptr<Device>> Device::open(int number) {
  const Driver& d = *WEFT_TRY(driver());
  const std::vector<DeviceNumber> all = WEFT_TRY(numbers(d));
  if (number >= static_cast<int>(all.size())) {
    return user_error("no-device", "there is no such NVIDIA GPU")
        .expected(fmt::format("one of {}", all.size()))
        .found(fmt::format("cuda:{}", number))
        .suggest("'weft doctor' lists them");
  }
  const DeviceNumber device = all[static_cast<std::size_t>(number)];
  return std::shared_ptr<Device>(new Device(facts_of(d, device), WEFT_TRY(Session::begin(device))));
}

Result<std::unique_ptr<runtime::DeviceMemory>> Device::allocate(std::int64_t bytes) {
  const Session::Current current(*session_);
  const Address address = WEFT_TRY(session_->take(bytes));
  return std::unique_ptr<runtime::DeviceMemory>(std::make_unique<Memory>(session_, address, bytes));
}

// The copy is waited for: memory that a caller pinned would be read after this returns.
Result<void> Device::upload(DeviceSpan to, const void* from, std::int64_t bytes) {
  if (session_->lost) return session_->lost_error();
  if (bytes == 0) return {};
  const Session::Current current(*session_);
  const Driver& d = session_->driver;
  WEFT_TRY(session_->begin_waiting());
  WEFT_TRY(session_->checked("cuMemcpyHtoDAsync", d.MemcpyHtoDAsync(address_of(to), from, static_cast<std::size_t>(bytes), session_->stream)));
  return session_->wait();
}

Result<void> Device::download(void* to, DeviceSpan from, std::int64_t bytes) {
  if (session_->lost) return session_->lost_error();
  if (bytes == 0) return {};
  const Session::Current current(*session_);
  const Driver& d = session_->driver;
  WEFT_TRY(session_->wait());  // a copy to memory that is not pinned would itself wait, and longer than is allowed
  WEFT_TRY(session_->checked("cuMemcpyDtoHAsync", d.MemcpyDtoHAsync(to, address_of(from), static_cast<std::size_t>(bytes), session_->stream)));
  return session_->wait();
}

// Parameters as codegen::ptx states them: the address of each buffer, the sizes, the address of the status word.
Result<void> Device::launch(const runtime::DeviceLaunch& launch) {
  if (session_->lost) return session_->lost_error();
  constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();
  if (launch.grid > kMostBlocks) {
    return user_error("grid-too-large", "a kernel has more programs than a GPU starts at once")
        .expected(fmt::format("at most {}", kMostBlocks))
        .found(fmt::format("{}", launch.grid));
  }
  const auto& code = static_cast<const Code&>(*launch.code);
  const auto number = static_cast<std::size_t>(launch.kernel);
  Launch what{code.kernels[number], static_cast<unsigned>(launch.grid), code.threads[number], {}};
  for (DeviceSpan span : launch.buffers) what.values.push_back(address_of(span));
  for (std::int64_t n : launch.sizes) what.values.push_back(static_cast<std::uint64_t>(n));
  what.values.push_back(address_of(launch.status));
  const Session::Current current(*session_);
  const Failed failed = session_->launches->add(std::move(what));
  return failed.call == nullptr ? Result<void>() : session_->checked(failed.call, failed.status);
}

Result<void> Device::finish() {
  const Session::Current current(*session_);
  return session_->wait();
}

Result<std::shared_ptr<const runtime::DeviceCode>> Device::build(const std::string& ptx, const std::vector<Entry>& entries) {
  if (session_->lost) return session_->lost_error();
  const Session::Current current(*session_);
  const Driver& d = session_->driver;
  auto code = std::make_shared<Code>(session_);
  char log[4096] = "";
  JitOption options[] = {kErrorLog, kErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const Status status = d.ModuleLoadDataEx(&code->module, ptx.c_str(), 2, reinterpret_cast<int*>(options), values);
  if (status == kInvalidPtx) {
    return internal_error(fmt::format("the driver of '{}' refuses generated code:\n{}", facts_.name, log));
  }
  WEFT_TRY(session_->checked("cuModuleLoadDataEx", status));
  for (const auto& [name, threads] : entries) {
    Kernel* kernel = nullptr;
    WEFT_TRY(session_->checked("cuModuleGetFunction", d.ModuleGetFunction(&kernel, code->module, name.c_str())));
    code->kernels.push_back(kernel);
    code->threads.push_back(static_cast<unsigned>(threads));
  }
  return std::shared_ptr<const runtime::DeviceCode>(std::move(code));
}

}  // namespace weft::target::cuda
