#include "schedule/analysis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "loop/words.h"
#include "loop/linear.h"

namespace weft::schedule {

using loop::LoopKind;
using loop::Op;

namespace {

constexpr std::int64_t kTranscendental =
    12;  // about as many operations as the polynomial behind it

// Operations of one evaluation of an expression, arithmetic and comparisons of indices excluded: those are done once
// for many elements.
std::int64_t operations(const loop::Group& g, ExprId root) {
  std::int64_t n = 0;
  std::set<ExprId> data;
  for (ExprId id : used_exprs(g, root)) {
    const loop::Expr& e = g.expr(id);
    const bool source = e.op == Op::Load || e.op == Op::LoadIf || e.op == Op::Local;
    if (!source && std::none_of(e.args.begin(), e.args.end(), [&](ExprId a) { return data.count(a) != 0; })) continue;
    data.insert(id);
    if (!loop::as_scalar(e.op) || e.dtype == DType::I64 || e.op == Op::Cast || e.op == Op::Bitcast)
      continue;
    n += e.op >= Op::Exp && e.op <= Op::Sigmoid ? kTranscendental : 1;
  }
  return n;
}

class Walker {
 public:
  Walker(Analysis& a) : a_(a), g_(a.group), scratch_(a.group) {}

  void run() {
    block(g_.body);
    const std::vector<Stmt>* body = &g_.body;
    while (body->size() == 1 && body->front().kind == Stmt::Kind::Loop &&
           g_.loops[body->front().id].kind == LoopKind::Parallel) {
      a_.chain.push_back(body->front().id);
      body = &body->front().body;
    }
  }

 private:
  void block(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Loop) {
        path_.push_back(s.id);
        block(s.body);
        path_.pop_back();
      } else {
        leaf(s);
      }
    }
  }

  std::vector<bool> loops_of(ExprId root) {
    std::vector<bool> on(g_.loops.size());
    for (ExprId id : used_exprs(scratch_, root)) {
      const loop::Expr& e = scratch_.expr(id);
      if (e.op == Op::Index) on[e.id] = true;
      if (e.op != Op::Load || e.id >= static_cast<ParamId>(a_.homes.size())) continue;
      for (LoopId l : a_.homes[e.id]) on[l] = true;
    }
    return on;
  }

  Access access(ParamId param, bool store, std::vector<ExprId> at) {
    Access a{param, store, std::move(at), std::vector<Stride>(g_.loops.size(), Stride::None), {}, 4};
    for (LoopId l : a_.homes[param]) a.strides[l] = Stride::Unit;  // tiles of them lie side by side
    const loop::Linear form = loop::linear(scratch_, loop::address_expr(scratch_, param, a.at));
    for (const auto& [atom, c] : form.terms) {
      const loop::Expr& e = scratch_.expr(atom);
      if (e.op == Op::Index) {
        a.strides[e.id] = c.is(1) ? Stride::Unit : Stride::Other;
        continue;
      }
      const auto on = loops_of(atom);
      for (std::size_t l = 0; l < on.size(); ++l) {
        if (on[l]) a.strides[l] = Stride::Other;
      }
    }
    a.bytes = std::max(1, bits(g_.params[param].dtype) / 8);
    for (std::size_t i = 0; i < a.at.size(); ++i) a.coordinates.push_back(coordinate(param, i, a.at[i]));
    return a;
  }

  Coordinate coordinate(ParamId param, std::size_t axis, ExprId at) const {
    Coordinate c;
    if (axis < g_.params[param].shape.size()) c.extent = std::max(a_.likely(g_.params[param].shape[axis]), 1.0);
    const loop::Affine form = loop::affine(g_, at);
    c.known = form.valid;
    for (const auto& [l, step] : form.terms) c.terms.emplace_back(l, std::abs(a_.likely(step)));
    return c;
  }

  void loads(Leaf& leaf, ExprId root) {
    for (ExprId id : used_exprs(g_, root)) {
      const loop::Expr& e = g_.expr(id);
      if (e.op != Op::Load && e.op != Op::LoadIf) continue;
      leaf.accesses.push_back(
          access(e.id, false, {e.args.begin() + (e.op == Op::LoadIf), e.args.end()}));
    }
  }

  void leaf(const Stmt& s) {
    Leaf leaf;
    leaf.stmt = &s;
    leaf.loops = path_;
    loads(leaf, s.value);
    if (s.kind == Stmt::Kind::Store) {
      for (ExprId i : s.index) loads(leaf, i);
      leaf.accesses.push_back(access(s.id, true, s.index));
    }
    leaf.operations = operations(g_, s.value) + 1;
    for (LoopId l : path_) leaf.points *= a_.extents[l];
    const loop::Expr& v = g_.expr(s.value);
    leaf.product = s.kind == Stmt::Kind::Update && s.combine == Combine::Sum && v.op == Op::Mul &&
                   !path_.empty() && g_.loops[path_.back()].kind == LoopKind::Reduce;
    const auto words = leaf.product ? loop::word_product(g_, s) : std::nullopt;
    if (words && g_.loops[path_.back()].extent.is(words->steps)) leaf.word = words->steps;
    if (leaf.product) {
      leaf.lhs = loops_of(v.args[0]);
      leaf.rhs = loops_of(v.args[1]);
    }
    double points = leaf.points;
    a_.total_work += points * static_cast<double>(leaf.operations);
    for (LoopId l : path_) {
      points /= std::max(a_.extents[l], 1.0);
      a_.work[l] += points * static_cast<double>(leaf.operations);
    }
    a_.leaves.push_back(std::move(leaf));
  }

  Analysis& a_;
  const loop::Group& g_;
  loop::Group scratch_;  // address expressions are built in a copy
  std::vector<LoopId> path_;
};

}  // namespace

Analysis::Analysis(const loop::Group& g, const DimFacts& f, std::int64_t u)
    : group(g), facts(f), unknown(u), homes(on_chip_homes(g)) {
  for (const auto& l : g.loops) extents.push_back(std::max(likely(l.extent), 1.0));
  work.assign(g.loops.size(), 0);
  Walker(*this).run();
}

std::vector<const Leaf*> Analysis::terms(const Leaf& product) const {
  std::vector<const Leaf*> found;
  for (const Leaf& leaf : leaves) {
    if (leaf.product && leaf.stmt->id == product.stmt->id && leaf.loops == product.loops) found.push_back(&leaf);
  }
  return found;
}

bool Analysis::encloses(LoopId loop, const Leaf& leaf) const {
  return std::find(leaf.loops.begin(), leaf.loops.end(), loop) != leaf.loops.end();
}

}  // namespace weft::schedule
