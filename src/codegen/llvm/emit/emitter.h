// Writes one kernel function as LLVM IR. Private to codegen/llvm; LLVM's headers stay in the .cpp files.
//
// Registers: bool is i1, integers iN without sign, f16 `half`, bf16 its bits as i16 (so that conversions are exact
// everywhere, denormals included), f32 and f64 themselves. Vectors are of those.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"

namespace llvm {
class BasicBlock;
class Constant;
class Function;
class IRBuilderBase;
class Instruction;
class Module;
class PHINode;
class Type;
class Value;
}  // namespace llvm

namespace weft::codegen {

llvm::Value* same_number(llvm::Value* x, std::int64_t v);  // a constant of x's type
llvm::Type* like(llvm::Type* element, llvm::Value* x);     // as many of `element` as x has

Result<void> check_types(const kernel::Function& function);  // refuses dtypes that have no registers

struct Isa {
  bool avx512 = false;  // with VL, DQ and BW: all vector widths, all element types
  bool fma = false;
  bool f16c = false;    // conversions between f16 and f32
  bool nan_max = false; // a max and a min that give NaN when either operand is
  bool vector_divide = false;  // of integers
  bool groups = false;  // a kernel of a grid of groups of threads, in address spaces
  bool spirv = false;   // ... as SPIR-V has them, else as NVPTX
  bool shuffles = false;  // in SPIR-V: within subgroups, which are asked to be warps
  int sve_bits = 0;     // of the scalable vectors of AArch64, exactly; 0: not used
  bool x86 = false;     // SSE2 at least
  bool avx2 = false;
  bool vnni = false;    // dot products of bytes, AVX-512's at all widths
  bool amx = false;     // tiles of bf16 and of bytes
  bool vnni_vex = false;  // the same up to 256 bits, without AVX-512
  bool bf16_pairs = false;  // dot products of bf16, two at a time
};

class Emitter {
 public:
  Emitter(llvm::Module& module, llvm::IRBuilderBase& builder, const Isa& isa, const kernel::Function& function);
  Result<void> run(const std::string& symbol);

 private:
  // function.cpp: frame, control flow
  void open_frame(const std::string& symbol);
  Result<void> block(const ssa::Block& block);
  Result<void> inst(const ssa::Inst& inst);
  Result<void> for_loop(const ssa::Inst& inst);
  Result<void> if_else(const ssa::Inst& inst);
  void check(const ssa::Inst& inst);
  void erase_unused();
  bool hoistable(const ssa::Inst& inst) const;
  llvm::Value* simple(const ssa::Inst& inst);  // one result, no regions; null: no code for it
  void define(ssa::ValueId id, llvm::Value* value, int depth);
  llvm::BasicBlock* new_block(const char* name);

  // group.cpp: what a group of threads has
  Result<void> run_group(const std::string& symbol);
  void open_group_frame(const std::string& symbol);
  void open_kernel(const std::string& symbol, const std::vector<llvm::Type*>& parameters, unsigned convention);
  llvm::Value* shared_memory(const ssa::Buffer& buffer, std::size_t number);
  llvm::Value* special_register(unsigned intrinsic);
  void barrier();
  llvm::Value* shuffle(const ssa::Type& t, llvm::Value* x, llvm::Value* lane);
  llvm::Value* only_if(llvm::Value* mask, llvm::Type* type, const std::function<llvm::Value*()>& access);

  // spirv.cpp: the same in SPIR-V
  void open_spirv_frame(const std::string& symbol);
  llvm::Value* call_builtin(const std::string& name, llvm::Type* result, const std::vector<llvm::Value*>& arguments);
  llvm::Value* shuffle_subgroup(llvm::Value* x, llvm::Value* lane);
  llvm::Value* add_by_exchange(llvm::Value* pointer, llvm::Value* x);

  // units.cpp
  llvm::Value* math_unit(kernel::Op op, llvm::Value* x);
  llvm::Value* multiply_matrix(const ssa::Inst& inst);
  llvm::Value* load_matrix(const ssa::Inst& inst);
  llvm::Value* bytes_if(llvm::Value* mask, int bytes);
  void copy_async(const ssa::Inst& inst);
  void commit_copies();
  void wait_copies(const ssa::Inst& inst);

  // warpgroup.cpp
  llvm::Value* multiply_group(const ssa::Inst& inst);
  llvm::Value* wait_products(const ssa::Inst& inst);
  llvm::Value* block_descriptor(const ssa::BlockImm& block, ssa::ValueId index);
  llvm::Value* sums_by_assembly(const std::string& text, llvm::Value* sum, bool from_zero, const std::vector<llvm::Value*>& inputs,
                                const std::string& constraints);
  void fence_products();
  void fence_shared();
  void commit_products();

  // types.cpp
  llvm::Type* element(DType t) const;          // in a register
  llvm::Type* memory_element(DType t) const;   // in memory
  llvm::Type* type(const ssa::Type& t) const;
  llvm::Value* constant(const ssa::Inst& inst);
  llvm::Constant* number(DType t, double value, const ssa::Type& shape);  // splatted

