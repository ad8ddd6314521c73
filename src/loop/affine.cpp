// Index expressions as linear forms: over atoms for folding division and remainder, over loops for
// schedules.
#include <algorithm>
#include <map>
#include <numeric>

#include "loop/fold.h"

namespace weft::loop {
namespace {

Linear combine(const Linear& a, const Linear& b, const Dim& factor) {
  Linear r;
  r.constant = a.constant + b.constant * factor;
  std::map<ExprId, Dim> sum(a.terms.begin(), a.terms.end());
  for (const auto& [atom, c] : b.terms) sum[atom] = sum[atom] + c * factor;
  for (auto& [atom, c] : sum) {
    if (!c.is(0)) r.terms.emplace_back(atom, c);
  }
  return r;
}

bool is_sum(const Expr& e) {
  return e.dtype == DType::I64 &&
         (e.op == Op::Add || e.op == Op::Sub || e.op == Op::Mul || e.op == Op::Neg);
}

// e and its operands through sums only, operands first.
std::vector<ExprId> sum_nodes(const Group& g, ExprId root) {
  std::vector<ExprId> order, stack{root};
  std::map<ExprId, bool> done;
  while (!stack.empty()) {
    const ExprId e = stack.back();
    auto [it, fresh] = done.try_emplace(e, false);
    if (fresh) {
      if (is_sum(g.expr(e))) {
        for (ExprId a : g.expr(e).args) stack.push_back(a);
      }
      continue;
    }
    stack.pop_back();
    if (!it->second) order.push_back(e);
    it->second = true;
  }
  return order;
}

Linear scaled(const Linear& a, const Dim& factor) { return combine(Linear{}, a, factor); }

bool non_negative(const Dim& d) { return DimFacts{}.range(d).lo >= 0; }

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    return a.value() % b.value() == 0 ? std::optional<Dim>(a.value() / b.value()) : std::nullopt;
  }
  const Dim q = floor_div(a, b);
  if (q * b == a) return q;
  return std::nullopt;
}

// Nested divisions are looked through only so far.
constexpr int kDepth = 8;

std::optional<Dim> bound_of(const Group& g, ExprId id, int depth);

std::optional<Dim> bound_of(const Group& g, const Linear& form, int depth = 0) {
  if (!non_negative(form.constant)) return std::nullopt;
  Dim hi = form.constant;
  for (const auto& [atom, c] : form.terms) {
    const auto bound = bound_of(g, atom, depth);
    if (!bound || !non_negative(c)) return std::nullopt;
    hi = hi + *bound * c;
  }
  return hi;
}

std::optional<Dim> bound_of(const Group& g, ExprId id, int depth) {
  const Expr& e = g.expr(id);
  if (const auto d = as_dim(g, id)) return non_negative(*d) ? d : std::nullopt;
  if (e.op == Op::Index) return g.loops[e.id].extent - 1;
  if (depth > kDepth) return std::nullopt;
  if (e.op == Op::Mod || e.op == Op::Wrap || e.op == Op::FloorDiv) {
    const auto b = as_dim(g, e.args[1]);
    if (!b || !b->is_const() || b->value() <= 0) return std::nullopt;
    if (e.op != Op::FloorDiv) return *b - 1;
    const auto a = bound_of(g, linear(g, e.args[0]), depth + 1);
    return a ? std::optional<Dim>(floor_div(*a, *b)) : std::nullopt;
  }
  if (!is_sum(e)) return std::nullopt;
  const Linear form = linear(g, id);
  if (form.terms.size() == 1 && form.terms[0].first == id)
    return std::nullopt;  // a product of two variables
  return bound_of(g, form, depth + 1);
}

// Made of loop variables: such sums do not overflow, which sums of data may.
bool index_like(const Group& g, const Linear& form, int depth = 0) {
  for (const auto& [atom, c] : form.terms) {
    const Expr& e = g.expr(atom);
    const bool bounded = e.op == Op::Index || e.op == Op::Wrap || e.op == Op::Mod;
    if (bounded) continue;
    if (e.op != Op::FloorDiv || depth > kDepth || !index_like(g, linear(g, e.args[0]), depth + 1))
      return false;
  }
  return true;
}

