// From what is decided about a group to a record. Private to schedule/.
#pragma once

#include "schedule/axes.h"
#include "schedule/schedule.h"

namespace weft::schedule {

// The product with the most points that runs over chosen lanes.
struct Product {
  const Leaf* leaf = nullptr;
  LoopId lanes = -1;
  std::optional<LoopId> rows;
  std::vector<LoopId> others;  // that could run over rows too, the best first
  bool outer = false;  // one operand is a column, the other a row
};

// What the model decides. None of it changes the order of a sum.
struct Choice {
  std::optional<LoopId> rows;  // of an outer product: the loop along them
  int row_tile = 1;
  int lane_tile = 0;           // elements, of the product's parallel lanes; 0: there are none
  int vectors = 4;             // at most, of tiles over other parallel lanes
  double program_work = 0;     // operations that are worth a program of their own
  bool unroll = true;          // short reductions are written out
  bool masked = false;         // one copy of the code, for whole tiles and for those that are cut off
  bool apart = false;          // sums of a tile are always finished row by row
};

class Tiler {
 public:
  Tiler(const Analysis& a, const Machine& m);

  const Product& product() const { return product_; }
  bool outer() const { return product_.rows && product_.outer; }
  bool fits_unit() const;  // the product is one for the machine's matrix unit
  // Whether the product has lanes whose tile is free.
  bool has_panels() const;
  // Rows of a tile whose elements the first-level cache holds while the lines are read.
  int most_rows(LoopId rows) const;
  int product_bits() const;
  double known_work(const Record& r) const;  // operations of one run that there are whatever the sizes
  Record record(const Choice& choice) const;
  bool fits_on_chip(const Record& r) const;  // what a group shares
  std::string kind(const Record& r) const;  // for people

 private:
  LoopId lane_of(const Leaf& leaf) const;
  void find_products();
  Product product_of(const Leaf& leaf) const;
  bool is_outer(const Leaf& leaf, LoopId r, LoopId lane) const;
  std::vector<const Access*> read_by_rows() const;
  void plan_lanes(LoopPlan& plan, LoopId l, const Choice& c) const;
  void plan_product(Record& r, const Choice& c) const;
  void plan_other_product(Record& r, const Product& product) const;
  void turn(Record& r) const;
  void words(Record& r) const;
  void deepen(Record& r) const;
  void use_unit(Record& r) const;
  bool takes_words(const Record& r, const Leaf& leaf) const;
  bool words_lie_ready(const Record& r, const Leaf& leaf, LoopId lane) const;
  bool takes_depth(const Record& r, const Leaf& leaf) const;
  double most(LoopId l) const;
  void pack(Record& r, int panel) const;
  void pack(Record& r, int panel, const Access& access) const;
  bool holds_long_code(LoopId l) const;
  void split_sums(Record& r) const;
  void equal_accumulators(Record& r) const;
  void unroll(Record& r) const;
  void finish_apart(Record& r, const Choice& c) const;
  void mask(Record& r) const;
  double steps(const Record& r, LoopId l) const;
  bool reuses_panel(LoopId l) const;
  std::vector<LoopId> grid_order() const;
  double cached_row_steps(const Record& r, const Choice& c) const;
  void grid(Record& r, const Choice& c) const;

  const Analysis& a_;
  const Machine& m_;
  const loop::Group& g_;
  std::vector<bool> lanes_;
  Product product_;
  std::vector<Product> products_;  // all, where several meet on chip
};

}  // namespace weft::schedule
