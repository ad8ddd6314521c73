#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace weft::cli {

Progress::Progress() : shown_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::say(const std::string& text) {
  if (!shown_) return;
  fmt::print(stderr, "\r{}\033[K", text);
  last_ = std::chrono::steady_clock::now();
}

bool Progress::due() const {
  return shown_ && std::chrono::steady_clock::now() - last_ > std::chrono::milliseconds(200);
}

}  // namespace weft::cli
