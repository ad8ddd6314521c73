// Launches on their way to the stream: they are kept until something must follow them, and a sequence that comes again is
// captured as a graph, which the driver starts in one call.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "target/cuda/driver.h"

namespace weft::target::cuda {

struct Launch {
  Kernel* kernel = nullptr;
  unsigned grid = 1, threads = 1;
  std::vector<std::uint64_t> values;  // of its parameters, which are of 64 bits alike
  friend bool operator==(const Launch&, const Launch&) = default;
};

// A call of the driver that did not succeed.
struct Failed {
  const char* call = nullptr;  // null: none did
  Status status = kSuccess;
};

// All with the context current. May be called by several threads.
class Launches {
 public:
  Launches(const Driver& driver, Stream* stream) : driver_(driver), stream_(stream) {}

  Failed add(Launch launch);
  Failed flush();
  void forget(std::span<Kernel* const> kernels);  // which are about to be unloaded
  void end();                                     // before the stream is

 private:
  struct Sequence {
    std::vector<Launch> launches;
    GraphExec* graph = nullptr;  // from its second time on
  };

  Failed flush_locked();
  Failed one_by_one(std::vector<Launch>& launches);
  Failed capture(Sequence& sequence);
  void drop(Sequence& sequence);

  const Driver& driver_;
  Stream* stream_;
  std::mutex mutex_;
  std::vector<Launch> waiting_;
  std::list<Sequence> known_;  // the latest first
};

}  // namespace weft::target::cuda
