#include "cost/cost.h"

#include <set>

namespace weft::cost {

using loop::Expr;
using loop::ExprId;
using loop::Group;
using loop::Op;
using loop::ParamId;
using loop::Stmt;

namespace {

class Counter {
 public:
  explicit Counter(const Group& g) : g_(g) {}

  GroupCost run() {
    walk(g_.body, 1);
    for (ParamId p : touched_) {
      const loop::Param& param = g_.params[p];
      cost_.bytes_compulsory = cost_.bytes_compulsory + product(param.shape) * element_bytes(p);
    }
    return cost_;
  }

 private:
  std::int64_t element_bytes(ParamId p) const { return (bits(g_.params[p].dtype) + 7) / 8; }

  void access(ParamId p, const Dim& times) {
    if (g_.params[p].role == loop::Role::OnChip) return;
    touched_.insert(p);
    cost_.bytes_moved = cost_.bytes_moved + times * element_bytes(p);
  }

  void body(ExprId root, const Dim& times) {
    for (ExprId e : used_exprs(g_, root)) {
      const Expr& x = g_.expr(e);
      if (x.op == Op::Load || x.op == Op::LoadIf) access(x.id, times);
      auto scalar = loop::as_scalar(x.op);
      if (scalar && is_float(x.dtype) && *scalar != ScalarOp::Cast && *scalar != ScalarOp::Select) {
        cost_.flops = cost_.flops + times * (*scalar == ScalarOp::Fma ? 2 : 1);
      }
    }
  }

  void walk(const std::vector<Stmt>& body_stmts, const Dim& times) {
    for (const Stmt& s : body_stmts) {
      if (s.kind == Stmt::Kind::Loop) {
        if (s.value >= 0) body(s.value, times * g_.loops[s.id].extent);
        walk(s.body, times * g_.loops[s.id].extent);
        continue;
      }
      if (s.value >= 0) body(s.value, times);
      if (s.kind == Stmt::Kind::Update && is_float(g_.locals[s.id])) cost_.flops = cost_.flops + times;
      if (s.kind == Stmt::Kind::Store) {
        access(s.id, times);
        for (ExprId e : s.index) body(e, times);
      }
    }
  }

  const Group& g_;
  GroupCost cost_;
  std::set<ParamId> touched_;
};

}  // namespace

GroupCost group_cost(const Group& group) { return Counter(group).run(); }

double estimate(const Dim& d, const DimFacts& facts, std::int64_t unknown) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;  // so that what is computed of it fits 64 bits, too
  if (d.is_const()) return static_cast<double>(std::min(d.value(), kMost));
  Bindings bindings;
  for (const std::string& s : d.symbols()) {
    const SymbolRange r = facts.range(Dim::symbol(s));
    bindings[s] = std::clamp(unknown, r.lo, std::max(r.lo, r.hi));
  }
  const auto v = d.evaluate(bindings);
  return static_cast<double>(std::min(v.ok() ? *v : unknown, kMost));
}

}  // namespace weft::cost
