// Kernel IR: structured loops over scalars and vectors, memory by (buffer, element index), check codes. The last level
// before code; emitters (codegen/) walk it and are the first to form pointers.
//
// One program is run by `threads` threads (one, unless kernel/simt made the function), in warps of consecutive ones. Each
// has values of its own; on-chip buffers are shared. Between two barriers no thread may access an element that another
// one writes. A barrier, and a shuffle for its warp, must be reached by all threads alike. A vector access of a function
// with several threads is aligned: its index is a multiple of its lanes.
//
// `multiply_matrix` is a warp's: all of its lanes take part. A word is 4 bytes of neighbouring steps: two of f16 or bf16, four of i8
// or u8, or of f8e4m3fn or f8e5m2, one of f32, whose 13 low bits do not count (tf32). Lane l, with g = l / 4 and t = l % 4, holds words of a (rows
// by words of steps) of rows g, g + 8, g, g + 8 and words t, t, t + 4, t + 4; of b (words by columns) words t and t + 4 of
// column g; of the sum rows g and g + 8 of columns 2t and 2t + 1. Sums are i32 for bytes, exact and wrapping, else f32, and
// the order in which these are added, and of f8 how exactly, is the machine's.
//
// `load_matrix` fetches such words for it: row r of matrix m (8 rows of 4 words each) begins at the index of lane 8m + r, and
// lane l gets word t of row g of each matrix. Turned, of elements of 16 bits: lane l gets elements g of rows 2t and 2t + 1.
//
// `multiply_group` is that of four warps, 128 threads whose first is a multiple of 128. Warp w of them and lane l hold, of the
// sum, row 16 w + g + 8 h of columns 8 j + 2t and 8 j + 2t + 1, as elements 4 j + 2 h and 4 j + 2 h + 1; of a left operand in
// registers what multiply_matrix wants of the 16 rows of the warp. An operand on chip begins at its index and lies in rows of
// 2^row bytes, 32, 64 or 128, eight of which follow each other, the next eight 2^stride bytes on. A row holds steps
// of one row of a or column of b; or, turned (of 16 bits), of one step neighbouring rows of a or columns of b, the others of which
// are 2^leading bytes on each. In the address that results, in bytes, bits 7 and up are exclusive-ored to bits 4 to row - 1, so that
// the 16 bytes of equal steps lie in other banks. Buffers begin at multiples of kGroupAlign bytes.
//
// It runs beside its threads from when it is asked for at the earliest to the wait for its group at the latest. Until then
// its sum may only be that of one more product, or what a loop carries, and nobody may write where it reads. It was written before a
// fence_shared of the writer and a barrier behind that; its sum and its words before a fence_products.
//
// `copy_async` runs beside its thread, from when it is asked for at the earliest to the wait for its group at the latest:
// until then nobody may access where it writes. It reads buffers that the function does not write.
//
// Values of rank 2 are tiles of a processor's matrix unit (x86's AMX): 16 rows of 64 bytes, which only load_tile,
// store_tile, zero_tile, multiply_tiles and the values that loops carry know. There are eight registers for them; a sum
// is consumed by the product that adds to it. Of bf16, subnormal operands and results count as 0, and the order in which
// products are added is the machine's; of bytes, sums wrap.
//
// Arithmetic: as Graph IR (integer division by zero gives 0, shifts by the width give 0 or the sign, max and min
// propagate NaN, float to integer casts clamp). No reassociation; `fma` only where written. bool is i1 in registers
// and one byte (0 or 1) in memory; f16 and bf16 exist in memory and for casts, arithmetic on them is done in f32.
// Indices are i64 element counts and must be in range: kernels are built so that they are.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/machine.h"
#include "base/scalar.h"
#include "ssa/function.h"

namespace weft::kernel {

constexpr int kMatrixWarp = 32, kMatrixRows = 16, kMatrixColumns = 8;  // of multiply_matrix
constexpr int kMatrixWords = 8;                                        // of steps
constexpr int kPartRows = 8, kPartWords = 4;                           // of a matrix of load_matrix
constexpr int kGroupThreads = 4 * kMatrixWarp, kGroupRows = 64;        // of multiply_group
constexpr int kGroupAlign = 1024;
inline int word_elements(DType t) { return 32 / bits(t); }

enum class Op : std::uint16_t {
#define OP(id, name, operands, results, regions, imm, pure, doc) id,
#include "kernel/ops.def"
#undef OP
};

const ssa::OpTable& op_table();
std::optional<ScalarOp> as_scalar(Op op);
std::optional<Combine> as_atomic(Op op);  // what it combines by
inline Op from_scalar(ScalarOp op) { return static_cast<Op>(op); }

using ssa::Function;
using ssa::Type;
using ssa::ValueId;

Result<void> verify(const Function& function);

inline Type matrix_tile(DType dtype) { return Type::tile(dtype, kTileRows, kTileRowBytes * 8 / bits(dtype)); }

// Builds kernels. Pure instructions are merged when equal (value numbering over the enclosing blocks) and placed in the
// outermost block where their operands are known, which hoists loop invariants; constants and trivial identities fold.
// Out of a branch move only constants and i64 scalar arithmetic: other work stays with the branch that asks for it.
// Operand types must match exactly: splat() is explicit.
class Builder : public ssa::FunctionBuilder {
 public:
  explicit Builder(std::string name);
  ~Builder();

