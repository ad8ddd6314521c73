#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace weft {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline ByteSpan span_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

}  // namespace weft
