// Work in child processes, several at once: a crash, a hang or endless memory there is a result like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace weft::cli {

struct Limits {
  int seconds = 60;                        // then the child and all it started are killed
  std::int64_t memory = std::int64_t{8} << 30;  // address space; 0: no limit
};

struct Outcome {
  bool finished = false;  // the work ended by itself; `text` is what it returned
  std::string text;       // otherwise: why not ("killed by SIGSEGV", "no result after 60 s")
  double seconds = 0;
};

// Runs work(i) for i in [0, count), each in a child of its own, at most `jobs` at a time; done(i, outcome) is called
// here as each ends. The caller must have no other threads.
void run_isolated(int count, int jobs, const Limits& limits, const std::function<std::string(int)>& work,
                  const std::function<void(int, const Outcome&)>& done);

}  // namespace weft::cli
