// Constants, counters, sizes as values, random bits. What none of these takes gives the run its sizes: an input that is
// not used otherwise.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

void sweep_constant(Op op, Cases& into) {
  for (DType t : dtypes_of("biufcs")) {
    for (const Ints& shape : {Ints{7, 33}, Ints{3, 0}, Ints{}}) {
      Case of;  // the tensor is drawn as an input would be
      of.name = std::string("constant ") + name(t);
      of.graph.add_input({t, Shape(shape.begin(), shape.end())});
      of.inputs = {{Draw::Any, 1}};
      Maker make(graph::info(op).name, text(t, Shape(shape.begin(), shape.end())));
      make.tolerance(0).done(into, {make.b().constant(inputs_of(of, {}).value()[0])});
    }
  }
}

void sweep_iota(Op op, Cases& into) {
  for (DType t : dtypes_of("iuf")) {
    for (const std::int64_t axis : {0, 1}) {
      for (const Shape& shape : {Shape{n(), m()}, Shape{7, 33}}) {
        Maker make(graph::info(op).name, text(t, shape) + "/axis=" + std::to_string(axis));
        make.input(DType::Bool, shape);
        make.tolerance(0).done(into, {make.b().iota(t, shape, axis)});
      }
    }
  }
}

void sweep_shape_value(Op op, Cases& into) {
  Maker make(graph::info(op).name, "[n,m*2+n,7]");
  make.input(DType::Bool, {n(), m()});
  make.done(into, {make.b().node(op, {}, Attrs().set(Attr::Shape, Shape{n(), m() * 2 + n(), 7}))});
}

void sweep_bind(Op op, Cases& into) {
  for (DType t : dtypes_of(graph::info(op).dtypes)) {
    if (bits(t) < 8) continue;
    for (const Shape& shape : {Shape{}, Shape{1}}) {
      Maker make(graph::info(op).name, text(t, shape));
      const ValueId k = make.input(t, shape, Draw::Count, 70);
      make.b().nodes(op, {k}, Attrs().set(Attr::Shape, Shape{Dim::symbol("k")}));
      make.done(into, {make.b().iota(DType::I32, {Dim::symbol("k"), 2}, 0)});
    }
  }
}

void sweep_random_bits(Op op, Cases& into) {
  for (DType t : {DType::U32, DType::U64}) {
    for (const Shape& shape : {Shape{n(), m()}, Shape{7, 33}, Shape{}, Shape{0, 5}}) {
      Maker make(graph::info(op).name, text(t, shape));
      const ValueId key = make.input(DType::U64, {2}, Draw::Any);
      make.input(DType::Bool, shape);
      make.done(into, {make.b().node(op, {key}, Attrs().set(Attr::DType, t).set(Attr::Shape, shape))});
    }
  }
}

}  // namespace

void sweep_source(Op op, Cases& into) {
  switch (op) {
    case Op::Constant: return sweep_constant(op, into);
    case Op::Iota: return sweep_iota(op, into);
    case Op::ShapeValue: return sweep_shape_value(op, into);
    case Op::Bind: return sweep_bind(op, into);
    case Op::RandomBits: return sweep_random_bits(op, into);
    default: return;
  }
}

}  // namespace weft::sweep
