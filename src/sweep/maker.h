// What the families share: a case under construction, and the lists of dtypes and shapes that they go through.
#pragma once

#include "graph/builder.h"
#include "sweep/sweep.h"

namespace weft::sweep {

using graph::Attr;
using graph::Attrs;
using graph::Op;
using graph::ValueId;
using Ints = std::vector<std::int64_t>;
using Cases = std::vector<Case>;

class Maker {
 public:
  Maker(std::string op, const std::string& variant);  // the case "op/variant"

  graph::Builder& b() { return b_; }
  const DimFacts& facts() const { return case_.graph.facts; }
  ValueId input(DType dtype, Shape shape, Draw draw = Draw::Tame, Dim limit = 1);
  Maker& runs(std::vector<Bindings> runs);
  // Rounding: `steps` roundings of the result's dtype are allowed, and an absolute error.
  Maker& tolerance(double steps, double atol = 0);
  // Checks the graph and adds the case. A graph that inference refuses is our fault.
  void done(Cases& into, std::vector<ValueId> outputs);

 private:
  Case case_;
  graph::Builder b_;
  double steps_ = 1, atol_ = 0;
};

// Sizes n and m, each at 0, 1, odd ones, a vector's width, and beyond one vector of any target.
const std::vector<Bindings>& open_sizes();
Dim n();
Dim m();

// A shape with its runs.
struct Form {
  Shape shape;
  bool open() const { return !is_static(shape); }
};
const std::vector<Form>& forms(DType dtype);  // all of them for a dtype that kernels are about, else some
std::string text(const Shape& shape);         // "[3,0,5]"
std::string text(DType dtype, const Shape& shape);  // "f16/[3,0,5]"

// All dtypes of the classes, by the letters of the op table's column.
std::vector<DType> dtypes_of(const char* classes);
bool is_common(DType dtype);  // of models and kernels, not only of storage
double eps(DType dtype);      // the step above 1
double tiny(DType dtype);     // the least positive value

// One function for each family of prims.
void sweep_unary(Op op, Cases& into);
void sweep_binary(Op op, Cases& into);
void sweep_select(Op op, Cases& into);
void sweep_cast(Op op, Cases& into);
void sweep_movement(Op op, Cases& into);
void sweep_source(Op op, Cases& into);
void sweep_gather(Op op, Cases& into);
void sweep_scatter(Op op, Cases& into);
void sweep_reduce(Op op, Cases& into);
void sweep_scan(Op op, Cases& into);
void sweep_sort(Op op, Cases& into);
void sweep_dot(Op op, Cases& into);
void sweep_conv(Op op, Cases& into);
void sweep_window(Op op, Cases& into);
void sweep_control(Op op, Cases& into);
void sweep_host(Op op, Cases& into);
void sweep_composites(Cases& into);

}  // namespace weft::sweep
