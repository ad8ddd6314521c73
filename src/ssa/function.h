// The structured SSA form that Tile IR and Kernel IR share: what differs between the two is an op table and a verifier.
//
// A function is one program of a grid. It has buffers (memory operands, addressed by element index), i64 size
// parameters, and a body: a block of instructions in which every value is defined once. Control flow is structured:
//   for  operands (lo, hi, step, init...)  one region, block arguments (iv, carried...), yields the next carried
//        values; results: the last carried values (init when it runs no time). Ascending, step > 0.
//   if   operand (cond: scalar bool)       two regions without arguments, each yields the results.
// A region sees all values of the blocks around it. Functions name nothing of their model: buffers, sizes and check
// codes are positional, so that equal functions print alike and share one kernel.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"

namespace weft::ssa {

// A scalar (rank 0), a vector (rank 1) or a tile (rank 2) of known sizes.
struct Type {
  DType dtype = DType::F32;
  std::uint8_t rank = 0;
  std::array<std::int32_t, 2> shape = {1, 1};

  static Type scalar(DType t) { return {t, 0, {1, 1}}; }
  static Type vector(DType t, int lanes) { return {t, 1, {lanes, 1}}; }
  static Type tile(DType t, int rows, int cols) { return {t, 2, {rows, cols}}; }
  int lanes() const { return rank == 0 ? 1 : shape[0]; }  // of a scalar or vector
  std::int64_t elements() const { return std::int64_t{shape[0]} * shape[1]; }
  Type with(DType t) const { return {t, rank, shape}; }
  friend bool operator==(const Type&, const Type&) = default;
};
std::string str(const Type& type);  // "f32", "f32[16]", "f32[14,32]"

// What an instruction's immediate means, and so how it prints.
enum class Imm : std::uint8_t { None, Int, Const, Buffer, Size, Axis, Check, Copy, Blocks };

// Imm::Copy: from one buffer to another, so many elements at once. Prints as "(to, from, elements)".
struct CopyImm {
  int to = 0, from = 0, elements = 1;
  std::int64_t packed() const { return to | std::int64_t{from} << 16 | std::int64_t{elements} << 32; }
  static CopyImm of(std::int64_t imm) {
    return {static_cast<int>(imm & 0xffff), static_cast<int>(imm >> 16 & 0xffff), static_cast<int>(imm >> 32)};
  }
};

// Imm::Blocks: where the two operands of a product lie on chip (kernel/kernel.h says what the numbers mean). Prints as
// "(buffer, row, turned, leading, stride, ...)", first the left one.
struct BlockImm {
  int buffer = 0;
  int row = 0;  // this and what follows: log2 of bytes
  bool turned = false;
  int leading = 0, stride = 0;
};
struct BlocksImm {
  BlockImm left, right;
  std::int64_t packed() const { return packed(left) | packed(right) << 26; }
  static BlocksImm of(std::int64_t imm) { return {block_of(imm), block_of(imm >> 26)}; }

 private:
  static std::int64_t packed(const BlockImm& b) {
    return b.buffer | std::int64_t{b.row} << 12 | std::int64_t{b.turned} << 15 | std::int64_t{b.leading} << 16 | std::int64_t{b.stride} << 21;
  }
  static BlockImm block_of(std::int64_t imm) {
    const auto field = [&](int from, int bits) { return static_cast<int>(imm >> from & ((1 << bits) - 1)); };
    return {field(0, 12), field(12, 3), field(15, 1) != 0, field(16, 5), field(21, 5)};
  }
};

struct OpInfo {
  const char* name;
  int operands;    // at least, when variadic
  bool variadic;
  int results;     // -1: as the regions yield
  int regions;
  Imm imm;
  bool pure;       // no effect, may be moved and merged
};

struct OpTable {
  const char* ir;  // "tile", "kernel"
  std::span<const OpInfo> ops;
};

using ValueId = std::int32_t;
struct Inst;

struct Block {
  std::vector<ValueId> args;
  std::vector<Inst> insts;
  std::vector<ValueId> yields;
};

struct Inst {
  std::uint16_t op = 0;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::int64_t imm = 0;   // Int, Buffer, Size, Axis, Check, Copy and Blocks (packed); Const of an integer or bool dtype
  double fimm = 0;        // Const of a float dtype
  std::vector<Block> regions;
};

constexpr int kMaxDepth = 64;  // of nested regions

enum class Space : std::uint8_t {
  Memory,  // the caller's
  OnChip,  // private to one program, shared by its threads, `elements` long, undefined at start
};

struct Buffer {
  DType dtype = DType::F32;
  Space space = Space::Memory;
  bool read = false;
  bool written = false;
  std::int64_t elements = 0;  // OnChip only
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct Function {
  const OpTable* table = nullptr;
  std::string name;
  std::vector<Buffer> buffers;  // those in Memory come first, in the order the caller passes them
  int sizes = 0;                // i64 parameters
  int threads = 1;              // that run one program together (Kernel IR only)
  int warp = 1;                 // threads that may shuffle among themselves; divides `threads`
  Block body;
  std::vector<Type> types;      // by value id

  const OpInfo& info(const Inst& inst) const { return table->ops[inst.op]; }
  const Type& type(ValueId v) const { return types[v]; }
};

// print(parse(print(f))) == print(f); values are numbered in the order in which they are written.
std::string print(const Function& function);
Result<Function> parse(std::string_view text, const OpTable& table);

// Structure only (what the levels' own verifiers start with): arity, definitions before uses, scoping, regions, types
// of yields against results and carried values, buffer and size numbers.
Result<void> verify_structure(const Function& function);

// Removes pure instructions without uses, to a fixed point.
void eliminate_dead(Function& function);

// Appends instructions at the end of the innermost open block. Scopes nest:
//   auto loop = b.begin_for(lo, hi, step, inits); ... use loop.iv, loop.carried ...; auto results = b.end_for({next});
class FunctionBuilder {
 public:
  FunctionBuilder(const OpTable& table, std::string name);

  int add_buffer(Buffer buffer);   // Memory buffers before OnChip ones
  int add_size();                  // returns its number
  Function& function() { return f_; }
  const Type& type(ValueId v) const { return f_.types[v]; }

  // An instruction with the given result types; returns its results.
  std::vector<ValueId> append(std::uint16_t op, std::vector<ValueId> operands, std::vector<Type> results,
                              std::int64_t imm = 0, double fimm = 0);
  ValueId append1(std::uint16_t op, std::vector<ValueId> operands, Type result, std::int64_t imm = 0, double fimm = 0);

  struct Loop {
    ValueId iv;
    std::vector<ValueId> carried;
  };
  Loop begin_for(std::uint16_t op, ValueId lo, ValueId hi, ValueId step, std::vector<ValueId> inits);
  std::vector<ValueId> end_for(std::vector<ValueId> next);
  void begin_if(std::uint16_t op, ValueId cond, std::vector<Type> results);
  void begin_else(std::vector<ValueId> yields);  // ends the then region with these yields
  std::vector<ValueId> end_if(std::vector<ValueId> yields);
  int depth() const { return static_cast<int>(open_.size()); }

  Function finish();

 protected:
  Function f_;
  struct Open {
    Inst inst;      // for or if under construction
    int region = 0;
  };
  std::vector<Open> open_;
  Block& block() { return block_at(depth()); }
  Block& block_at(int depth);  // the open block of that depth; 0 is the body
  ValueId new_value(Type type);
};

}  // namespace weft::ssa
