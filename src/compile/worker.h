// A thread that works through numbers given to it, one after the other, while others go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weft::compiler {

class Worker {
 public:
  explicit Worker(std::function<void(std::int32_t)> work);
  // What is in work is done, what is not begun is left. The same when the process ends, before what it uses is gone.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add(std::int32_t item);  // from any thread; the thread begins with the first
  void finish();                // returns when nothing is left to do

  struct All;

 private:
  void run();
  void stop();

  const std::function<void(std::int32_t)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::int32_t> items_;
  bool working_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace weft::compiler
