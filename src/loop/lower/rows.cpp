// Reductions over one row space, with everything elementwise between and after them: softmax, norms, means.
#include <algorithm>
#include <set>

#include "loop/lower/emit.h"
#include "loop/lower/softmax.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr int kKeptCost = 8;  // scalar operations of an element: more than its way to the first-level cache and back

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
      : context_(context), g_(context.graph), unit_(unit), reader_(context.graph, context.stored, unit.outputs, step_.group) {
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
    bind_kept(inner.at);
    divide(body, at);
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
    bind_kept(inner.at);
    ExprId value = reader_.read(node.operands[0], merge(inner.at));
    LocalId local = group.add_local(t);
    Scalar start = identity(combine, g_.type(node.results[0]).dtype);
    body.push_back(local_stmt(local, is_float(t) ? group.constant(t, start.f) : group.constant_i64(start.i, t)));
    std::vector<Stmt> each;
    if (worth_keeping(node)) value = keep(each, node.operands[0], value, inner.at);
    each.push_back(update_stmt(local, combine, group.cast(value, t)));
    for (Stmt& s : around(inner, std::move(each))) body.push_back(std::move(s));
    reader_.bind(node.results[0], rows_.at, group.local(local));
  }

  // Whether what the reduction is of is wanted once more, costs more than memory does, and a row of it fits.
  bool worth_keeping(const Node& reduction) const {
    const ValueId v = reduction.operands[0];
    if (inner_.size() != 1 || !reduced_.back() || !inner_[0].is_const() || is_kept(v)) return false;
    const DType t = compute_dtype(g_.type(v).dtype);
    if (inner_[0].value() * bits(t) / 8 > context_.kept_bytes) return false;
    int readers = std::find(unit_.outputs.begin(), unit_.outputs.end(), v) != unit_.outputs.end() ? 1 : 0;
    for (NodeId n : unit_.nodes) {
      const auto& operands = g_.node(n).operands;
      readers += std::find(operands.begin(), operands.end(), v) != operands.end() ? 1 : 0;
    }
    return readers > 1 && cost(v) >= kKeptCost;
  }

  // Scalar operations of an element of v from what is stored, kept or known of the row.
  int cost(ValueId v) const {
    std::set<ValueId> seen;
    std::vector<ValueId> work{v};
    int sum = 0;
    while (!work.empty()) {
      const ValueId x = work.back();
      work.pop_back();
      const NodeId def = g_.value(x).def;
      const bool computed = std::find(unit_.nodes.begin(), unit_.nodes.end(), def) != unit_.nodes.end();
      if (!computed || is_kept(x) || part_of(g_, g_.node(def)) == Part::Reduction || !seen.insert(x).second) continue;
      sum += scalar_cost(g_, g_.node(def));
      work.insert(work.end(), g_.node(def).operands.begin(), g_.node(def).operands.end());
    }
    return sum;
  }

  bool is_kept(ValueId v) const {
    return std::any_of(kept_values_.begin(), kept_values_.end(), [&](const Kept& k) { return k.value == v; });
  }

  // The value, stored on the way.
  ExprId keep(std::vector<Stmt>& body, ValueId v, ExprId value, const std::vector<ExprId>& at) {
    Group& group = step_.group;
    const DType t = group.expr(value).dtype;
    const LocalId local = group.add_local(t);
    const ParamId row = reader_.scratch(kOnChip, t, inner_, Role::OnChip);
    body.push_back(local_stmt(local, value));
    body.push_back(store_stmt(row, at, group.local(local)));
    kept_values_.push_back({v, row});
    return group.local(local);
  }

  void bind_kept(const std::vector<ExprId>& inner) {
    for (const Kept& k : kept_values_) reader_.bind(k.value, merge(inner), step_.group.load(k.row, inner));
  }

  // A softmax's exponentials are multiplied by the reciprocal of their sum, which is at least 1 or NaN.
  void divide(std::vector<Stmt>& body, const std::vector<ExprId>& at) {
    Group& group = step_.group;
    for (NodeId n : unit_.nodes) {
      const Node& node = g_.node(n);
      const DType t = g_.type(node.results[0]).dtype;
      if (node.op != GOp::Div || (t != DType::F32 && t != DType::F64)) continue;
      const auto softmax = find_softmax(g_, node.results[0]);
      if (!softmax || !reader_.bound(softmax->sum)) continue;
      const LocalId reciprocal = group.add_local(t);
      body.push_back(local_stmt(reciprocal, group.scalar(ScalarOp::Div, t, {group.constant(t, 1), reader_.read(softmax->sum, rows_.at)})));
      const ExprId p = group.scalar(ScalarOp::Mul, t, {reader_.read(softmax->exponentials, at), group.local(reciprocal)});
      reader_.bind(node.results[0], at, p);
    }
  }

  struct Kept {
    ValueId value;
    ParamId row;
  };

  const EmitContext& context_;
  const graph::Graph& g_;
  const Unit& unit_;
  Step step_;
  Reader reader_;
  Shape full_, outer_, inner_;
  std::vector<bool> reduced_;
  Nest rows_;
  std::vector<ExprId> kept_;
  std::vector<Kept> kept_values_;  // of the row, on chip
};

}  // namespace

Step emit_rows(const EmitContext& context, const Unit& unit) { return RowEmitter(context, unit).emit(); }

}  // namespace weft::loop
