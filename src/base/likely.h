// A size to weigh costs with when it is not known.
#pragma once

#include <algorithm>

#include "base/dim.h"

namespace weft {

constexpr std::int64_t kLikelySize = 64;  // of a symbol

inline double likely_size(const Dim& d) {
  Bindings bindings;
  for (const std::string& s : d.symbols()) bindings[s] = kLikelySize;
  const auto value = d.evaluate(bindings);
  return static_cast<double>(value.ok() ? std::max<std::int64_t>(*value, 0) : kLikelySize);
}

}  // namespace weft
