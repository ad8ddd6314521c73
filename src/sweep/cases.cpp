// The list: each op of the table through its family, then the composites.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

using Sweep = void (*)(Op op, Cases& into);

Sweep sweep_of(graph::Family family) {
  switch (family) {
    case graph::Family::Unary: return sweep_unary;
    case graph::Family::Binary: return sweep_binary;
    case graph::Family::Select: return sweep_select;
    case graph::Family::Cast: return sweep_cast;
    case graph::Family::Movement: return sweep_movement;
    case graph::Family::Source: return sweep_source;
    case graph::Family::Gather: return sweep_gather;
    case graph::Family::Scatter: return sweep_scatter;
    case graph::Family::Reduce: return sweep_reduce;
    case graph::Family::Scan: return sweep_scan;
    case graph::Family::Sort: return sweep_sort;
    case graph::Family::Dot: return sweep_dot;
    case graph::Family::Conv: return sweep_conv;
    case graph::Family::Window: return sweep_window;
    case graph::Family::Control: return sweep_control;
    case graph::Family::Host: return sweep_host;
  }
  WEFT_CHECK(false, "a family of ops that is not swept");
}

}  // namespace

std::vector<Case> cases() {
  Cases all;
  for (int i = 0; i < graph::op_count(); ++i) {
    const auto op = static_cast<Op>(i);
    sweep_of(graph::info(op).family)(op, all);
  }
  sweep_composites(all);
  return all;
}

}  // namespace weft::sweep
