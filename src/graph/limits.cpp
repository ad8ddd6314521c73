#include "graph/limits.h"

namespace weft::graph {

bool fits_memory(const Type& type) {
  std::int64_t count = 1;
  bool fits = true;
  for (const Dim& d : type.shape) {
    if (d.is(0)) return true;
    if (d.is_const()) fits = fits && !__builtin_mul_overflow(count, d.value(), &count);
  }
  const auto bytes = fits ? storage_bytes(type.dtype, count) : std::nullopt;
  return bytes && *bytes >> kAddressBits == 0;
}

}  // namespace weft::graph
