// Loads and compiles files that mean harm, in a child process: what crashes, hangs, takes too much memory or is called
// our own fault is a fault by number, and the rest goes on.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weft::hostile {

struct Limits {
  int code_every = 1;             // machine code of every such one that is accepted; 0: of none
  unsigned seconds = 20;          // of processor time, for one file
  bool memory = true;             // hold a refused file to 2 x its size + 64 MiB
};

inline constexpr const char* kError = "]";  // "error[code] ...", "unsupported[code] ..."

struct Judged {
  std::size_t accepted = 0, refused = 0;
  std::vector<std::string> faults;
  std::string text;               // of the last refusal
};

// `bytes(i)` makes the i-th of `count` model files.
Judged judge(std::size_t count, const std::function<std::string(std::size_t)>& bytes, const Limits& limits = {});
inline Judged judge(const std::string& bytes, const Limits& limits = {}) {
  return judge(1, [&](std::size_t) { return bytes; }, limits);
}

std::string slurp(const std::string& path);

}  // namespace weft::hostile
