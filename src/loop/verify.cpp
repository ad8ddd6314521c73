#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "loop/group.h"

namespace weft::loop {
namespace {

Error bad(std::string message) { return user_error("invalid-group", std::move(message)); }

// What encloses a statement.
struct Scope {
  std::vector<LoopId> loops;  // outermost first
  std::vector<int> declared;  // by local: number of loops around its declaration, -1: not in scope
};

class Verifier {
 public:
  explicit Verifier(const Group& g) : g_(g) {}

  Result<void> run() {
    for (const Param& p : g_.params) WEFT_TRY(param(p));
    for (std::size_t i = 0; i < g_.exprs().size(); ++i) WEFT_TRY(expr(static_cast<ExprId>(i)));
    seen_.assign(g_.loops.size(), false);
    Scope scope;
    scope.declared.assign(g_.locals.size(), -1);
    return block(g_.body, scope);
  }

 private:
  Result<void> param(const Param& p) {
    const int rank = static_cast<int>(p.shape.size());
    if (!p.map.order.empty()) {
      const std::set<int> axes(p.map.order.begin(), p.map.order.end());
      const bool permutation = static_cast<int>(p.map.order.size()) == rank &&
                               static_cast<int>(axes.size()) == rank &&
                               (rank == 0 || (*axes.begin() == 0 && *axes.rbegin() == rank - 1));
      if (!permutation) return bad("a parameter's storage order is not a permutation of its axes");
    }
    if (p.map.panel < 0 ||
        (p.map.panel > 0 && (p.map.panel_axis < 0 || p.map.panel_axis >= rank))) {
      return bad("a parameter's panel axis is out of range");
    }
    if (p.map.inner < -1 || p.map.inner >= rank || (p.map.inner >= 0 && (p.map.panel == 0 || p.map.inner == p.map.panel_axis))) {
      return bad("a parameter's innermost axis is none of those beside its panel axis");
    }
    if (is_complex(p.dtype) || is_string(p.dtype)) {
      return unsupported("dtype", fmt::format("kernels on {} elements", weft::name(p.dtype)));
    }
    return {};
  }

  Result<void> coordinates(const Expr& e, std::size_t first) {
    if (e.id < 0 || e.id >= static_cast<int>(g_.params.size()))
      return bad("a load names an unknown parameter");
    const Param& p = g_.params[e.id];
    if (e.args.size() - first != p.shape.size() || e.dtype != p.dtype) {
      return bad(fmt::format("a load of parameter {} does not fit its rank or dtype", e.id));
    }
    for (std::size_t i = first; i < e.args.size(); ++i) {
      if (g_.expr(e.args[i]).dtype != DType::I64) return bad("a coordinate is not i64");
    }
    return {};
  }

  Result<void> expr(ExprId id) {
    const Expr& e = g_.expr(id);
    for (ExprId a : e.args) {
      if (a < 0 || a >= id) return bad("an expression uses one that is not before it");
    }
    if (const auto op = as_scalar(e.op)) return scalar(*op, e);
    switch (e.op) {
      case Op::Const:
        return {};
      case Op::Size:
        return e.dtype == DType::I64 ? Result<void>() : bad("a size is not i64");
      case Op::Index:
        if (e.id < 0 || e.id >= static_cast<int>(g_.loops.size()))
          return bad("index of an unknown loop");
        return {};
      case Op::Local:
        if (e.id < 0 || e.id >= static_cast<int>(g_.locals.size()))
          return bad("an unknown local is read");
        if (e.dtype != g_.locals[e.id]) return bad("a local is read as another dtype");
        return {};
      case Op::Load:
        return coordinates(e, 0);
      case Op::LoadIf:
        if (e.args.empty() || g_.expr(e.args[0]).dtype != DType::Bool)
          return bad("a condition is not bool");
        return coordinates(e, 1);
      case Op::Wrap:
        if (e.args.size() != 2 || e.dtype != DType::I64 || g_.expr(e.args[0]).dtype != DType::I64 ||
            g_.expr(e.args[1]).dtype != DType::I64) {
          return bad("wrap takes an i64 index and extent");
        }
        if (e.id < 1 || e.id > static_cast<int>(g_.checks.size()))
          return bad("wrap names an unknown check");
        return {};
      case Op::Require:
        if (e.args.size() != 2 || e.dtype != g_.expr(e.args[0]).dtype || g_.expr(e.args[1]).dtype != DType::Bool) {
          return bad("require takes a value and a condition");
        }
        if (e.id < 1 || e.id > static_cast<int>(g_.checks.size())) return bad("require names an unknown check");
        return {};
      default:
        return bad("unknown op");
    }
  }

  Result<void> scalar(ScalarOp op, const Expr& e) {
    const ScalarOpInfo& i = info(op);
    if (static_cast<int>(e.args.size()) != i.operands) {
      return bad(fmt::format("{} takes {} operands, not {}", i.name, i.operands, e.args.size()));
    }
    const auto type = [&](std::size_t n) { return g_.expr(e.args[n]).dtype; };
    const std::size_t first = i.result == ScalarResult::Select ? 1 : 0;
    for (std::size_t n = first; n < e.args.size(); ++n) {
      if (type(n) != type(first))
        return bad(fmt::format("the operands of {} differ in dtype", i.name));
    }
    const bool fits = i.result == ScalarResult::Same   ? e.dtype == type(0)
                      : i.result == ScalarResult::Bool ? e.dtype == DType::Bool
                      : i.result == ScalarResult::Select
                          ? e.dtype == type(1) && type(0) == DType::Bool
                      : op == ScalarOp::Bitcast ? bits(e.dtype) == bits(type(0))
                                                : true;
    return fits ? Result<void>() : bad(fmt::format("{} has the wrong dtype", i.name));
  }

