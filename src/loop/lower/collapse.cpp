#include "loop/lower/collapse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace weft::loop {

namespace {

// One place where memory is accessed: the parameter and its coordinates.
struct Access {
  ParamId param;
  const ExprId* at;
  std::size_t rank;
};

class Collapser {
 public:
  explicit Collapser(Group& group) : g_(group) {}

  bool step() {
    reachable_.clear();
    accesses_.clear();
    plain_.clear();
    stores_.clear();
    for (const Stmt& s : g_.body) visit(s);
    for (const auto& [param, index] : stores_) accesses_.push_back({param, index->data(), index->size()});
    for (const auto& [outer, inner] : nested_pairs(g_.body)) {
      if (auto axes = mergeable(outer, inner)) {
        merge(outer, inner, *axes);
        return true;
      }
    }
    return false;
  }

 private:
  using Pairs = std::vector<std::pair<LoopId, LoopId>>;

  Pairs nested_pairs(const std::vector<Stmt>& body) const {
    Pairs pairs;
    for (const Stmt& s : body) {
      if (s.kind != Stmt::Kind::Loop) continue;
      LoopKind kind = g_.loops[s.id].kind;
      if (s.body.size() == 1 && s.body[0].kind == Stmt::Kind::Loop && kind != LoopKind::Serial &&
          g_.loops[s.body[0].id].kind == kind) {
        pairs.push_back({s.id, s.body[0].id});
      }
      Pairs deeper = nested_pairs(s.body);
      pairs.insert(pairs.end(), deeper.begin(), deeper.end());
    }
    return pairs;
  }

  // Every use of an index expression other than as a coordinate is noted in plain_.
  void visit(const Stmt& s) {
    if (s.value >= 0) visit_root(s.value);
    if (s.kind == Stmt::Kind::Store) {
      stores_.push_back({s.id, &s.index});
      for (ExprId e : s.index) {
        if (g_.expr(e).op != Op::Index) visit_expr(e);
      }
    }
    for (const Stmt& inner : s.body) visit(inner);
  }

  void visit_root(ExprId e) {
    if (g_.expr(e).op == Op::Index) plain_.insert(g_.expr(e).id);
    visit_expr(e);
  }

  void visit_expr(ExprId e) {
    for (ExprId u : used_exprs(g_, e)) {
      if (!reachable_.insert(u).second) continue;
      const Expr& x = g_.expr(u);
      std::size_t first = x.op == Op::LoadIf ? 1 : 0;
      bool load = x.op == Op::Load || x.op == Op::LoadIf;
      if (load) accesses_.push_back({x.id, x.args.data() + first, x.args.size() - first});
      for (std::size_t k = 0; k < x.args.size(); ++k) {
        const Expr& arg = g_.expr(x.args[k]);
        if (arg.op == Op::Index && !(load && k >= first)) plain_.insert(arg.id);
      }
    }
  }

  std::optional<std::map<ParamId, std::size_t>> mergeable(LoopId outer, LoopId inner) const {
    if (plain_.count(outer) || plain_.count(inner)) return std::nullopt;
    std::map<ParamId, std::size_t> axes;
    std::set<ParamId> without;
    for (const Access& a : accesses_) {
      std::optional<std::size_t> pair;
      for (std::size_t d = 0; d < a.rank; ++d) {
        bool o = is_index(a.at[d], outer), i = is_index(a.at[d], inner);
        if (!o && !i) continue;
        if (i && d > 0 && is_index(a.at[d - 1], outer)) continue;
        if (!o || d + 1 >= a.rank || !is_index(a.at[d + 1], inner) || pair) return std::nullopt;
        pair = d;
      }
      if (!pair) {
        without.insert(a.param);
        continue;
      }
      const Param& p = g_.params[a.param];
      if (!(p.map == StorageMap{}) || !(p.shape[*pair + 1] == g_.loops[inner].extent)) return std::nullopt;
      auto [it, fresh] = axes.emplace(a.param, *pair);
      if (!fresh && it->second != *pair) return std::nullopt;
    }
    for (const auto& [param, axis] : axes) {
      if (without.count(param)) return std::nullopt;
    }
    return axes;
  }

  bool is_index(ExprId e, LoopId loop) const { return g_.expr(e).op == Op::Index && g_.expr(e).id == loop; }

