// Logging by component to stderr: WEFT_LOG=fusion,schedule (or "all") names what is printed. Build a message only when
// log_enabled says so.
#pragma once

#include <string>
#include <string_view>

namespace weft {

bool log_enabled(std::string_view component);
void log(std::string_view component, std::string_view message);  // one line, when enabled
void warn(std::string_view message);                             // always: "weft: warning: ..."

}  // namespace weft
