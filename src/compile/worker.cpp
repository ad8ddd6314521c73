#include "compile/worker.h"

#include <set>
#include <system_error>

namespace weft::compiler {

// Those that live. A thread must not be left in LLVM while the process takes its tables down: when it ends, all stop.
struct Worker::All {
  std::mutex mutex;
  std::set<Worker*> workers;
  bool ending = false;

  static All& instance() {
    static auto* all = new All;  // outlives every worker
    return *all;
  }

  // Made after the first use of what the work uses, so that it ends before.
  static void stop_at_the_end() {
    struct End {
      ~End() {
        All& all = instance();
        std::lock_guard<std::mutex> lock(all.mutex);
        all.ending = true;
        for (Worker* worker : all.workers) worker->stop();
      }
    };
    static End end;
  }
};

Worker::Worker(std::function<void(std::int32_t)> work) : work_(std::move(work)) {
  All& all = All::instance();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.workers.insert(this);
  stopped_ = all.ending;
}

Worker::~Worker() {
  All& all = All::instance();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.workers.erase(this);
  stop();
}

void Worker::add(std::int32_t item) {
  All::stop_at_the_end();
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return;
  items_.push_back(item);
  changed_.notify_all();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    stopped_ = true;  // no thread is to be had
  }
}

void Worker::finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || (items_.empty() && !working_); });
}

void Worker::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !items_.empty(); });
    if (stopped_) return;
    const std::int32_t item = items_.front();
    items_.pop_front();
    working_ = true;
    lock.unlock();
    work_(item);
    lock.lock();
    working_ = false;
    changed_.notify_all();
  }
}

void Worker::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace weft::compiler
