// The least cut of a directed graph: nodes on two sides, and what the edges from the first to the second weigh together.
// Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.
#pragma once

#include <vector>

namespace weft::compiler {

class MinCut {
 public:
  using Node = int;
  static constexpr Node kFirst = 0, kSecond = 1;  // stand for the sides themselves

  MinCut() : out_(2) {}
  Node add_node();
  // Costs `weight` when `from` ends on the first side and `to` on the second.
  void add_edge(Node from, Node to, double weight);
  // As an edge that no cut goes through.
  void forbid(Node from, Node to) { add_edge(from, to, kForbidden); }
  // By node: whether it is on the second side. To be called once.
  std::vector<bool> solve();

 private:
  static constexpr double kForbidden = 1e18;
  struct Edge {
    Node to;
    double room;  // the reverse edge is the next one, or the one before: ids differ in their last bit
  };
  bool find_levels();
  double push(Node node, double most);

  std::vector<Edge> edges_;
  std::vector<std::vector<int>> out_;  // by node: edges
  std::vector<int> level_;
  std::vector<std::size_t> next_;      // by node: the first edge that may still take something
};

}  // namespace weft::compiler