  // memory.cpp
  llvm::Value* load(const ssa::Inst& inst);
  llvm::Value* gather(const ssa::Inst& inst);
  void store(const ssa::Inst& inst);
  void scatter(const ssa::Inst& inst);
  llvm::Value* atomic(const ssa::Inst& inst);
  llvm::Value* address(int buffer, ssa::ValueId index);
  llvm::Value* addresses(int buffer, ssa::ValueId index);  // a vector of pointers
  llvm::Value* lane_address(int buffer, ssa::ValueId index, int lane);
  llvm::Value* load_lanes(DType t, int lanes, llvm::Value* mask, const std::function<llvm::Value*(int)>& address);
  void store_lanes(DType t, llvm::Value* x, llvm::Value* mask, const std::function<llvm::Value*(int)>& address);
  struct Index;
  void split_index(ssa::ValueId index, int levels, Index& into) const;
  llvm::Value* sum(const std::vector<ssa::ValueId>& terms);
  llvm::Value* slot_unless(llvm::Value* mask, llvm::Value* pointer, llvm::Value* slot);
  llvm::Value* to_memory(llvm::Value* x, DType t);
  llvm::Value* from_memory(llvm::Value* x, DType t);

  // arithmetic.cpp (any dtype), integer.cpp
  llvm::Value* scalar(ScalarOp op, const ssa::Type& from, const ssa::Type& to, std::vector<llvm::Value*> x);
  llvm::Value* fma(DType t, const std::vector<llvm::Value*>& x);
  llvm::Value* unary_float(ScalarOp op, llvm::Value* x);
  llvm::Value* binary_float(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(ScalarOp op, DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* max_min_float(bool max, llvm::Value* a, llvm::Value* b);
  llvm::Value* ldexp(llvm::Value* x, llvm::Value* n, const ssa::Type& t);
  llvm::Value* unary_int(ScalarOp op, DType t, llvm::Value* x);
  llvm::Value* binary_int(ScalarOp op, DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide_int(ScalarOp op, DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* quotient(DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(ScalarOp op, DType t, llvm::Value* a, llvm::Value* b);

  // cast.cpp
  llvm::Value* cast(llvm::Value* x, DType from, DType to);
  llvm::Value* bitcast(llvm::Value* x, DType from, DType to);
  llvm::Value* widen(llvm::Value* x, DType from);   // f16, bf16 -> f32
  llvm::Value* narrow(llvm::Value* x, DType to);    // f32 -> f16, bf16
  llvm::Value* round_to_odd(llvm::Value* x);        // f64 -> f32, so that a second rounding is exact
  llvm::Value* float_to_int(llvm::Value* x, DType from, DType to);
  llvm::Value* int_to_float(llvm::Value* x, DType from, DType to);

  // soft.cpp
  llvm::Value* soft_fma_f32(llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* soft_fma_f64(llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* soft_widen_f16(llvm::Value* x);
  llvm::Value* soft_narrow_f16(llvm::Value* x);

  // words.cpp
  llvm::Value* words(llvm::Value* elements, const ssa::Type& to);
  llvm::Value* dot4(llvm::Value* a, llvm::Value* b, llvm::Value* sum);
  llvm::Value* dot4_by_unit(llvm::Value* a, llvm::Value* b, llvm::Value* sum);
  llvm::Value* dot4_by_pairs(llvm::Value* a, llvm::Value* b, llvm::Value* sum);
  llvm::Value* dot2(llvm::Value* a, llvm::Value* b, llvm::Value* sum);

  // tiles.cpp
  Result<void> assign_tiles();
  bool has_tiles() const { return !tile_registers_.empty(); }
  void configure_tiles();
  void release_tiles();
  llvm::Value* zero_tile(const ssa::Inst& inst);
  llvm::Value* load_tile(const ssa::Inst& inst);
  void store_tile(const ssa::Inst& inst);
  llvm::Value* multiply_tiles(const ssa::Inst& inst);
  llvm::Value* row_stride(const ssa::Inst& inst, ssa::ValueId stride);
  llvm::Value* tile_register(ssa::ValueId tile) const;

  // vector.cpp
  llvm::Value* splat(llvm::Value* x, int lanes);
  llvm::Value* iota(const ssa::Type& t);
  llvm::Value* interleave(llvm::Value* a, llvm::Value* b, int lanes, int half);
  llvm::Value* reduce(kernel::Op op, const ssa::Type& t, llvm::Value* x);
  llvm::Value* reduce_bools(bool all, llvm::Value* x);

  llvm::Module& module_;
  llvm::IRBuilderBase& b_;
  Isa isa_;
  const kernel::Function& f_;
  llvm::Function* fn_ = nullptr;

  struct Local {
    llvm::Value* value = nullptr;
    int depth = 0;                 // of loops around the definition; 0: the same for all programs
    const ssa::Inst* inst = nullptr;
  };
  std::vector<Local> values_;                // by value id
  std::vector<llvm::BasicBlock*> preheaders_;  // of the open loops, the loop over programs first
  std::vector<llvm::Value*> buffers_;
  std::vector<llvm::Value*> sizes_;
  std::vector<int> tile_registers_;  // by value id; empty: the kernel has no tiles
  llvm::Value* program_ = nullptr;
  llvm::Value* thread_ = nullptr;
  llvm::Value* status_ = nullptr;
  llvm::Value* zero_slot_ = nullptr;  // where masked scalar loads and stores go when off
  llvm::Value* sink_slot_ = nullptr;
  // Pointers already formed in the current block, by buffer and varying part of the index.
  std::map<std::pair<int, std::vector<ssa::ValueId>>, llvm::Value*> bases_;
  std::map<std::vector<ssa::ValueId>, llvm::Value*> sums_;  // in preheaders; per open loop
  // Pointers less their constant offsets, by element pointer and offset: of near_block_, where they end.
  std::map<std::pair<llvm::Value*, llvm::Value*>, llvm::Value*> near_;
  llvm::BasicBlock* near_block_ = nullptr;
};

}  // namespace weft::codegen
