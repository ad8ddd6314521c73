// Reductions over one row space, with everything elementwise between and after them: softmax, norms, means.
#include <algorithm>

#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using GOp = graph::Op;

namespace {

Combine combine_of(GOp op) {
  switch (op) {
    case GOp::ReduceProd: return Combine::Prod;
    case GOp::ReduceMax: return Combine::Max;
    case GOp::ReduceMin: return Combine::Min;
    case GOp::ReduceAnd: return Combine::And;
    case GOp::ReduceOr: return Combine::Or;
    default: return Combine::Sum;
  }
}

class RowEmitter {
 public:
  RowEmitter(const EmitContext& context, const Unit& unit)
      : g_(context.graph), unit_(unit), reader_(context.graph, context.stored, unit.outputs, step_.group) {
    const Node& seed = g_.node(unit.seed);
    full_ = g_.type(seed.operands[0]).shape;
    reduced_.assign(full_.size(), false);
    for (std::int64_t axis : seed.attrs.ints(Attr::Axes)) reduced_[axis] = true;
    for (std::size_t d = 0; d < full_.size(); ++d) (reduced_[d] ? inner_ : outer_).push_back(full_[d]);
  }

  Step emit() {
    Group& group = step_.group;
    group.name = "rows";
    rows_ = make_nest(group, LoopKind::Parallel, outer_);
    std::vector<Stmt> body;
    for (NodeId n : unit_.nodes) {
      reader_.note(g_.node(n));
      if (part_of(g_, g_.node(n)) == Part::Reduction) reduce(g_.node(n), body);
    }
    std::vector<Stmt> wide;
    Nest inner = make_nest(group, LoopKind::Parallel, inner_);
    std::vector<ExprId> at = merge(inner.at);
    for (ValueId v : unit_.outputs) {
      const Shape& shape = g_.type(v).shape;
      bool narrow = shape == outer_ && !(shape == full_);
      bool kept = !narrow && !(shape == full_);
      const auto& where = narrow ? rows_.at : kept ? kept_coordinates() : at;
      ExprId value = reader_.to_storage(v, reader_.read(v, where));
      (narrow || kept ? body : wide).push_back(store_stmt(reader_.output(v), where, value));
    }
    if (!wide.empty()) {
      for (Stmt& s : around(inner, std::move(wide))) body.push_back(std::move(s));
    }
    group.body = around(rows_, std::move(body));
    step_.args = reader_.args();
    return std::move(step_);
  }

 private:
  std::vector<ExprId> merge(const std::vector<ExprId>& inner) const {
    std::vector<ExprId> at;
    std::size_t o = 0, i = 0;
    for (bool reduced : reduced_) at.push_back(reduced ? inner[i++] : rows_.at[o++]);
    return at;
  }

  const std::vector<ExprId>& kept_coordinates() {
    if (kept_.empty()) {
      std::size_t o = 0;
      for (bool reduced : reduced_) kept_.push_back(reduced ? step_.group.constant_i64(0) : rows_.at[o++]);
    }
    return kept_;
  }

  void reduce(const Node& node, std::vector<Stmt>& body) {
    Group& group = step_.group;
    DType t = compute_dtype(g_.type(node.results[0]).dtype);
    Combine combine = combine_of(node.op);
    Nest inner = make_nest(group, LoopKind::Reduce, inner_);
    ExprId value = reader_.read(node.operands[0], merge(inner.at));
    LocalId local = group.add_local(t);
    Scalar start = identity(combine, t);
    body.push_back(local_stmt(local, is_float(t) ? group.constant(t, start.f) : group.constant_i64(start.i, t)));
    for (Stmt& s : around(inner, {update_stmt(local, combine, group.cast(value, t))})) body.push_back(std::move(s));
    reader_.bind(node.results[0], rows_.at, group.local(local));
  }

  const graph::Graph& g_;
  const Unit& unit_;
  Step step_;
  Reader reader_;
  Shape full_, outer_, inner_;
  std::vector<bool> reduced_;
  Nest rows_;
  std::vector<ExprId> kept_;
};

}  // namespace

Step emit_rows(const EmitContext& context, const Unit& unit) { return RowEmitter(context, unit).emit(); }

}  // namespace weft::loop
