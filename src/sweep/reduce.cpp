// Reductions, running reductions, sorts.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

bool multiplies(Op op) { return op == Op::ReduceProd || op == Op::CumProd; }
bool orders(Op op) {
  switch (op) {
    case Op::ReduceSum: case Op::ReduceProd: case Op::CumSum: case Op::CumProd: return false;
    default: return true;
  }
}

// What sums of up to a few hundred tame terms may be off by.
double slack(Op op, DType t) {
  if (orders(op) || !(is_float(t) || is_complex(t))) return 0;
  return 400 * eps(t == DType::F64 || t == DType::C128 ? DType::F64 : DType::F32);
}

double roundings(Op op, DType t) { return orders(op) ? 0 : t == DType::F32 || t == DType::F64 || is_complex(t) ? 256 : 1; }

struct Along {
  Shape shape;
  Ints axes;
};

const std::vector<Along>& reductions(DType t) {
  static const std::vector<Along> all{{{n(), m()}, {1}}, {{n(), m()}, {0}}, {{7, 33}, {1}}, {{7, 33}, {0}}, {{7, 33}, {0, 1}},
                                      {{3, 0, 5}, {1}}, {{2, 300}, {1}}, {{5, 4, 3}, {0, 2}}, {{}, {}}, {{1}, {0}}, {{64, 65}, {0}}};
  static const std::vector<Along> some{{{n(), m()}, {1}}, {{7, 33}, {0}}};
  return is_common(t) ? all : some;
}

std::string listed(const Ints& axes) { return text(Shape(axes.begin(), axes.end())); }

void sweep_plain_reduce(Op op, DType t, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (const Along& along : reductions(t)) {
    for (const bool special : {false, true}) {
      if (special && !(is_float(t) && is_common(t))) continue;
      Maker make(about.name, text(t, along.shape) + "/axes=" + listed(along.axes) + (special ? "/special" : ""));
      const ValueId x = make.input(t, along.shape, special ? Draw::Special : multiplies(op) ? Draw::NearOne : Draw::Tame);
      make.tolerance(roundings(op, t), slack(op, t)).done(into, {make.b().node(op, {x}, Attrs().set(Attr::Axes, along.axes))});
    }
  }
}

void sweep_arg_reduce(Op op, DType t, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  const Along alongs[] = {{{n(), m() + 1}, {1}}, {{n() + 1, m()}, {0}}, {{7, 33}, {1}}, {{2, 300}, {1}}, {{0, 5}, {1}}};
  for (const Along& along : alongs) {
    for (const bool last : {false, true}) {
      Maker make(about.name, text(t, along.shape) + "/axis=" + std::to_string(along.axes[0]) + (last ? "/last" : ""));
      const ValueId x = make.input(t, along.shape, Draw::Special);
      const Attrs attrs = Attrs().set(Attr::Axis, along.axes[0]).set(Attr::Last, last);
      make.tolerance(0).done(into, {make.b().node(op, {x}, attrs)});
    }
  }
}

}  // namespace

void sweep_reduce(Op op, Cases& into) {
  for (DType t : dtypes_of(graph::info(op).dtypes)) {
    op == Op::ArgMax || op == Op::ArgMin ? sweep_arg_reduce(op, t, into) : sweep_plain_reduce(op, t, into);
  }
}

void sweep_scan(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  const Along alongs[] = {{{n(), m()}, {1}}, {{n(), m()}, {0}}, {{7, 33}, {1}}, {{2, 300}, {1}}, {{3, 0, 5}, {1}}};
  for (DType t : dtypes_of(about.dtypes)) {
    for (const Along& along : alongs) {
      for (int how = 0; how < 4; ++how) {
        if (how > 1 && !is_common(t)) continue;
        const bool exclusive = (how & 1) != 0, reverse = (how & 2) != 0;
        Maker make(about.name, text(t, along.shape) + "/axis=" + std::to_string(along.axes[0]) + (exclusive ? "/exclusive" : "") +
                                   (reverse ? "/reverse" : ""));
        const ValueId x = make.input(t, along.shape, multiplies(op) ? Draw::NearOne : orders(op) ? Draw::Special : Draw::Tame);
        const Attrs attrs = Attrs().set(Attr::Axis, along.axes[0]).set(Attr::Exclusive, exclusive).set(Attr::Reverse, reverse);
        make.tolerance(roundings(op, t), slack(op, t)).done(into, {make.b().node(op, {x}, attrs)});
      }
    }
  }
}

void sweep_sort(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  const Along alongs[] = {{{n(), m() + 3}, {1}}, {{n() + 3, m()}, {0}}, {{7, 33}, {1}}, {{2, 300}, {1}}, {{3, 0, 5}, {2}}};
  for (DType t : dtypes_of(about.dtypes)) {
    for (const Along& along : alongs) {
      for (const bool descending : {false, true}) {
        Maker make(about.name, text(t, along.shape) + "/axis=" + std::to_string(along.axes[0]) + (descending ? "/descending" : ""));
        const ValueId x = make.input(t, along.shape, Draw::Special);
        Attrs attrs = Attrs().set(Attr::Axis, along.axes[0]).set(Attr::Descending, descending);
        if (op == Op::TopK) attrs.set(Attr::K, Shape{3});
        make.tolerance(0).done(into, make.b().nodes(op, {x}, attrs));
      }
    }
  }
}

}  // namespace weft::sweep
