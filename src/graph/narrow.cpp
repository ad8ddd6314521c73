#include "graph/narrow.h"

namespace weft::graph {

bool wants_wider(const Node& node, DType t) {
  const bool packed = bits(t) > 0 && bits(t) < 8;
  const bool narrow_float = is_float(t) && bits(t) < 16;
  switch (info(node.op).family) {
    case Family::Reduce:
    case Family::Window:
    case Family::Scan:
    case Family::Dot:
    case Family::Conv:
      return packed;
    case Family::Scatter:
      return packed || (narrow_float && node.attrs.str(Attr::Combine) != "none");
    case Family::Sort:
      return packed || narrow_float;
    default:
      return false;
  }
}

}  // namespace weft::graph
