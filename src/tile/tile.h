// Tile IR: a program owns tiles, values of rank 0 to 2 and known sizes, and computes on them whole. What Triton is, in
// C++. How a tile is spread over registers (kernel/simd) or warps and lanes (kernel/simt) is decided below.
//
// Axis 1 of a tile runs over lanes, axis 0 over rows. A memory operand is (buffer, element index): loads and stores
// take i64 index tiles, and the levels below find out from the index arithmetic whether an access is contiguous.
// Semantics of arithmetic: as Graph IR. A load whose mask is false makes no access and gives 0. Programs of a grid run
// in any order and must not write what another reads or writes, but by atomics.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/scalar.h"
#include "ssa/function.h"

namespace weft::tile {

enum class Op : std::uint16_t {
#define OP(id, name, operands, results, regions, imm, pure, doc) id,
#include "tile/ops.def"
#undef OP
};

const ssa::OpTable& op_table();
std::optional<ScalarOp> as_scalar(Op op);  // the scalar rows come first in both tables, in the same order
inline Op from_scalar(ScalarOp op) { return static_cast<Op>(op); }

using ssa::Function;
using ssa::Type;
using ssa::ValueId;

Result<void> verify(const Function& function);  // structure and the types that each op demands

// Builds tile programs; broadcasts scalars and size-1 axes of arithmetic operands implicitly (by inserting broadcast),
// folds constants and trivial identities (x+0, x*1, select of a constant, ...) and merges equal pure instructions of
// the same block or an enclosing one.
class Builder : public ssa::FunctionBuilder {
 public:
  explicit Builder(std::string name);
  ~Builder();

  ValueId constant(DType dtype, double value);
  ValueId constant_i64(std::int64_t value, DType dtype = DType::I64);
  ValueId size(int number);
  ValueId program_id();
  ValueId iota(int rows, int cols, int axis);
  ValueId broadcast(ValueId x, int rows, int cols);
  ValueId scalar(ScalarOp op, std::vector<ValueId> operands);       // all but casts
  ValueId cast(ValueId x, DType dtype);
  ValueId bitcast(ValueId x, DType dtype);
  ValueId add(ValueId a, ValueId b) { return scalar(ScalarOp::Add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return scalar(ScalarOp::Sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return scalar(ScalarOp::Mul, {a, b}); }
  ValueId min(ValueId a, ValueId b) { return scalar(ScalarOp::Min, {a, b}); }
  ValueId lt(ValueId a, ValueId b) { return scalar(ScalarOp::Lt, {a, b}); }
  ValueId logical_and(ValueId a, ValueId b) { return scalar(ScalarOp::And, {a, b}); }
  ValueId select(ValueId c, ValueId a, ValueId b) { return scalar(ScalarOp::Select, {c, a, b}); }
  // The result has the index's shape; mask < 0: none.
  ValueId load(int buffer, ValueId index, ValueId mask = -1);
  void store(int buffer, ValueId value, ValueId index, ValueId mask = -1);  // value and mask broadcast to the index
  ValueId reduce(Combine combine, ValueId x, int axis);
  ValueId scan(Combine combine, ValueId x, int axis);  // Sum, Prod, Max or Min
  ValueId atomic(Combine combine, int buffer, ValueId value, ValueId index, ValueId mask = -1);  // Sum, Max or Min
  ValueId dot(ValueId a, ValueId b, ValueId acc);
  ValueId transpose(ValueId x);
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

Op reduce_op(Combine combine);
Op scan_op(Combine combine);
Op atomic_op(Combine combine);
std::optional<Combine> as_reduce(Op op);  // what a reduce op combines by
std::optional<Combine> as_scan(Op op);
std::optional<Combine> as_atomic(Op op);
bool atomic_on(DType dtype, Combine combine);  // whether there is such an atomic: add of 32 and 64 bits, else integers

// interpret.cpp. Buffers as the function declares its Memory ones; every access is checked against `elements` of the
// buffer. A failed check or access is an error naming the op, and so is a race: an element that one program writes and
// another one reads or writes, unless both do so by atomics.
struct BufferView {
  void* data;
  std::int64_t elements;
};

// What programs do to memory, over all programs of a run.
class Watch {
 public:
  explicit Watch(std::span<const BufferView> buffers);
  enum class Access : std::uint8_t { Load, Store, Atomic };
  // Null, or what is wrong.
  const char* touch(int buffer, std::int64_t element, std::int64_t program, Access access);

  std::int64_t bytes_loaded = 0, bytes_stored = 0;

 private:
  struct Element {
    std::int64_t writer = kNobody, reader = kNobody;
    bool atomic = false;  // its writer
  };
  static constexpr std::int64_t kNobody = -1, kSeveral = -2;
  std::vector<std::int64_t> sizes_;
  std::vector<std::vector<Element>> elements_;  // by buffer, from its first access on
};

// Runs programs [0, grid) in order.
Result<void> interpret(const Function& function, std::span<const BufferView> buffers, std::span<const std::int64_t> sizes,
                       std::int64_t grid, Watch* watch = nullptr);

// One program, instruction by instruction; the function may grow meanwhile.
class Stepper {
 public:
  Stepper(const Function& function, std::span<const BufferView> buffers, std::span<const std::int64_t> sizes,
          std::int64_t program, Watch& watch);
  ~Stepper();
  Result<void> run(const ssa::Inst& inst);
  const std::vector<Scalar>& value(ValueId v) const;  // row-major

 private:
  class Program;
  std::unique_ptr<Program> program_;
};

}  // namespace weft::tile