  Result<void> value(ExprId root, DType dtype, const Scope& scope) {
    if (root < 0 || root >= static_cast<int>(g_.exprs().size()))
      return bad("a statement has no value");
    if (g_.expr(root).dtype != dtype) {
      return bad(fmt::format("a statement's value is {}, not {}", weft::name(g_.expr(root).dtype),
                             weft::name(dtype)));
    }
    for (ExprId id : used_exprs(g_, root)) {
      const Expr& e = g_.expr(id);
      if (e.op == Op::Index &&
          std::find(scope.loops.begin(), scope.loops.end(), e.id) == scope.loops.end()) {
        return bad(fmt::format("i{} is used outside its loop", e.id));
      }
      if (e.op == Op::Local && scope.declared[e.id] < 0)
        return bad(fmt::format("t{} is used before its declaration", e.id));
      if ((e.op == Op::Load || e.op == Op::LoadIf) && g_.params[e.id].role == Role::Output) {
        return bad(fmt::format("output p{} is read", e.id));
      }
    }
    return {};
  }

  // Loops between the local's declaration and here must allow the statement.
  Result<void> assignable(const Stmt& s, const Scope& scope) {
    if (s.id < 0 || s.id >= static_cast<int>(g_.locals.size()) || scope.declared[s.id] < 0) {
      return bad("a local is assigned before its declaration");
    }
    for (std::size_t d = scope.declared[s.id]; d < scope.loops.size(); ++d) {
      const LoopKind kind = g_.loops[scope.loops[d]].kind;
      const bool allowed =
          kind == LoopKind::Serial || (kind == LoopKind::Reduce && s.kind == Stmt::Kind::Update);
      if (!allowed)
        return bad(fmt::format("t{} is assigned in i{}, whose iterations are independent", s.id,
                               scope.loops[d]));
    }
    return {};
  }

  Result<void> store(const Stmt& s, const Scope& scope) {
    if (s.id < 0 || s.id >= static_cast<int>(g_.params.size()))
      return bad("a store names an unknown parameter");
    const Param& p = g_.params[s.id];
    if (p.role == Role::Input) return bad(fmt::format("input p{} is written", s.id));
    if (s.index.size() != p.shape.size())
      return bad(fmt::format("a store to p{} does not fit its rank", s.id));
    for (ExprId i : s.index) WEFT_TRY(value(i, DType::I64, scope));
    for (LoopId l : scope.loops) {
      if (g_.loops[l].kind == LoopKind::Reduce && p.role != Role::OnChip) {
        return bad(fmt::format("p{} is written in a reduce loop", s.id));
      }
    }
    return value(s.value, p.dtype, scope);
  }

  Result<void> block(const std::vector<Stmt>& body, Scope scope) {
    if (scope.loops.size() > 64) return bad("more than 64 loops inside each other");
    for (const Stmt& s : body) {
      switch (s.kind) {
        case Stmt::Kind::Loop: {
          if (s.id < 0 || s.id >= static_cast<int>(g_.loops.size()))
            return bad("a statement names an unknown loop");
          if (seen_[s.id]) return bad(fmt::format("loop i{} stands in the tree twice", s.id));
          seen_[s.id] = true;
          Scope inner = scope;
          inner.loops.push_back(s.id);
          if (s.value >= 0) {
            if (g_.loops[s.id].kind != LoopKind::Serial) return bad(fmt::format("i{} leaves iterations out and is not serial", s.id));
            WEFT_TRY(value(s.value, DType::Bool, inner));
          }
          WEFT_TRY(block(s.body, std::move(inner)));
          break;
        }
        case Stmt::Kind::Local:
          if (s.id < 0 || s.id >= static_cast<int>(g_.locals.size()))
            return bad("an unknown local is declared");
          if (scope.declared[s.id] >= 0 &&
              scope.declared[s.id] != static_cast<int>(scope.loops.size())) {
            return bad(fmt::format("t{} is declared again inside its scope", s.id));
          }
          WEFT_TRY(value(s.value, g_.locals[s.id], scope));
          scope.declared[s.id] = static_cast<int>(scope.loops.size());
          break;
        case Stmt::Kind::Update:
        case Stmt::Kind::Set:
          WEFT_TRY(assignable(s, scope));
          if (s.kind == Stmt::Kind::Update && s.combine == Combine::None)
            return bad("an update has no combine");
          WEFT_TRY(value(s.value, g_.locals[s.id], scope));
          break;
        case Stmt::Kind::Store:
          WEFT_TRY(store(s, scope));
          break;
      }
    }
    return {};
  }

  const Group& g_;
  std::vector<bool> seen_;
};

}  // namespace

Result<void> verify(const Group& group) { return Verifier(group).run(); }

}  // namespace weft::loop
