// Reshape to reverse: every dtype, since elements are moved as they are, packed ones and strings too.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

struct Move {
  Shape from;
  Attrs attrs;
};

Attrs with(Attr key, graph::AttrValue value) { return Attrs().set(key, std::move(value)); }

std::vector<Move> reshapes() {
  return {{{n(), 6}, with(Attr::Shape, Shape{n() * 6})}, {{6, 4}, with(Attr::Shape, Shape{3, 8})},
          {{3, 0, 5}, with(Attr::Shape, Shape{0, 2})}, {{1}, with(Attr::Shape, Shape{})}};
}

std::vector<Move> transposes() {
  return {{{n(), m()}, with(Attr::Axes, Ints{1, 0})}, {{2, 3, 5, 7}, with(Attr::Axes, Ints{3, 1, 0, 2})},
          {{3, 0, 5}, with(Attr::Axes, Ints{2, 0, 1})}, {{33, 65}, with(Attr::Axes, Ints{1, 0})}};
}

Move spread_to(Shape from, Shape to, Ints axes) {
  return {std::move(from), Attrs().set(Attr::Shape, std::move(to)).set(Attr::Axes, std::move(axes))};
}

std::vector<Move> broadcasts() {
  return {spread_to({n(), 1}, {n(), m()}, {0, 1}), spread_to({m()}, {n(), m(), 3}, {1}), spread_to({}, {7, 33}, {}),
          spread_to({1, 5}, {0, 5}, {0, 1}), spread_to({7}, {7, 65}, {0})};
}

Move slice_of(Shape from, Shape starts, Shape sizes, Ints steps) {
  return {std::move(from), Attrs().set(Attr::Starts, std::move(starts)).set(Attr::Sizes, std::move(sizes)).set(Attr::Steps, std::move(steps))};
}

std::vector<Move> slices() {
  return {slice_of({n() + 3, m()}, {n(), 0}, {2, m()}, {1, 1}), slice_of({7, 33}, {1, 2}, {5, 10}, {1, 3}),
          slice_of({7, 33}, {6, 32}, {7, 11}, {-1, -3}), slice_of({7, 33}, {3, 0}, {0, 33}, {1, 1}),
          slice_of({n() * 2, 3}, {0, 1}, {n(), 2}, {2, 1})};
}

std::vector<Move> reversals() {
  return {{{n(), m()}, with(Attr::Axes, Ints{0, 1})}, {{7, 33}, with(Attr::Axes, Ints{1})},
          {{65}, with(Attr::Axes, Ints{0})}, {{3, 0, 5}, with(Attr::Axes, Ints{0, 2})}};
}

void sweep_moves(Op op, const std::vector<Move>& moves, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (DType t : dtypes_of(about.dtypes)) {
    for (std::size_t k = 0; k < moves.size(); ++k) {
      Maker make(about.name, text(t, moves[k].from) + "/" + std::to_string(k));
      const ValueId x = make.input(t, moves[k].from, Draw::Any);
      // Where the result alone has m, the run's m is that of an input that is not used otherwise.
      if (op == Op::Broadcast && is_static(Shape{moves[k].from}) == false) make.input(DType::Bool, {n(), m()});
      make.tolerance(0).done(into, {make.b().node(op, {x}, moves[k].attrs)});
    }
  }
}

void sweep_pad(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (DType t : dtypes_of(about.dtypes)) {
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
      for (const Shape& shape : {Shape{n() + 4, m() + 4}, Shape{5, 7}}) {
        Maker make(about.name, text(t, shape) + "/" + mode);
        const ValueId x = make.input(t, shape, Draw::Any), value = make.input(t, {});
        const Attrs attrs = Attrs().set(Attr::Lo, Shape{1, 2}).set(Attr::Hi, Shape{3, 0}).set(Attr::Mode, std::string(mode));
        make.tolerance(0).done(into, {make.b().node(op, {x, value}, attrs)});
      }
    }
  }
}

void sweep_concat(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  struct Join {
    std::vector<Shape> parts;
    std::int64_t axis;
  };
  const Join joins[] = {{{{n(), m()}, {3, m()}, {n(), m()}}, 0}, {{{7, 5}, {7, 0}, {7, 28}}, 1}, {{{n(), m()}, {n(), 1}}, 1}, {{{5}}, 0}};
  for (DType t : dtypes_of(about.dtypes)) {
    for (const Join& join : joins) {
      Maker make(about.name, text(t, join.parts[0]) + "x" + std::to_string(join.parts.size()) + "/axis=" + std::to_string(join.axis));
      std::vector<ValueId> parts;
      for (const Shape& part : join.parts) parts.push_back(make.input(t, part, Draw::Any));
      make.tolerance(0).done(into, {make.b().node(op, parts, with(Attr::Axis, join.axis))});
    }
  }
}

}  // namespace

void sweep_movement(Op op, Cases& into) {
  switch (op) {
    case Op::Reshape: return sweep_moves(op, reshapes(), into);
    case Op::Transpose: return sweep_moves(op, transposes(), into);
    case Op::Broadcast: return sweep_moves(op, broadcasts(), into);
    case Op::Slice: return sweep_moves(op, slices(), into);
    case Op::Reverse: return sweep_moves(op, reversals(), into);
    case Op::Pad: return sweep_pad(op, into);
    case Op::Concat: return sweep_concat(op, into);
    default: return;  // of another family, or without cases, which a test finds
  }
}

}  // namespace weft::sweep
