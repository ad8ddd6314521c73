#include "compile/in_place.h"

#include <algorithm>
#include <optional>

namespace weft::compiler {

using loop::ExprId;
using loop::Group;
using loop::LoopId;
using loop::ParamId;
using loop::Stmt;

namespace {

// A read or write of a parameter: the loops around it, outermost first, and when it happens among the statements.
struct Access {
  std::vector<ExprId> at;
  std::vector<LoopId> loops;
  int statement = 0;
};

class Analysis {
 public:
  explicit Analysis(const Group& group) : g_(group), reads_(group.params.size()), writes_(group.params.size()) {
    std::vector<LoopId> loops;
    visit(group.body, loops);
  }

  bool possible(ParamId output, ParamId input) const {
    const loop::Param &out = g_.params[output], &in = g_.params[input];
    if (out.role != loop::Role::Output || in.role != loop::Role::Input || in.constant) return false;
    if (bits(out.dtype) != bits(in.dtype) || bits(out.dtype) < 8) return false;
    if (!(out.map == loop::StorageMap{}) || !(in.map == loop::StorageMap{})) return false;
    if (writes_[output].size() != 1 || !reads_[output].empty() || combines_) return false;
    const Access& write = writes_[output].front();
    return std::all_of(reads_[input].begin(), reads_[input].end(),
                       [&](const Access& read) { return harmless(output, write, input, read); });
  }

 private:
  void visit(const std::vector<Stmt>& body, std::vector<LoopId>& loops) {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Loop) {
        loops.push_back(s.id);
        if (s.value >= 0) add_reads(s.value, loops);
        visit(s.body, loops);
        loops.pop_back();
        continue;
      }
      ++statements_;
      add_reads(s.value, loops);
      for (ExprId e : s.index) add_reads(e, loops);
      if (s.kind != Stmt::Kind::Store) continue;
      writes_[s.id].push_back({s.index, loops, statements_});
      combines_ = combines_ || s.combine != Combine::None;
    }
  }

  void add_reads(ExprId root, const std::vector<LoopId>& loops) {
    for (ExprId id : loop::used_exprs(g_, root)) {
      const loop::Expr& e = g_.expr(id);
      if (e.op != loop::Op::Load && e.op != loop::Op::LoadIf) continue;
      const std::size_t skip = e.op == loop::Op::LoadIf ? 1 : 0;  // the condition
      reads_[e.id].push_back({{e.args.begin() + static_cast<std::ptrdiff_t>(skip), e.args.end()}, loops, statements_});
    }
  }

  bool harmless(ParamId output, const Access& write, ParamId input, const Access& read) const {
    if (read.statement > write.statement) return false;
    std::vector<LoopId> common;
    for (std::size_t k = 0; k < std::min(read.loops.size(), write.loops.size()); ++k) {
      if (read.loops[k] != write.loops[k]) break;
      common.push_back(read.loops[k]);
    }
    for (LoopId l : common) {
      if (g_.loops[l].kind != loop::LoopKind::Parallel && !g_.loops[l].extent.is(1)) return false;
    }
    if (same_element(output, write, input, read)) return true;
    return read.statement < write.statement && apart(output, write, input, read, common);
  }

  // Whether a coordinate means the same wherever it stands in an iteration.
  bool lasting(ExprId coordinate) const {
    const std::vector<ExprId> used = loop::used_exprs(g_, coordinate);
    return std::none_of(used.begin(), used.end(), [&](ExprId e) {
      const loop::Op op = g_.expr(e).op;
      return op == loop::Op::Local || op == loop::Op::Load || op == loop::Op::LoadIf;
    });
  }

  // The iteration reads the very element that it writes.
  bool same_element(ParamId output, const Access& write, ParamId input, const Access& read) const {
    if (g_.params[output].shape == g_.params[input].shape && write.at == read.at) {
      return std::all_of(read.at.begin(), read.at.end(), [&](ExprId e) { return lasting(e); });
    }
    const loop::Affine to = loop::address(g_, output, write.at), from = loop::address(g_, input, read.at);
    return to.valid && from.valid && to.constant == from.constant && to.terms == from.terms;
  }

  // Iterations of the common loops have parts of both to themselves: each of these loops is a coordinate of both.
  bool apart(ParamId output, const Access& write, ParamId input, const Access& read, const std::vector<LoopId>& common) const {
    if (!(g_.params[output].shape == g_.params[input].shape)) return false;
    return std::all_of(common.begin(), common.end(), [&](LoopId l) {
      if (g_.loops[l].extent.is(1)) return true;
      for (std::size_t d = 0; d < write.at.size(); ++d) {
        const loop::Expr& e = g_.expr(write.at[d]);
        if (write.at[d] == read.at[d] && e.op == loop::Op::Index && e.id == l) return true;
      }
      return false;
    });
  }

  const Group& g_;
  std::vector<std::vector<Access>> reads_, writes_;  // by parameter
  int statements_ = 0;
  bool combines_ = false;
};

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Group& group) {
  const Analysis analysis(group);
  std::vector<InPlacePair> pairs;
  const auto params = static_cast<ParamId>(group.params.size());
  for (ParamId output = 0; output < params; ++output) {
    for (ParamId input = 0; input < params; ++input) {
      if (analysis.possible(output, input)) pairs.push_back({output, input});
    }
  }
  return pairs;
}

}  // namespace weft::compiler
