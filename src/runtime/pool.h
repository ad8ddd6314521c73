// One thread pool per process. Its size comes from the affinity mask and the cgroup's quota (or WEFT_THREADS). Workers
// start with the first parallel region that asks for them; with one thread none is ever made. Between regions they spin
// briefly, then sleep. After a fork the child starts afresh.
#pragma once

#include <cstdint>
#include <string>

namespace weft::runtime {

struct ThreadCount {
  int threads;
  std::string why;  // "2 (affinity mask: 2, cgroup quota: none)"
};
const ThreadCount& decide_threads();  // once decided, the same for the process
constexpr int kMaxThreads = 256;      // of one parallel region

// Calls body(begin, end, worker) over [0, count) in chunks, on at most `threads` threads, the caller among them; worker
// numbers are below `threads`. Returns when all chunks are done. The body must not throw. Nested and concurrent calls
// run on the calling thread when the pool is busy.
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end, int worker);
void parallel_for(std::int64_t count, int threads, RangeBody body, void* context);

// Counts a run for as long as it exists. With several at once each takes its share of the machine's threads: all of them
// on all threads would only wait for each other.
class ActiveRun {
 public:
  ActiveRun();
  ~ActiveRun();
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;
};
int fair_share(int threads);  // of one run that asks for so many

}  // namespace weft::runtime
