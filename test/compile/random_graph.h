// Random small graphs over the prims, with sizes n and m open. Values are whole numbers as long as they are exact, so
// that ops with jumps (comparisons, casts to integers) never meet rounding; what is not exact only goes into smooth ops.
#pragma once

#include <random>

#include "graph/builder.h"

namespace weft::compiler::testing {

class RandomGraph {
 public:
  RandomGraph(std::uint32_t seed, int steps);
  const graph::Graph& graph() const { return g_; }
  std::mt19937& random() { return random_; }

 private:
  struct Info {
    bool exact = true;
    double most = 4;  // bound on the magnitude
  };
  using Make = void (RandomGraph::*)();

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  graph::ValueId any();
  graph::ValueId any_of(bool (*fits)(const graph::Type&));
  graph::ValueId any_like(const graph::Type& type);
  const graph::Type& type(graph::ValueId v) const { return g_.type(v); }
  Info info_of(graph::ValueId v) const { return static_cast<std::size_t>(v) < info_.size() ? info_[v] : Info(); }
  void keep(graph::ValueId v, bool exact, double most);
  graph::ValueId input(DType dtype, Shape shape);
  graph::ValueId number(DType dtype, double v) { return b_.scalar(dtype, v); }
  bool exact_enough(DType dtype, double most) const;

  void unary();
  void smooth();
  void binary();
  void divide();
  void compare();
  void choose();
  void cast();
  void reshape();
  void transpose();
  void broadcast();
  void slice();
  void pad();
  void concat();
  void reverse();
  void iota();
  void gather();
  void scatter();
  void reduce();
  void arg_reduce();
  void cumulative();
  void dot();
  void conv();
  void window();
  void sort();

  std::mt19937 random_;
  graph::Graph g_;
  graph::Builder b_{g_};
  std::vector<graph::ValueId> pool_;
  std::vector<Info> info_;
};

}  // namespace weft::compiler::testing
