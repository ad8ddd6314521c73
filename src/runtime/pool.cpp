#include "runtime/pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/knobs.h"

namespace weft::runtime {

namespace {

int affinity_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

// Whole CPUs that the cgroup grants (rounded up), if it limits them at all.
std::optional<int> cgroup_threads() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) {
    return std::max(1, static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period)));
  }
  std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double v1 = 0;
  if (q >> v1 && p >> period && v1 > 0 && period > 0) return std::max(1, static_cast<int>(std::ceil(v1 / period)));
  return std::nullopt;
}

inline void pause() { __builtin_ia32_pause(); }

class Pool {
 public:
  ~Pool() { stop(); }

  void run(std::int64_t count, int threads, RangeBody body, void* context) {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      body(context, 0, count, 0);
      return;
    }
    start(threads - 1);
    body_ = body;
    context_ = context;
    count_ = count;
    chunk_ = std::max<std::int64_t>(1, count / (std::int64_t{threads} * 8));
    next_.store(0, std::memory_order_relaxed);
    running_.store(threads - 1, std::memory_order_relaxed);
    unsigned region = ((epoch_.load(std::memory_order_relaxed) >> kLimitBits) + 1) << kLimitBits;
    epoch_.store(region | static_cast<unsigned>(threads - 1), std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) epoch_.notify_all();
    work(0);
    while (running_.load(std::memory_order_acquire) != 0) pause();
  }


 private:
  static constexpr int kSpins = 4000;
  static constexpr unsigned kLimitBits = 8;

  void start(int wanted) {
    while (static_cast<int>(workers_.size()) < wanted) {
      int number = static_cast<int>(workers_.size()) + 1;
      unsigned seen = epoch_.load();
      workers_.emplace_back([this, number, seen] { loop(number, seen); });
    }
  }

  void stop() {
    stopping_.store(true);
    epoch_.fetch_add(1u << kLimitBits);
    epoch_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  void loop(int number, unsigned seen) {
    while (true) {
      for (int spin = 0; spin < kSpins && epoch_.load(std::memory_order_acquire) == seen; ++spin) pause();
      while (epoch_.load(std::memory_order_acquire) == seen) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        epoch_.wait(seen, std::memory_order_seq_cst);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      }
      seen = epoch_.load(std::memory_order_acquire);
      if (stopping_.load()) return;
      if (number > static_cast<int>(seen & ((1u << kLimitBits) - 1))) continue;
      work(number);
      running_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void work(int number) {
    while (true) {
      std::int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= count_) return;
      body_(context_, begin, std::min(begin + chunk_, count_), number);
    }
  }

  std::mutex mutex_;
  std::vector<std::thread> workers_;
  // Changes with each region: a count above, and below how many workers take part. In one word, so that a worker that
  // is late never joins a region twice.
  std::atomic<unsigned> epoch_{0};
  std::atomic<int> sleepers_{0}, running_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> next_{0};
  std::int64_t count_ = 0, chunk_ = 1;
  RangeBody body_ = nullptr;
  void* context_ = nullptr;
};

Pool* g_pool = nullptr;
std::once_flag g_once;

void after_fork_in_child() {
  // The old pool's mutex and threads belong to the parent: leave it be and start another.
  if (g_pool) g_pool = new Pool;
}

Pool& pool() {
  std::call_once(g_once, [] {
    g_pool = new Pool;
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
  });
  return *g_pool;
}

}  // namespace

ThreadCount decide_threads() {
  static const ThreadCount decided = [] {
    int affinity = affinity_threads();
    std::optional<int> quota = cgroup_threads();
    int threads = quota ? std::min(affinity, *quota) : affinity;
    std::string why = "affinity mask: " + std::to_string(affinity) +
                      ", cgroup quota: " + (quota ? std::to_string(*quota) : "none");
    if (std::int64_t wanted = knob_integer(Knob::Threads); wanted > 0) {
      threads = static_cast<int>(std::min<std::int64_t>(wanted, 256));
      why += ", WEFT_THREADS: " + std::to_string(wanted);
    }
    return ThreadCount{std::min(threads, 256), why};
  }();
  return decided;
}

void parallel_for(std::int64_t count, int threads, RangeBody body, void* context) {
  if (count <= 0) return;
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (threads <= 1) {
    body(context, 0, count, 0);
    return;
  }
  pool().run(count, threads, body, context);
}

}  // namespace weft::runtime
