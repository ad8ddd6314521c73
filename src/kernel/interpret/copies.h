// Copies that run beside their threads: what each thread has asked for and not waited for.
#pragma once

#include <cstdint>
#include <vector>

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

  void add(int thread, const Copy& copy) { of(thread).copies.push_back({copy, of(thread).groups}); }
  void commit(int thread) { ++of(thread).groups; }
  // Those of all but the last `left` groups, in the order of the program; they are done now.
  std::vector<Copy> finish(int thread, std::int64_t left);
  int pending() const;  // of all threads

 private:
  struct Asked {
    Copy copy;
    std::int64_t group = 0;
  };
  struct Queue {
    std::vector<Asked> copies;
    std::int64_t groups = 0;  // that are complete
  };
  Queue& of(int thread) { return queues_[static_cast<std::size_t>(thread)]; }
  std::vector<Queue> queues_;
};

}  // namespace weft::kernel
