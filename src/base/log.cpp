#include "base/log.h"

#include <cstdio>

#include "base/knobs.h"

namespace weft {
namespace {

// One write per line, so that lines of several threads stay whole.
void write_line(std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

bool log_enabled(std::string_view component) {
  const std::string& names = knob_text(Knob::Log);
  return !names.empty() && (list_contains(names, component) || list_contains(names, "all"));
}

void log(std::string_view component, std::string_view message) {
  if (!log_enabled(component)) return;
  write_line("weft[" + std::string(component) + "]: " + std::string(message));
}

void warn(std::string_view message) { write_line("weft: warning: " + std::string(message)); }

}  // namespace weft
