// What a node becomes, by itself: part of other kernels, a kernel of some kind, a step of the host; what it costs.
#include "graph/narrow.h"
#include "loop/lower/fuse.h"
#include "loop/lower/narrow.h"

namespace weft::loop {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// What kernels load, store and compute with. Nodes on anything else run on the host.
bool is_kernel_dtype(DType t) { return !is_string(t); }

// Ops that combine complex numbers have no kernels: they run on the host.
bool combines(const Node& node) {
  const graph::Family family = info(node.op).family;
  return family == graph::Family::Reduce || family == graph::Family::Scan || family == graph::Family::Scatter;
}

constexpr int kNarrowFloat = 20;  // to round to a float of at most 8 bits

int op_cost(GOp op) {
  switch (info(op).family) {
    case graph::Family::Unary:
      switch (op) {
        case GOp::Abs: case GOp::Neg: case GOp::Not: case GOp::Ceil: case GOp::Floor: case GOp::Round:
        case GOp::Trunc: case GOp::IsNan: case GOp::IsInf:
          return 1;
        case GOp::Sqrt: case GOp::Rsqrt: case GOp::Reciprocal: case GOp::Sign:
          return 3;
        default:
          return 10;
      }
    case graph::Family::Binary:
      return op == GOp::Pow || op == GOp::Atan2 ? 20 : op == GOp::Div ? 3 : 1;
    case graph::Family::Select:
    case graph::Family::Cast:
      return 1;
    case graph::Family::Gather:
      return 4;
    case graph::Family::Source:
      return op == GOp::RandomBits ? 60 : 0;
    default:
      return 0;
  }
}

}  // namespace

int scalar_cost(const Graph& g, const Node& node) {
  const DType t = g.type(node.results[0]).dtype;
  const bool rounds = is_narrow(t) && is_float(t) && info(node.op).elementwise && node.op != GOp::Select;
  return op_cost(node.op) + (rounds ? kNarrowFloat : 0);
}

bool is_look_up(const Graph& g, const Node& node) {
  constexpr std::int64_t kBytes = 256;
  if (node.op != GOp::Gather || node.attrs.integer(Attr::Axis) != 0 || g.type(node.operands[1]).dtype != DType::U8) return false;
  const Dim& among = g.type(node.operands[0]).shape[0];
  return among.is_const() && among.value() >= kBytes;
}

Part part_of(const Graph& g, const Node& node) {
  if (node.op == GOp::Constant) return Part::Constant;
  for (ValueId v : node.operands) {
    if (!is_kernel_dtype(g.type(v).dtype)) return Part::Step;
  }
  for (ValueId v : node.results) {
    if (!is_kernel_dtype(g.type(v).dtype)) return Part::Step;
  }
  if (!node.results.empty() && is_complex(g.type(node.results[0]).dtype) && combines(node)) return Part::Step;
  if (!node.results.empty() && graph::wants_wider(node, g.type(node.results[0]).dtype)) return Part::Step;
  switch (info(node.op).family) {
    case graph::Family::Unary:
    case graph::Family::Binary:
    case graph::Family::Select:
    case graph::Family::Cast:
    case graph::Family::Movement:
    case graph::Family::Gather:
      return Part::Inline;
    case graph::Family::Source:
      return node.op == GOp::Bind ? Part::Step : Part::Inline;
    case graph::Family::Dot:
    case graph::Family::Conv:
      return Part::Contraction;
    case graph::Family::Window:
      return node.op == GOp::WindowArgMax ? Part::Alone : Part::Contraction;
    case graph::Family::Reduce:
      return node.op == GOp::ArgMax || node.op == GOp::ArgMin ? Part::Alone : Part::Reduction;
    case graph::Family::Scan:
    case graph::Family::Scatter:
    case graph::Family::Sort:
      return Part::Alone;
    case graph::Family::Control:
    case graph::Family::Host:
      return Part::Step;
  }
  return Part::Step;
}

}  // namespace weft::loop
