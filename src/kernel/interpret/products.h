// Products of four warps that run beside their threads: where their operands lie, what they give, and which are on their way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

// The registers of a sum that products add to one after the other: of one value, then of the next one.
struct Accumulator {
  std::vector<Scalar> lanes;  // by thread of 128 and element
  int pending = 0;            // products on their way that add to it
};

struct Product {
  int first = 0;                              // of its threads
  ssa::BlocksImm blocks;
  std::shared_ptr<Accumulator> sum;
  int columns = 0, steps = 0;
  std::vector<double> left;                   // by row and step, when it comes from registers
  std::vector<std::int64_t> a, b;             // elements on chip by (row or column, step)
};

// Adds to sum[row, column], rounding to f32 once; of whole numbers, wrapping to i32.
void multiply(const Product& p, bool whole, const std::function<double(int buffer, std::int64_t element)>& read);

// Of each four warps, what they have asked for and not waited for, and the values that stand for it meanwhile.
class ProductQueues {
 public:
  explicit ProductQueues(int threads) : queues_(static_cast<std::size_t>(threads / kGroupThreads + 1)) {}

  void add(Product p) {
    ++p.sum->pending;
    queues_[static_cast<std::size_t>(number(p.first))].add(std::move(p));
  }
  void commit(int first) { queues_[static_cast<std::size_t>(number(first))].commit(); }
  std::vector<Product> finish(int first, std::int64_t left) {
    std::vector<Product> done = queues_[static_cast<std::size_t>(number(first))].finish(left);
    for (const Product& p : done) --p.sum->pending;
    return done;
  }
  int pending() const {
    std::size_t n = 0;
    for (const auto& queue : queues_) n += queue.pending();
    return static_cast<int>(n);
  }

  // A value whose registers products add to, or that has handed them on: neither may be read.
  bool none() const { return values_.empty(); }
  bool flying(ValueId v, int thread) const { return values_.count({v, number(thread)}) != 0; }
  bool holds(ValueId v, int thread) const {
    const auto it = values_.find({v, number(thread)});
    return it != values_.end() && it->second != nullptr;
  }
  // The registers, handed on; null: they were before.
  std::shared_ptr<Accumulator> take(ValueId v, int thread) { return std::exchange(values_[{v, number(thread)}], nullptr); }
  void give(ValueId v, int thread, std::shared_ptr<Accumulator> sum) { values_[{v, number(thread)}] = std::move(sum); }
  void forget(ValueId v, int thread) { values_.erase({v, number(thread)}); }
  void forget_all() { values_.clear(); }

 private:
  static int number(int thread) { return thread / kGroupThreads; }
  std::vector<WorkQueue<Product>> queues_;
  std::map<std::pair<ValueId, int>, std::shared_ptr<Accumulator>> values_;
};

}  // namespace weft::kernel
