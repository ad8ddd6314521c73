// Branches, loops, scans and named regions, and what runs on the host.
#include <cstring>
#include <memory>

#include "ops/composite.h"
#include "runtime/custom.h"
#include "sweep/maker.h"

namespace weft::sweep {
namespace {

using Region = std::shared_ptr<graph::Graph>;

// A region over inputs of these types that `build` fills.
template <class Build>
Region region_of(const Maker& make, const std::vector<graph::Type>& types, Build build) {
  auto region = std::make_shared<graph::Graph>();
  region->name = "body";
  region->facts = make.facts();
  std::vector<ValueId> inputs;
  for (const graph::Type& t : types) inputs.push_back(region->add_input(t));
  graph::Builder b(*region);
  region->set_outputs(build(b, inputs));
  WEFT_CHECK(b.status().ok(), b.status().error().what());
  return region;
}

const std::vector<Shape>& control_shapes() {
  static const std::vector<Shape> shapes{{n(), m()}, {7, 33}, {}};
  return shapes;
}

void sweep_if(Op op, DType t, const Shape& shape, Cases& into) {
  Maker make(graph::info(op).name, text(t, shape));
  const ValueId cond = make.input(DType::Bool, {}, Draw::Any), x = make.input(t, shape), y = make.input(t, shape);
  const std::vector<graph::Type> types{{t, shape}, {t, shape}};
  const Region then = region_of(make, types, [](graph::Builder& b, const std::vector<ValueId>& in) {
    return std::vector<ValueId>{b.binary(Op::Max, in[0], in[1])};
  });
  const Region other = region_of(make, types, [](graph::Builder&, const std::vector<ValueId>& in) { return std::vector<ValueId>{in[1]}; });
  make.tolerance(0).done(into, make.b().nodes(op, {cond, x, y}, {}, {then, other}));
}

// Carries the running maximum, stacks what it was after each round.
void sweep_loop(Op op, DType t, const Shape& shape, Cases& into) {
  Maker make(graph::info(op).name, text(t, shape));
  const ValueId trips = make.input(DType::I64, {}, Draw::Count, 5), cond = make.input(DType::Bool, {}, Draw::Any);
  const ValueId x = make.input(t, shape), y = make.input(t, shape);
  const Region body = region_of(make, {{DType::I64, {}}, {DType::Bool, {}}, {t, shape}, {t, shape}},
                                [](graph::Builder& b, const std::vector<ValueId>& in) {
                                  const ValueId next = b.binary(Op::Max, in[2], in[3]);
                                  return std::vector<ValueId>{in[1], next, next};
                                });
  const Attrs attrs = Attrs().set(Attr::Carried, graph::AttrValue(std::int64_t{1})).set(Attr::Symbol, Shape{Dim::symbol("rounds")});
  make.tolerance(0).done(into, make.b().nodes(op, {trips, cond, x, y}, attrs, {body}));
}

void sweep_scan_region(Op op, DType t, const Shape& shape, Cases& into) {
  Maker make(graph::info(op).name, text(t, shape));
  Shape xs{5};
  xs.insert(xs.end(), shape.begin(), shape.end());
  const ValueId carried = make.input(t, shape), x = make.input(t, xs);
  const Region body = region_of(make, {{t, shape}, {t, shape}}, [](graph::Builder& b, const std::vector<ValueId>& in) {
    const ValueId next = b.binary(Op::Min, in[0], in[1]);
    return std::vector<ValueId>{next, next};
  });
  const Attrs attrs = Attrs().set(Attr::Carried, graph::AttrValue(std::int64_t{1})).set(Attr::Xs, graph::AttrValue(std::int64_t{1}));
  make.tolerance(0).done(into, make.b().nodes(op, {carried, x}, attrs, {body}));
}

void sweep_composite(Op op, DType t, const Shape& shape, Cases& into) {
  Maker make(graph::info(op).name, text(t, shape));
  const ValueId x = make.input(t, shape), y = make.input(t, shape);
  make.tolerance(0).done(into, {ops::composite1(make.b(), "larger", {x, y}, [](graph::Builder& b, const std::vector<ValueId>& in) {
    return b.binary(Op::Max, in[0], in[1]);
  })});
}

// A kernel of the user's own, which gives what it is given.
void register_copy() {
  runtime::CustomOp copy;
  copy.name = "sweep.copy";
  copy.infer = [](const std::vector<runtime::CustomOp::Type>& operands) { return operands; };
  copy.run = [](const std::vector<Tensor>& operands, std::vector<Tensor>& results) -> Result<void> {
    if (operands[0].byte_size() > 0) std::memcpy(results[0].mutable_data(), operands[0].data(), operands[0].byte_size());
    return {};
  };
  if (!runtime::find_custom_op(copy.name)) runtime::register_custom_op(std::move(copy)).value();
}

void sweep_custom_call(Op op, DType t, const Shape& shape, Cases& into) {
  register_copy();
  Maker make(graph::info(op).name, text(t, shape));
  const ValueId x = make.input(t, shape);
  const Attrs attrs = Attrs().set(Attr::Name, std::string("sweep.copy")).set(Attr::Types, str(graph::Type{t, shape}));
  make.tolerance(0).done(into, make.b().nodes(op, {x}, attrs));
}

}  // namespace

void sweep_control(Op op, Cases& into) {
  for (DType t : dtypes_of("biuf")) {
    for (const Shape& shape : control_shapes()) {
      if (!is_common(t) && !is_static(shape)) continue;
      switch (op) {
        case Op::If: sweep_if(op, t, shape, into); break;
        case Op::Loop: sweep_loop(op, t, shape, into); break;
        case Op::Scan: sweep_scan_region(op, t, shape, into); break;
        case Op::Composite: sweep_composite(op, t, shape, into); break;
        case Op::CustomCall: sweep_custom_call(op, t, shape, into); break;
        default: break;
      }
    }
  }
}

namespace {

Attrs counted() { return Attrs().set(Attr::Symbol, Shape{Dim::symbol("count")}); }

void sweep_unique(Op op, DType t, const Shape& shape, Cases& into) {
  for (const bool sorted : {false, true}) {
    for (const std::int64_t axis : {-1, 0}) {
      Maker make(graph::info(op).name, text(t, shape) + (sorted ? "/sorted" : "") + (axis < 0 ? "" : "/axis=0"));
      const ValueId x = make.input(t, shape);
      Attrs attrs = counted().set(Attr::Sorted, sorted);
      if (axis >= 0) attrs.set(Attr::Axis, axis);
      make.done(into, make.b().nodes(op, {x}, attrs));
    }
  }
}

void sweep_suppression(Op op, DType t, Cases& into) {
  for (const bool center : {false, true}) {
    Maker make(graph::info(op).name, text(t, {2, n(), 4}) + (center ? "/center" : ""));
    const ValueId boxes = make.input(t, {2, n(), 4}, Draw::NearOne), scores = make.input(t, {2, 3, n()});
    const ValueId most = make.input(DType::I64, {}, Draw::Count, 4), iou = make.input(DType::F32, {}, Draw::NearOne);
    const ValueId score = make.input(DType::F32, {});
    make.done(into, make.b().nodes(op, {boxes, scores, most, iou, score}, counted().set(Attr::Center, center)));
  }
}

void sweep_fail(Op op, Cases& into) {
  Maker make(graph::info(op).name, "f32/[n,m]");
  const ValueId x = make.input(DType::F32, {n(), m()});
  make.b().nodes(op, {}, Attrs().set(Attr::Name, std::string("nothing valid is here")));
  make.done(into, {make.b().unary(Op::Neg, x)});
}

}  // namespace

void sweep_host(Op op, Cases& into) {
  if (op == Op::Fail) return sweep_fail(op, into);
  for (DType t : dtypes_of(graph::info(op).dtypes)) {
    if (op == Op::NonMaxSuppression) {
      sweep_suppression(op, t, into);
      continue;
    }
    for (const Shape& shape : {Shape{n(), m()}, Shape{65}}) {
      if (op == Op::Unique) {
        sweep_unique(op, t, shape, into);
      } else {
        Maker make(graph::info(op).name, text(t, shape));
        const ValueId x = make.input(t, shape, Draw::Special);
        make.done(into, make.b().nodes(op, {x}, counted()));
      }
    }
  }
}

}  // namespace weft::sweep
