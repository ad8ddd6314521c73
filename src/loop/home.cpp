#include <map>

#include "loop/group.h"

namespace weft::loop {
namespace {

class HomeFinder {
 public:
  explicit HomeFinder(const Group& g) : g_(g) {}

  std::vector<std::vector<LoopId>> run() {
    block(g_.body);
    std::vector<std::vector<LoopId>> result(g_.params.size());
    for (const auto& [param, home] : homes_) {
      if (home.affine) result[param] = home.loops;
    }
    return result;
  }

 private:
  struct Home {
    std::vector<LoopId> loops;
    bool affine = true;
  };

  void access(ParamId param, const ExprId* at, std::size_t rank) {
    if (g_.params[param].role != Role::OnChip) return;
    auto [it, fresh] = homes_.try_emplace(param);
    Home& home = it->second;
    if (fresh) home.loops = path_;
    std::size_t common = 0;
    while (common < home.loops.size() && common < path_.size() && home.loops[common] == path_[common]) ++common;
    home.loops.resize(common);
    for (std::size_t i = 0; i < rank; ++i) home.affine = home.affine && affine(g_, at[i]).valid;
  }

  void expr(ExprId root) {
    for (ExprId id : used_exprs(g_, root)) {
      const Expr& e = g_.expr(id);
      const std::size_t first = e.op == Op::LoadIf ? 1 : 0;
      if (e.op == Op::Load || e.op == Op::LoadIf) access(e.id, e.args.data() + first, e.args.size() - first);
    }
  }

  void block(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Loop) {
        path_.push_back(s.id);
        if (s.value >= 0) expr(s.value);
        block(s.body);
        path_.pop_back();
        continue;
      }
      expr(s.value);
      for (ExprId i : s.index) expr(i);
      if (s.kind == Stmt::Kind::Store) access(s.id, s.index.data(), s.index.size());
    }
  }

  const Group& g_;
  std::vector<LoopId> path_;
  std::map<ParamId, Home> homes_;
};

}  // namespace

std::vector<std::vector<LoopId>> on_chip_homes(const Group& group) {
  for (const Param& p : group.params) {
    if (p.role == Role::OnChip) return HomeFinder(group).run();
  }
  return std::vector<std::vector<LoopId>>(group.params.size());
}

}  // namespace weft::loop
