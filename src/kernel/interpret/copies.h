// Copies that run beside their threads: what each thread has asked for and not waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/interpret/queue.h"

namespace weft::kernel {

class CopyQueues {
 public:
  struct Copy {
    int to = 0, from = 0;                      // buffers
    std::int64_t to_index = 0, from_index = 0;
    int elements = 0;
    bool masked = false;                       // zeros are written
  };

  explicit CopyQueues(int threads) : queues_(static_cast<std::size_t>(threads)) {}

  void add(int thread, const Copy& copy) { of(thread).add(copy); }
  void commit(int thread) { of(thread).commit(); }
  std::vector<Copy> finish(int thread, std::int64_t left) { return of(thread).finish(left); }
  int pending() const {  // of all threads
    std::size_t n = 0;
    for (const auto& queue : queues_) n += queue.pending();
    return static_cast<int>(n);
  }

 private:
  WorkQueue<Copy>& of(int thread) { return queues_[static_cast<std::size_t>(thread)]; }
  std::vector<WorkQueue<Copy>> queues_;
};

}  // namespace weft::kernel
