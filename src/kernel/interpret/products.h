// Products of four warps that run beside their threads: where their operands lie, what they give, and which are on their way.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/scalar.h"
#include "kernel/interpret/queue.h"
#include "kernel/kernel.h"

namespace weft::kernel {

// The element (row of a or column of b, step) of an operand on chip that begins at `index`.
std::int64_t block_element(const ssa::BlockImm& block, DType dtype, std::int64_t index, int other, int step);

// Where a thread of 128 holds element `n` of its share of a sum.
struct SumElement {
  int row = 0, column = 0;
};
SumElement sum_element(int thread, int n);
// The same of the words of a left operand in registers: a row and a step.
SumElement left_element(int thread, int n, int word);

struct Product {
  int first = 0;                              // of its threads
  ssa::BlocksImm blocks;
  ValueId sum = -1, result = -1;
  int columns = 0, steps = 0;
  std::vector<double> left;                   // by row and step, when it comes from registers
  std::vector<std::int64_t> a, b;             // elements on chip by (row or column, step)
};

// sum[row, column] + the products, rounded to f32 once.
void multiply(const Product& p, const std::function<double(int buffer, std::int64_t element)>& read,
              const std::function<Scalar&(ValueId v, int thread, int n)>& lane);

// Of each four warps, what they have asked for and not waited for.
class ProductQueues {
 public:
  explicit ProductQueues(int threads) : queues_(static_cast<std::size_t>(threads / kGroupThreads + 1)) {}

  void add(Product p) {
    flying_.insert({p.result, number(p.first)});
    queues_[static_cast<std::size_t>(number(p.first))].add(std::move(p));
  }
  void commit(int first) { queues_[static_cast<std::size_t>(number(first))].commit(); }
  std::vector<Product> finish(int first, std::int64_t left) {
    std::vector<Product> done = queues_[static_cast<std::size_t>(number(first))].finish(left);
    for (const Product& p : done) flying_.erase({p.result, number(first)});
    return done;
  }
  bool none() const { return flying_.empty(); }
  bool flying(ValueId v, int thread) const { return flying_.count({v, number(thread)}) != 0; }
  int pending() const { return static_cast<int>(flying_.size()); }

 private:
  static int number(int thread) { return thread / kGroupThreads; }
  std::vector<WorkQueue<Product>> queues_;
  std::set<std::pair<ValueId, int>> flying_;  // sums that are not there yet
};

}  // namespace weft::kernel