bool below(const std::optional<Dim>& hi, const Dim& b) {
  return hi && (*hi + 1 == b || DimFacts{}.known_less(*hi, b));
}

// Splits a form into the terms divisible by b (divided) and the rest.
std::pair<Linear, Linear> split(const Linear& form, const Dim& b) {
  Linear q, r;
  if (form.constant.is_const() && b.is_const()) {
    const std::int64_t k = form.constant.value(), m = ((k % b.value()) + b.value()) % b.value();
    q.constant = (k - m) / b.value();
    r.constant = m;
  } else if (const auto exact = exact_quotient(form.constant, b)) {
    q.constant = *exact;
  } else {
    r.constant = form.constant;
  }
  for (const auto& [atom, c] : form.terms) {
    const auto exact = exact_quotient(c, b);
    (exact ? q : r).terms.emplace_back(atom, exact ? *exact : c);
  }
  return {q, r};
}

// r = d * big + small with d > 1 a divisor of b and small in [0, d): then r / b == big / (b / d).
struct Common {
  std::int64_t d = 1;
  Linear big, small;
};
std::optional<Common> common_divisor(const Group& g, const Linear& r, std::int64_t b) {
  for (const auto& [atom, c] : r.terms) {
    if (!c.is_const()) continue;
    const std::int64_t d = std::gcd(c.value(), b);
    if (d <= 1) continue;
    auto [big, small] = split(r, d);
    if (below(bound_of(g, small), Dim(d))) return Common{d, big, small};
  }
  return std::nullopt;
}

ExprId raw_binary(Group& g, ScalarOp op, const Linear& a, std::int64_t b) {
  return g.scalar(op, DType::I64, {emit(g, a), g.constant_i64(b)});
}

bool same(const Linear& a, const Linear& b) {
  return a.constant == b.constant && a.terms == b.terms;
}

}  // namespace

std::optional<Dim> as_dim(const Group& g, ExprId id) {
  const Expr& e = g.expr(id);
  if (e.dtype != DType::I64) return std::nullopt;
  if (e.op == Op::Const) return Dim(e.constant.i);
  if (e.op == Op::Size) return e.dim;
  return std::nullopt;
}

Linear linear(const Group& g, ExprId root) {
  std::map<ExprId, Linear> forms;
  for (ExprId id : sum_nodes(g, root)) {
    const Expr& e = g.expr(id);
    Linear form;
    if (const auto d = as_dim(g, id)) {
      form.constant = *d;
    } else if (e.op == Op::Add && is_sum(e)) {
      form = combine(forms[e.args[0]], forms[e.args[1]], 1);
    } else if (e.op == Op::Sub && is_sum(e)) {
      form = combine(forms[e.args[0]], forms[e.args[1]], -1);
    } else if (e.op == Op::Neg && is_sum(e)) {
      form = scaled(forms[e.args[0]], -1);
    } else if (e.op == Op::Mul && is_sum(e) && as_dim(g, e.args[1])) {
      form = scaled(forms[e.args[0]], *as_dim(g, e.args[1]));
    } else if (e.op == Op::Mul && is_sum(e) && as_dim(g, e.args[0])) {
      form = scaled(forms[e.args[1]], *as_dim(g, e.args[0]));
    } else {
      form.terms = {{id, Dim(1)}};
    }
    forms[id] = std::move(form);
  }
  return forms[root];
}

ExprId emit(Group& g, const Linear& form) {
  ExprId sum = -1;
  for (const auto& [atom, c] : form.terms) {
    const ExprId term = g.imul(atom, g.size(c));
    sum = sum < 0 ? term : g.iadd(sum, term);
  }
  if (sum < 0) return g.size(form.constant);
  return g.iadd(sum, g.size(form.constant));
}

std::optional<Dim> upper_bound(const Group& g, ExprId id) {
  const Linear form = linear(g, id);
  return index_like(g, form) ? bound_of(g, form) : std::nullopt;
}

