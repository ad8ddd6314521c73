// What a schedule is decided from: accesses and their strides, products that are summed, likely
// sizes. Private to schedule/.
#pragma once

#include <optional>
#include <vector>

#include "cost/cost.h"
#include "loop/group.h"

namespace weft::schedule {

using loop::ExprId;
using loop::LoopId;
using loop::ParamId;
using loop::Stmt;

enum class Stride : std::uint8_t {
  None,
  Unit,
  Other
};  // along one loop: same element, next element, elsewhere

// Where an access is along one axis of its parameter, as a sum over loops.
struct Coordinate {
  bool known = true;                             // false: it depends on data; it may be anywhere
  std::vector<std::pair<LoopId, double>> terms;  // loop, elements that a step of it moves by
  double extent = 1;                             // of the axis, likely
};

struct Access {
  ParamId param = 0;
  bool store = false;
  std::vector<ExprId> at;       // coordinates
  std::vector<Stride> strides;  // by loop
  std::vector<Coordinate> coordinates;
  int bytes = 4;                // of an element
};

// A statement that is not a loop, with what it touches and what encloses it.
struct Leaf {
  const Stmt* stmt = nullptr;
  std::vector<LoopId> loops;  // outermost first
  std::vector<Access> accesses;
  std::int64_t operations = 0;
  bool product = false;        // update t sum= a * b
  int word = 0;                // of a product: steps that are taken in one word; 0: none
  std::vector<bool> lhs, rhs;  // of a product: the loops that a and b depend on
  double points = 1;           // at the likely sizes
};

struct Analysis {
  Analysis(const loop::Group& group, const DimFacts& facts, std::int64_t unknown = cost::kLikely);

  const loop::Group& group;
  const DimFacts& facts;
  const std::int64_t unknown;  // what a symbol counts as, within its range
  std::vector<Leaf> leaves;
  std::vector<LoopId>
      chain;  // parallel loops from the root that are the only statement of their list
  std::vector<std::vector<LoopId>> homes;  // by param: loops whose iterations each have their own on-chip memory
  std::vector<double> extents;  // by loop, likely
  std::vector<double> work;     // operations of one iteration of a loop, likely
  double total_work = 0;

  double likely(const Dim& d) const { return cost::estimate(d, facts, unknown); }
  double least(const Dim& d) const { return cost::estimate(d, facts, 1); }
  bool encloses(LoopId loop, const Leaf& leaf) const;
  // The terms of one sum that a step of a product's loops adds: the products added to its local there, itself included.
  std::vector<const Leaf*> terms(const Leaf& product) const;

  static constexpr std::int64_t kFew = 8;  // what a size counts as of which only a range is known, if it is small
};

}  // namespace weft::schedule
