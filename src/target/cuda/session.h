// A context and its stream, held by the device and by all that was made on it; ended with the last of them.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "target/cuda/device.h"
#include "target/cuda/launches.h"

namespace weft::target::cuda {

struct Device::Session {
  static Result<std::shared_ptr<Session>> begin(DeviceNumber number);
  ~Session();

  // Makes the context the thread's own while it lives, and gives back what was.
  class Current {
   public:
    explicit Current(const Session& s) : driver_(s.driver) { driver_.CtxPushCurrent(s.context); }
    ~Current() {
      Context* mine = nullptr;
      driver_.CtxPopCurrent(&mine);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
  };

  // What a call came to. A device that is lost stays so.
  Result<void> checked(const char* call, Status status);
  Error lost_error() const;
  // What was asked for before goes to the stream.
  Result<void> begin_waiting();
  // For all that was asked for; not longer than WEFT_DEVICE_SECONDS.
  Result<void> wait();

  // A block of at least so many bytes, one that was given back or a new one.
  Result<Address> take(std::int64_t bytes);
  void give_back(Address block, std::int64_t bytes);
  void free_unused();

  const Driver& driver;
  DeviceNumber number = 0;
  Context* context = nullptr;
  Stream* stream = nullptr;
  std::optional<Launches> launches;  // there once the stream is
  std::atomic<bool> lost = false;

 private:
  explicit Session(const Driver& d) : driver(d) {}
  std::mutex mutex_;                               // of `unused_`
  std::map<std::int64_t, std::vector<Address>> unused_;  // by size
};

}  // namespace weft::target::cuda
