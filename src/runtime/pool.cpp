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

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// A region is one word: its number, how many workers may take part, whether it is closed, and how many are inside. A worker
// joins by adding itself to the word, which fails once the region is closed or another has begun: so a worker that wakes
// late costs nothing, and never joins a region twice. Never destroyed: workers may sleep in it until the process ends.
class Pool {
 public:
  void run(std::int64_t count, int threads, RangeBody body, void* context) {
    if (busy_.exchange(true, std::memory_order_acquire)) {
      body(context, 0, count, 0);
      return;
    }
    int workers = start(threads - 1);
    body_ = body;
    context_ = context;
    count_ = count;
    chunk_ = std::max<std::int64_t>(1, count / (std::int64_t{workers + 1} * kChunksPerThread));
    next_.store(0, std::memory_order_relaxed);
    std::uint32_t region = region_of(word_.load(std::memory_order_relaxed)) + 1;
    word_.store(std::uint64_t{region} << kRegionShift | static_cast<std::uint64_t>(workers) << kLimitShift);
    epoch_.store(region);
    if (sleepers_.load() > 0) epoch_.notify_all();
    work(0);
    word_.fetch_or(kClosed, std::memory_order_acq_rel);
    for (int spin = 0; (word_.load(std::memory_order_acquire) & kInside) != 0; ++spin) {
      spin < kSpins ? pause() : std::this_thread::yield();
    }
    busy_.store(false, std::memory_order_release);
  }

 private:
  static constexpr int kSpins = 4000;
  static constexpr int kChunksPerThread = 8;
  static constexpr std::uint64_t kInside = 0xffff, kClosed = 1 << 16;
  static constexpr int kLimitShift = 20, kRegionShift = 32;
  static std::uint32_t region_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> kRegionShift); }
  static int limit_of(std::uint64_t word) { return static_cast<int>(word >> kLimitShift & 0xfff); }

  // Returns how many of the wanted workers there are: where the system gives no more threads, fewer will do.
  int start(int wanted) {
    try {
      workers_.reserve(static_cast<std::size_t>(wanted));
      while (static_cast<int>(workers_.size()) < wanted) {
        int number = static_cast<int>(workers_.size()) + 1;
        std::uint32_t seen = region_of(word_.load());
        workers_.emplace_back([this, number, seen] { loop(number, seen); });
      }
    } catch (const std::exception&) {
      return static_cast<int>(workers_.size());
    }
    return wanted;
  }

  void loop(int number, std::uint32_t seen) {
    while (true) {
      for (int spin = 0; spin < kSpins && region_of(word_.load(std::memory_order_relaxed)) == seen; ++spin) pause();
      while (region_of(word_.load()) == seen) {
        sleepers_.fetch_add(1);
        epoch_.wait(seen);
        sleepers_.fetch_sub(1);
      }
      seen = region_of(word_.load(std::memory_order_relaxed));
      if (!join(number, seen)) continue;
      work(number);
      word_.fetch_sub(1, std::memory_order_release);
    }
  }

  bool join(int number, std::uint32_t region) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (region_of(word) == region && (word & kClosed) == 0 && number <= limit_of(word)) {
      if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  void work(int number) {
    while (true) {
      std::int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= count_) return;
      body_(context_, begin, std::min(begin + chunk_, count_), number);
    }
  }

  std::atomic<bool> busy_{false};
  std::vector<std::thread> workers_;
  std::atomic<std::uint64_t> word_{kClosed};
  std::atomic<std::uint32_t> epoch_{0};  // the region's number, to sleep on
  std::atomic<int> sleepers_{0};
  std::atomic<std::int64_t> next_{0};
  std::int64_t count_ = 0, chunk_ = 1;
  RangeBody body_ = nullptr;
  void* context_ = nullptr;
};

std::atomic<int> g_runs{0};

Pool* g_pool = nullptr;
std::once_flag g_once;

void after_fork_in_child() {
  g_runs = 0;
  // The old pool's state and threads belong to the parent: leave it be and start another.
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

const ThreadCount& decide_threads() {
  static const ThreadCount decided = [] {
    int affinity = affinity_threads();
    std::optional<int> quota = cgroup_threads();
    int threads = quota ? std::min(affinity, *quota) : affinity;
    std::string why = "affinity mask: " + std::to_string(affinity) +
                      ", cgroup quota: " + (quota ? std::to_string(*quota) : "none");
    if (std::int64_t wanted = knob_integer(Knob::Threads); wanted > 0) {
      threads = static_cast<int>(std::min<std::int64_t>(wanted, kMaxThreads));
      why += ", WEFT_THREADS: " + std::to_string(wanted);
    }
    return ThreadCount{std::min(threads, kMaxThreads), why};
  }();
  return decided;
}

ActiveRun::ActiveRun() { g_runs.fetch_add(1, std::memory_order_relaxed); }
ActiveRun::~ActiveRun() { g_runs.fetch_sub(1, std::memory_order_relaxed); }

int fair_share(int threads) {
  const int runs = g_runs.load(std::memory_order_relaxed);
  return runs <= 1 ? threads : std::min(threads, std::max(1, decide_threads().threads / runs));
}

void parallel_for(std::int64_t count, int threads, RangeBody body, void* context) {
  if (count <= 0) return;
  threads = static_cast<int>(std::min<std::int64_t>({threads, count, kMaxThreads}));
  if (threads <= 1) {
    body(context, 0, count, 0);
    return;
  }
  pool().run(count, threads, body, context);
}

}  // namespace weft::runtime
