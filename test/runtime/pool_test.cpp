#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

namespace weft::runtime {
namespace {

struct Counted {
  explicit Counted(std::size_t n) : hits(n) {}
  std::vector<std::atomic<int>> hits;
  std::atomic<int> largest_worker{0};
};

void count(void* context, std::int64_t begin, std::int64_t end, int worker) {
  auto* c = static_cast<Counted*>(context);
  for (std::int64_t i = begin; i < end; ++i) c->hits[static_cast<std::size_t>(i)].fetch_add(1);
  int seen = c->largest_worker.load();
  while (worker > seen && !c->largest_worker.compare_exchange_weak(seen, worker)) {
  }
}

// Every index once, and worker numbers below the limit.
bool runs(std::int64_t n, int threads) {
  Counted c(static_cast<std::size_t>(n));
  parallel_for(n, threads, count, &c);
  for (auto& h : c.hits) {
    if (h.load() != 1) return false;
  }
  return c.largest_worker.load() < std::max(threads, 1);
}

int threads_of_process() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) n += entry.exists();
  return n;
}

TEST(Pool, OneThreadMakesNone) {
  // In a process of its own: other tests may have started workers.
  EXPECT_EXIT(
      {
        int before = threads_of_process();
        bool fine = runs(1000, 1) && runs(1, 8) && runs(0, 8);
        _exit(fine && threads_of_process() == before ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Pool, CoversEachIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    for (std::int64_t n : {0, 1, 2, 7, 64, 1000, 12345}) EXPECT_TRUE(runs(n, threads)) << n << " on " << threads;
  }
  EXPECT_TRUE(runs(100, 0));
  EXPECT_TRUE(runs(100, -3));
}

TEST(Pool, LimitsOfThreadsMayChange) {
  for (int k = 0; k < 2000; ++k) ASSERT_TRUE(runs(1 + k % 50, 1 + k % 5)) << k;
}

TEST(Pool, RunsAtOnceShareTheThreads) {
  const int all = decide_threads().threads;
  EXPECT_EQ(fair_share(8), 8);
  ActiveRun one;
  EXPECT_EQ(fair_share(8), 8);
  {
    ActiveRun two;
    EXPECT_EQ(fair_share(8), std::min(8, std::max(1, all / 2)));
    EXPECT_EQ(fair_share(1), 1);
  }
  EXPECT_EQ(fair_share(8), 8);
}

TEST(Pool, CalledFromManyThreads) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      for (int k = 0; k < 300; ++k) wrong += !runs(1 + (k * 7 + t) % 100, 1 + k % 4);
    });
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Pool, NestedCallsRunInPlace) {
  struct Outer {
    std::atomic<int> good{0};
  } outer;
  parallel_for(
      16, 4,
      [](void* context, std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) static_cast<Outer*>(context)->good += runs(40 + i, 4);
      },
      &outer);
  EXPECT_EQ(outer.good.load(), 16);
}

TEST(Pool, WakesAfterSleeping) {
  for (int k = 0; k < 5; ++k) {
    EXPECT_TRUE(runs(1000, 4));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(Pool, WorksInAForkedChild) {
  ASSERT_TRUE(runs(1000, 4));
  pid_t child = fork();
  if (child == 0) _exit(runs(1000, 4) && runs(500, 2) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(runs(1000, 4));
}

TEST(Pool, SaysWhyItHasItsSize) {
  const ThreadCount& decided = decide_threads();
  EXPECT_GE(decided.threads, 1);
  EXPECT_LE(decided.threads, kMaxThreads);
  EXPECT_NE(decided.why.find("affinity mask"), std::string::npos);
  EXPECT_EQ(&decided, &decide_threads());
}

}  // namespace
}  // namespace weft::runtime
