// The state of running one function; the methods are in interpret.cpp, those of threads together in group.cpp. Private to
// interpret/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "kernel/interpret/copies.h"
#include "kernel/interpret/products.h"
#include "kernel/interpret/shadow.h"
#include "kernel/kernel.h"

namespace weft::kernel {

class Interpreter {
 public:
  Interpreter(const Function& f, std::span<const BufferView> buffers,
              std::span<const std::int64_t> sizes, std::int32_t* check, Copies copies);
  Result<void> allocate();
  Result<void> program(std::int64_t pid);

 private:
  // Lanes of a thread's value.
  Scalar* lanes(ValueId v, int thread) {
    return cells_.data() + offsets_[v] + static_cast<std::size_t>(thread * f_.type(v).elements());
  }
  int count(ValueId v) const { return static_cast<int>(f_.type(v).elements()); }
  DType dtype(ValueId v) const { return f_.type(v).dtype; }

  Error bad(const char* code, const ssa::Inst& i, const std::string& what) const;
  void assign(std::span<const ValueId> to, std::span<const ValueId> from);
  Result<void> block(const ssa::Block& b);
  // A thread leaves when its own count is done; the others go on without it.
  Result<void> loop(const ssa::Inst& i);
  Result<void> branch(const ssa::Inst& i);
  void elementwise(const ssa::Inst& i, ScalarOp op);
  void reduce(const ssa::Inst& i, int thread);
  // Calls visit(lane, element) for the lanes that the mask lets through; `first` is the index's
  // operand.
  template <class Visit>
  Result<void> access(const ssa::Inst& i, int thread, int width, int first, Visit visit);
  Result<void> watch(const ssa::Inst& i, int thread, std::int64_t at);
  Result<void> read(const ssa::Inst& i, int thread);
  Result<void> write(const ssa::Inst& i, int thread);
  Result<void> atomic(const ssa::Inst& i, int thread, Combine how);
  void unit(const ssa::Inst& i, int thread);  // exp2_unit, saturate
  void ldexp(const ssa::Inst& i, int thread);
  void words(const ssa::Inst& i, int thread);
  void dot4(const ssa::Inst& i, int thread);
  // A tile's rows, as load_tile or store_tile reaches them.
  template <class Visit>
  Result<void> access_tile(const ssa::Inst& i, ValueId tile, ValueId index, ValueId stride, Visit visit);
  Result<void> load_tile(const ssa::Inst& i);
  Result<void> store_tile(const ssa::Inst& i);
  void multiply_tiles(const ssa::Inst& i);
  // As x86's unit does it.
  void dot2(const ssa::Inst& i, int thread);
  Result<void> check(const ssa::Inst& i, int thread);

  // group.cpp: what threads do together, and beside them
  Result<void> barrier(const ssa::Inst& i);
  Result<void> shuffle(const ssa::Inst& i);
  // The first threads of the active warps (or fours of warps), all of whose lanes must be.
  Result<std::vector<int>> whole_warps(const ssa::Inst& i, int threads = kMatrixWarp) const;
  Result<void> multiply_matrix(const ssa::Inst& i);
  Result<void> load_matrix(const ssa::Inst& i);
  // Values that products on their way will give are not there.
  Result<void> there(std::span<const ValueId> values) const;
  // The index of a block, which all threads of four warps must agree on.
  Result<std::int64_t> block_index(const ssa::Inst& i, ValueId index, int first, DType t);
  // The elements of an operand on chip, from now on read by a product.
  Result<std::vector<std::int64_t>> begin_block(const ssa::Inst& i, const ssa::BlockImm& block, std::int64_t at, int others, int steps);
  Result<void> multiply_group(const ssa::Inst& i);
  std::shared_ptr<Accumulator> accumulator(ValueId v, int first);  // registers that hold it
  void multiply(const Product& p, bool whole);
  // As assign, of a loop's values: sums that are on their way are handed on.
  Result<void> carry(std::span<const ValueId> to, std::span<const ValueId> from);
  Result<void> wait_products(const ssa::Inst& i);
  Result<void> fence_products(const ssa::Inst& i);
  Result<void> commit_products(const ssa::Inst& i);
  bool early() const { return copies_ == Copies::Early || (copies_ == Copies::ByTurns && now_.program % 2 == 0); }

  void copy(const CopyQueues::Copy& c);
  Result<void> copy_async(const ssa::Inst& i, int thread);
  void wait_copies(const ssa::Inst& i, int thread);
  Result<void> all_arrived();

  void source(const ssa::Inst& i, int thread);
  // What a thread does without the others.
  Result<void> alone(const ssa::Inst& i, int thread);
  Result<void> inst(const ssa::Inst& i);

  const Function& f_;
  std::vector<BufferView> views_;
  std::span<const std::int64_t> sizes_;
  std::int32_t* check_;
  const Copies copies_;
  CopyQueues queues_;
  ProductQueues products_;
  std::vector<std::uint32_t> defined_;          // ticks, by value
  std::vector<std::uint32_t> fences_, fenced_;  // ... of fence_shared by thread; those before the last barrier
  std::vector<std::uint32_t> product_fences_;   // ... of fence_products by fours of warps
  std::vector<Tensor> storage_;
  std::vector<Shadow> shadows_;       // by buffer, when there are several threads
  std::vector<std::size_t> offsets_;  // by value, into cells_
  std::vector<Scalar> cells_;
  std::vector<int> active_;  // threads, ascending
  Moment now_;
};

}  // namespace weft::kernel
