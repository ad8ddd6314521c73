// Unary, binary, select and cast.
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

// Roundings that a function may be off by: one for what is rounded exactly once, some for a polynomial.
double steps_of(DType t) { return t == DType::F32 || t == DType::F64 || is_complex(t) ? 16 : 1; }

}  // namespace

void sweep_unary(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (DType t : dtypes_of(about.dtypes)) {
    for (const Form& form : forms(t)) {
      Maker make(about.name, text(t, form.shape));
      const ValueId x = make.input(t, form.shape, Draw::Any);
      make.tolerance(steps_of(t)).done(into, {make.b().unary(op, x)});
    }
  }
}

void sweep_binary(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (DType t : dtypes_of(about.dtypes)) {
    for (const Form& form : forms(t)) {
      Maker make(about.name, text(t, form.shape));
      const ValueId x = make.input(t, form.shape, Draw::Any), y = make.input(t, form.shape, Draw::Any);
      make.tolerance(steps_of(t)).done(into, {make.b().node(op, {x, y})});
    }
  }
}

void sweep_select(Op op, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (DType t : dtypes_of("biufcs")) {
    for (const Form& form : forms(t)) {
      Maker make(about.name, text(t, form.shape));
      const ValueId cond = make.input(DType::Bool, form.shape, Draw::Any);
      const ValueId x = make.input(t, form.shape, Draw::Any), y = make.input(t, form.shape, Draw::Any);
      make.tolerance(0).done(into, {make.b().node(op, {cond, x, y})});
    }
  }
}

namespace {

bool converts(Op op, DType from, DType to) {
  if (op == Op::Bitcast) return bits(from) == bits(to) && !is_string(to) && !is_complex(to);
  if (is_complex(from)) return is_complex(to);
  return !is_complex(to) || !is_string(from);
}

void sweep_conversion(Op op, DType from, DType to, bool saturate, Cases& into) {
  const graph::OpInfo& about = graph::info(op);
  for (const Shape& shape : {Shape{n()}, Shape{65}}) {
    if (shape[0].is(65) && !(is_common(from) && is_common(to))) continue;
    const std::string how = std::string(name(from)) + "-" + (saturate ? "saturated-" : "") + text(to, shape);
    Maker make(about.name, how);
    const ValueId x = make.input(from, shape, is_string(from) ? Draw::Text : Draw::Any);
    Attrs attrs;
    attrs.set(Attr::DType, to);
    if (op == Op::Cast && saturate) attrs.set(Attr::Saturate, true);
    make.tolerance(0).done(into, {make.b().node(op, {x}, attrs)});
  }
}

}  // namespace

void sweep_cast(Op op, Cases& into) {
  for (DType from : dtypes_of(graph::info(op).dtypes)) {
    for (DType to : dtypes_of("biufcs")) {
      if (!converts(op, from, to)) continue;
      sweep_conversion(op, from, to, false, into);
      if (op == Op::Cast && is_float(to) && bits(to) <= 8) sweep_conversion(op, from, to, true, into);
    }
  }
}

}  // namespace weft::sweep