  void merge(LoopId outer, LoopId inner, const std::map<ParamId, std::size_t>& axes) {
    Group next;
    next.name = g_.name;
    next.origins = g_.origins;
    next.checks = g_.checks;
    next.locals = g_.locals;
    for (ParamId p = 0; p < static_cast<ParamId>(g_.params.size()); ++p) {
      Param param = g_.params[p];
      if (auto it = axes.find(p); it != axes.end()) {
        param.shape[it->second] = param.shape[it->second] * param.shape[it->second + 1];
        param.shape.erase(param.shape.begin() + it->second + 1);
      }
      next.params.push_back(std::move(param));
    }
    std::vector<LoopId> renamed(g_.loops.size(), -1);
    for (LoopId l = 0; l < static_cast<LoopId>(g_.loops.size()); ++l) {
      if (l == inner) continue;
      Dim extent = g_.loops[l].extent;
      if (l == outer) extent = extent * g_.loops[inner].extent;
      renamed[l] = next.add_loop(g_.loops[l].kind, extent);
    }
    renamed[inner] = renamed[outer];
    std::vector<ExprId> mapped(g_.exprs().size(), -1);
    next.body = rebuild(g_.body, next, inner, axes, renamed, mapped);
    g_ = std::move(next);
  }

  std::vector<ExprId> coordinates(const ExprId* at, std::size_t rank, ParamId param, const std::vector<ExprId>& mapped,
                                  const std::map<ParamId, std::size_t>& axes) const {
    auto it = axes.find(param);
    std::vector<ExprId> result;
    for (std::size_t d = 0; d < rank; ++d) {
      if (it != axes.end() && d == it->second + 1) continue;
      result.push_back(mapped[at[d]]);
    }
    return result;
  }

  ExprId map_expr(ExprId root, Group& next, const std::map<ParamId, std::size_t>& axes,
                  const std::vector<LoopId>& renamed, std::vector<ExprId>& mapped) const {
    for (ExprId u : used_exprs(g_, root)) {
      if (mapped[u] >= 0) continue;
      Expr x = g_.expr(u);
      if (x.op == Op::Index) x.id = renamed[x.id];
      if (x.op == Op::Load || x.op == Op::LoadIf) {
        std::size_t first = x.op == Op::LoadIf ? 1 : 0;
        std::vector<ExprId> at = coordinates(x.args.data() + first, x.args.size() - first, x.id, mapped, axes);
        if (first) at.insert(at.begin(), mapped[x.args[0]]);
        x.args = std::move(at);
      } else {
        for (ExprId& arg : x.args) arg = mapped[arg];
      }
      mapped[u] = next.add(std::move(x));
    }
    return mapped[root];
  }

  std::vector<Stmt> rebuild(const std::vector<Stmt>& body, Group& next, LoopId inner,
                            const std::map<ParamId, std::size_t>& axes, const std::vector<LoopId>& renamed,
                            std::vector<ExprId>& mapped) const {
    std::vector<Stmt> result;
    for (const Stmt& s : body) {
      Stmt copy;
      copy.kind = s.kind;
      copy.id = s.kind == Stmt::Kind::Loop ? renamed[s.id] : s.id;
      copy.combine = s.combine;
      if (s.value >= 0) copy.value = map_expr(s.value, next, axes, renamed, mapped);
      if (s.kind == Stmt::Kind::Store) {
        for (ExprId e : s.index) map_expr(e, next, axes, renamed, mapped);
        copy.index = coordinates(s.index.data(), s.index.size(), s.id, mapped, axes);
      }
      copy.body = rebuild(s.body, next, inner, axes, renamed, mapped);
      if (s.kind == Stmt::Kind::Loop && s.id == inner) {  // the outer loop, already around it, runs for both
        for (Stmt& t : copy.body) result.push_back(std::move(t));
      } else {
        result.push_back(std::move(copy));
      }
    }
    return result;
  }

  Group& g_;
  std::set<ExprId> reachable_;
  std::vector<Access> accesses_;
  std::vector<std::pair<ParamId, const std::vector<ExprId>*>> stores_;
  std::set<LoopId> plain_;
};

}  // namespace

void collapse(Group& group) {
  while (Collapser(group).step()) {
  }
}

}  // namespace weft::loop
