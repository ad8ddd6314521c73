// What takes long says so on stderr, on one line that is wiped in the end; only when stderr is a terminal.
#pragma once

#include <chrono>
#include <string>

namespace weft::cli {

class Progress {
 public:
  Progress();
  explicit Progress(const std::string& stage) : Progress() { say(stage); }
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& text);
  bool due() const;  // time to say the next number

 private:
  const bool shown_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace weft::cli