std::optional<Divided> divide(Group& g, ExprId a, const Dim& b) {
  if (b.is_const() && b.value() <= 0) return std::nullopt;
  const Linear form = linear(g, a);
  if (!index_like(g, form)) return std::nullopt;
  const auto [q, r] = split(form, b);
  const auto hi = bound_of(g, r);
  // A symbolic divisor may be 0, unless the remainder's loops run over it.
  if (below(hi, b) && (b.is_const() || !r.terms.empty())) return Divided{emit(g, q), emit(g, r)};
  if (!b.is_const()) return std::nullopt;
  const std::int64_t n = b.value();
  if (const auto c = common_divisor(g, r, n)) {
    const ExprId quotient = g.iadd(emit(g, q), raw_binary(g, ScalarOp::FloorDiv, c->big, n / c->d));
    const ExprId inner = raw_binary(g, ScalarOp::Mod, c->big, n / c->d);
    return Divided{quotient, g.iadd(g.imul(inner, g.constant_i64(c->d)), emit(g, c->small))};
  }
  if (same(r, form)) return std::nullopt;  // nothing to take out
  return Divided{g.iadd(emit(g, q), raw_binary(g, ScalarOp::FloorDiv, r, n)),
                 raw_binary(g, ScalarOp::Mod, r, n)};
}

Dim Affine::coefficient(LoopId loop) const {
  for (const auto& [id, c] : terms) {
    if (id == loop) return c;
  }
  return 0;
}

Affine affine(const Group& g, ExprId e) {
  const Linear form = linear(g, e);
  Affine result;
  result.constant = form.constant;
  for (const auto& [atom, c] : form.terms) {
    if (g.expr(atom).op != Op::Index) return {};
    result.terms.emplace_back(g.expr(atom).id, c);
  }
  std::sort(result.terms.begin(), result.terms.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  result.valid = true;
  return result;
}

Affine address(const Group& g, ParamId param, const std::vector<ExprId>& coordinates) {
  const Param& p = g.params[param];
  if (p.map.panel > 0) return {};
  const int rank = static_cast<int>(p.shape.size());
  std::map<LoopId, Dim> sum;
  Affine result;
  Dim stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int axis = p.map.order.empty() ? i : p.map.order[i];
    const Affine a = affine(g, coordinates[axis]);
    if (!a.valid) return {};
    result.constant = result.constant + a.constant * stride;
    for (const auto& [loop, c] : a.terms) sum[loop] = sum[loop] + c * stride;
    stride = stride * p.shape[axis];
  }
  for (const auto& [loop, c] : sum) {
    if (!c.is(0)) result.terms.emplace_back(loop, c);
  }
  result.valid = true;
  return result;
}

ExprId address_expr(Group& g, ParamId param, const std::vector<ExprId>& coordinates) {
  const Param p = g.params[param];
  const int rank = static_cast<int>(p.shape.size());
  const int split = p.map.panel > 0 ? p.map.panel_axis : -1;
  const auto inner = [&](ExprId sum, int axis) {
    return g.iadd(g.imul(sum, g.size(p.shape[axis])), coordinates[axis]);
  };
  ExprId sum = g.constant_i64(0);
  if (split >= 0) sum = g.ifloordiv(coordinates[split], g.constant_i64(p.map.panel));
  for (int i = 0; i < rank; ++i) {
    const int axis = p.map.order.empty() ? i : p.map.order[i];
    if (axis != split && (split < 0 || axis != p.map.inner)) sum = inner(sum, axis);
  }
  if (split < 0) return sum;
  const ExprId panel = g.constant_i64(p.map.panel);
  sum = g.iadd(g.imul(sum, panel), g.imod(coordinates[split], panel));
  return p.map.inner < 0 ? sum : inner(sum, p.map.inner);
}

std::vector<ExprId> used_exprs(const Group& g, ExprId root) {
  std::vector<ExprId> order, stack{root};
  std::vector<std::uint8_t> state(g.exprs().size(), 0);  // 1: operands pushed, 2: in order
  while (!stack.empty()) {
    const ExprId e = stack.back();
    if (state[e] == 0) {
      state[e] = 1;
      const auto& args = g.expr(e).args;
      for (auto it = args.rbegin(); it != args.rend(); ++it) {
        if (state[*it] == 0) stack.push_back(*it);
      }
      continue;
    }
    stack.pop_back();
    if (state[e] == 1) order.push_back(e);
    state[e] = 2;
  }
  return order;
}

}  // namespace weft::loop