  // As the base's, and numbered: for pure instructions the result may be an earlier equal one.
  std::vector<ValueId> append(Op op, std::vector<ValueId> operands, std::vector<Type> results, std::int64_t imm = 0,
                              double fimm = 0);

  ValueId constant(DType dtype, double value);
  ValueId constant_i64(std::int64_t value, DType dtype = DType::I64);
  ValueId size(int number);
  ValueId program_id();
  ValueId thread_id();
  void barrier();
  ValueId shuffle(ValueId x, ValueId lane);
  ValueId splat(ValueId x, int lanes);  // lanes 0: the scalar itself
  ValueId iota(DType dtype, int lanes);
  ValueId extract(ValueId x, int lane);
  ValueId insert(ValueId x, ValueId scalar, int lane);
  ValueId interleave(ValueId a, ValueId b, int half);
  ValueId scalar(ScalarOp op, std::vector<ValueId> operands);
  ValueId cast(ValueId x, DType dtype);
  ValueId bitcast(ValueId x, DType dtype);
  ValueId ldexp(ValueId x, ValueId n);
  ValueId multiply_matrix(ValueId a, ValueId b, ValueId sum);
  ValueId load_matrix(int buffer, ValueId index, int matrices, bool turned);
  ValueId multiply_group(const ssa::BlocksImm& blocks, ValueId a, ValueId b, ValueId sum);
  void fence_products();
  void fence_shared();
  void commit_products();
  ValueId wait_products(ValueId sum, int groups_left);
  void copy_async(ssa::CopyImm copy, ValueId to, ValueId from, ValueId mask = -1);
  void commit_copies();
  void wait_copies(int groups_left);
  ValueId words(ValueId elements);
  ValueId dot4(ValueId a, ValueId b, ValueId sum);
  ValueId zero_tile(DType dtype);
  ValueId load_tile(int buffer, ValueId index, ValueId stride);
  void store_tile(int buffer, ValueId tile, ValueId index, ValueId stride);
  ValueId multiply_tiles(ValueId a, ValueId b, ValueId sum);
  ValueId dot2(ValueId a, ValueId b, ValueId sum);
  ValueId select(ValueId c, ValueId a, ValueId b) { return scalar(ScalarOp::Select, {c, a, b}); }
  ValueId add(ValueId a, ValueId b) { return scalar(ScalarOp::Add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return scalar(ScalarOp::Sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return scalar(ScalarOp::Mul, {a, b}); }
  ValueId constant_like(ValueId x, double value);  // of x's type, splat over its lanes
  ValueId load(int buffer, ValueId index, int lanes, ValueId mask = -1);  // lanes 0: a scalar
  void store(int buffer, ValueId value, ValueId index, ValueId mask = -1);
  ValueId gather(int buffer, ValueId index, ValueId mask = -1);
  void scatter(int buffer, ValueId value, ValueId index, ValueId mask = -1);
  ValueId atomic(Combine combine, int buffer, ValueId value, ValueId index, ValueId mask = -1);  // Sum, Max or Min
  ValueId reduce(Combine combine, ValueId x);
  void check(ValueId ok, int code);
  Loop begin_for(ValueId lo, ValueId hi, ValueId step, std::vector<ValueId> inits);
  std::vector<ValueId> end_for(std::vector<ValueId> next);
  void begin_if(ValueId cond, std::vector<Type> results);
  void begin_else(std::vector<ValueId> yields);
  std::vector<ValueId> end_if(std::vector<ValueId> yields);

 private:
  struct Numbering;
  std::unique_ptr<Numbering> numbering_;
};

// By value id, which register of the matrix unit a tile lies in, -1 for what is no tile; empty where there are no tiles.
// Nothing where more are alive at a time than there are registers.
std::optional<std::vector<int>> tile_registers(const Function& function);

// math/: replaces transcendental instructions by polynomials over the remaining ops. What is left of float ops: add, sub,
// mul, div, fma, max, min, comparisons, select, casts, ldexp, sqrt, ceil, floor, round, trunc, abs and neg.
struct MathUnits {
  bool exp2 = false;  // exp2_unit and saturate, which are left then, too
};
MathUnits math_units(const Machine& machine);
Result<void> expand_math(Function& function, MathUnits units = {});

// interpret/: as tile::interpret, for one function over programs [0, grid). The threads of a program go in step, each
// instruction by all before the next one, and what would make another order give another result is an error: a race
// between barriers or between programs, a barrier that not all threads reach, a shuffle from a lane that is not there,
// on-chip memory read before it was written, an unaligned vector, an access to where a copy is on its way, a write to
// where a product on its way reads, a product without its fences, a sum that was not waited for.
//
// A copy or a product that runs beside its threads happens when it is asked for, when it is waited for, or (by turns) the one in programs
// of even number and the other in the rest.
enum class Copies : std::uint8_t { Early, Late, ByTurns };
struct BufferView {
  void* data;
  std::int64_t elements;
};
Result<void> interpret(const Function& function, std::span<const BufferView> buffers, std::span<const std::int64_t> sizes,
                       std::int64_t grid, Copies copies = Copies::ByTurns);

// The same for a device of its own: a check that fails writes its code to `check`, and the run goes on.
Result<void> simulate(const Function& function, std::span<const BufferView> buffers, std::span<const std::int64_t> sizes,
                      std::int64_t grid, std::int32_t& check);

}  // namespace weft::kernel
