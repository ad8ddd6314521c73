#include "graph/infer/infer.h"

#include <fmt/format.h>

#include "graph/limits.h"

namespace weft::graph {
namespace {

Result<Types> infer_family(const InferInput& in) {
  switch (info(in.op).family) {
    case Family::Unary:
    case Family::Binary:
    case Family::Select:
    case Family::Cast:
      return infer_elementwise(in);
    case Family::Movement:
      return infer_movement(in);
    case Family::Source:
      return infer_source(in);
    case Family::Gather:
      return infer_gather(in);
    case Family::Scatter:
      return infer_scatter(in);
    case Family::Reduce:
      return infer_reduce(in);
    case Family::Scan:
      return infer_scan(in);
    case Family::Sort:
      return infer_sort(in);
    case Family::Dot:
      return infer_dot(in);
    case Family::Conv:
      return infer_conv(in);
    case Family::Window:
      return infer_window(in);
    case Family::Control:
      return infer_control(in);
    case Family::Host:
      return infer_host(in);
  }
  return internal_error("an op of no family");
}

// Sizes of operands were looked at when those were made.
bool of_operands(const InferInput& in, const Dim& size) {
  for (const Type& t : in.operands) {
    for (const Dim& d : t.shape) {
      if (d == size) return true;
    }
  }
  return false;
}

bool negative(const InferInput& in, const Dim& size) {
  if (size.is_const()) return size.value() < 0;
  return !of_operands(in, size) && known_negative(in.facts, size);
}

}  // namespace

Result<Types> infer(const InferInput& in) {
  WEFT_TRY(check_schema(in));
  Types types = WEFT_TRY(infer_family(in));
  const int results = info(in.op).results;
  WEFT_CHECK(results < 0 || results == static_cast<int>(types.size()),
             "inference disagrees with the op table");
  for (const Type& t : types) {
    for (const Dim& d : t.shape) {
      if (negative(in, d)) {
        return infer_error(in, "negative-size", "a result would have a negative size")
            .found(str(t));
      }
    }
    if (!fits_memory(t)) {
      return infer_error(in, "size-overflow", "a result would be larger than memory can be").found(str(t));
    }
  }
  return types;
}

}  // namespace weft::graph
