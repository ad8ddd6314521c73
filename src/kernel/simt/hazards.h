// Where barriers stand: which buffers threads have read and written since the last one.
#pragma once

#include <vector>

#include "ssa/function.h"

namespace weft::kernel::simt {

class Hazards {
 public:
  explicit Hazards(const ssa::Function& tile_function);

  void add_buffer() { now_.push_back({}), read_back_.push_back(true); }

  bool read_needs_barrier(int buffer) const { return now_[buffer].written; }
  // `fixed`: the index is made of ids, sizes and counters. Stores of such indices to a buffer that is not read back do
  // not meet within one list of statements: parallel loops write each element once, serial ones by the same thread.
  bool write_needs_barrier(int buffer, const ssa::Block* place, bool fixed, bool in_loop) const;
  void read(int buffer) { now_[buffer].read = true; }
  void written(int buffer, const ssa::Block* place) { now_[buffer].written = true, now_[buffer].place = place; }
  void barrier();

  // Accesses since the last barrier, of each buffer.
  struct Access {
    bool read = false, written = false;
    const ssa::Block* place = nullptr;  // of the last store
  };
  using State = std::vector<Access>;
  const State& state() const { return now_; }
  void restore(State state) { now_ = std::move(state); }
  void meet(const State& other);              // what either has
  void enter_loop(const ssa::Block& body);    // an iteration may follow another one

 private:
  void collect(const ssa::Block& block);
  const ssa::Function& f_;
  State now_;
  std::vector<bool> read_back_;  // by buffer: written and read by the program
};

}  // namespace weft::kernel::simt
