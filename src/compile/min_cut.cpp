#include "compile/min_cut.h"

#include <algorithm>

namespace weft::compiler {

namespace {
constexpr double kNothing = 1e-9;  // what rounding may leave of a weight
}

MinCut::Node MinCut::add_node() {
  out_.emplace_back();
  return static_cast<Node>(out_.size()) - 1;
}

void MinCut::add_edge(Node from, Node to, double weight) {
  out_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, weight});
  out_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

// Steps from the first side over edges with room.
bool MinCut::find_levels() {
  level_.assign(out_.size(), -1);
  level_[kFirst] = 0;
  std::vector<Node> queue{kFirst};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    for (int e : out_[queue[at]]) {
      const Edge& edge = edges_[e];
      if (edge.room <= kNothing || level_[edge.to] >= 0) continue;
      level_[edge.to] = level_[queue[at]] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[kSecond] >= 0;
}

// Sends as much as one path takes, at most `most`, along edges that go one level on. Paths are kept by hand: a graph may
// be as deep as a model is long.
double MinCut::push(Node node, double most) {
  std::vector<int> path;
  for (;;) {
    if (node == kSecond) break;
    std::size_t& k = next_[node];
    while (k < out_[node].size()) {
      const Edge& edge = edges_[out_[node][k]];
      if (edge.room > kNothing && level_[edge.to] == level_[node] + 1) break;
      ++k;
    }
    if (k < out_[node].size()) {
      path.push_back(out_[node][k]);
      node = edges_[path.back()].to;
      continue;
    }
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].to;  // a dead end: back by one
    path.pop_back();
    ++next_[node];
  }
  for (int e : path) most = std::min(most, edges_[e].room);
  for (int e : path) {
    edges_[e].room -= most;
    edges_[e ^ 1].room += most;
  }
  return most;
}

std::vector<bool> MinCut::solve() {
  while (find_levels()) {
    next_.assign(out_.size(), 0);
    while (push(kFirst, kForbidden) > 0) {
    }
  }
  std::vector<bool> second(out_.size());
  for (std::size_t n = 0; n < second.size(); ++n) second[n] = level_[n] < 0;
  return second;
}

}  // namespace weft::compiler
