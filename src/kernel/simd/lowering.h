// The state of lowering one tile function; the methods are grouped by file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "kernel/index.h"
#include "kernel/simd/lower.h"
#include "kernel/simd/tiles.h"

namespace weft::kernel::simd {

// How the columns of a row lie in registers: `count` registers of `lanes` lanes; lanes 0: scalars.
struct Layout {
  int lanes = 0;
  int count = 1;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// A tile in Kernel IR. A broadcast only changes `type`: one stored row stands for all, and one
// scalar in a row
// ("uniform") for all its lanes.
struct Value : Lines {  // the lines when it is an index
  enum class Form { Index, Registers, Tiles } form = Form::Registers;
  tile::Type type;
  int depth = 0;  // of the block that tiles were made in
  int operand = -1;  // of dots on a matrix unit: the number of what is loaded when one needs it
  // Registers: row-major, stored_rows x layout.count. Tiles: row-major, in steps of whole tiles
  int stored_rows = 1;
  Layout layout;
  std::vector<ValueId> registers;
  bool words = false;  // of a dot's right operand: a register holds a word of each column, for as many rows as its steps
  std::vector<ValueId>
      guard;  // bool only: a scalar for each row (or one for all) that the lanes are and-ed with

  int row_count() const { return type.shape[0]; }
  int column_count() const { return type.shape[1]; }
  bool uniform() const { return form == Form::Index ? lane.is(0) : layout == Layout{}; }
};

// Steps of k that a dot counts at once, a word of 32 bits from each side: four of bytes, one side without sign and the
// other with it, or, where the machine has a unit for them, two of bf16. 0: one by one.
int steps_in_word(const tile::Function& function, const ssa::Inst& inst, const Machine& machine);

class Lowering {
 public:
  Lowering(const tile::Function& function, const Machine& machine);
  Result<Function> run();

 private:
  using Inst = ssa::Inst;

  // lower.cpp: structure
  void choose_width(const Machine& machine);
  ValueId accumulate(ValueId a, ValueId b, ValueId sum);
  void block(const ssa::Block& block);
  void inst(const Inst& inst);
  void lower_for(const Inst& inst);
  void lower_if(const Inst& inst);
  std::vector<ValueId> expand(const std::vector<ValueId>& values);  // all registers of each, in its own layout
  std::vector<ValueId> carried(const std::vector<ValueId>& values, const std::vector<ValueId>& as);  // the same, and sums in tiles
  void define_expanded(const std::vector<ValueId>& values, std::vector<ValueId> registers, bool carried = false);
  const Value& in(const Inst& inst, int i) { return in_vectors(inst.operands[i]); }
  const Value& in_vectors(ValueId v) { return values_[v].form == Value::Form::Tiles ? spread(v) : values_[v]; }
  const tile::Type& type(ValueId v) const { return f_.type(v); }

  // values.cpp: what a register of a tile is
  Layout layout(ValueId v) const;  // by its type and uses
  Layout natural_layout(const tile::Type& type) const;
  Value uniform_value(const tile::Type& type, std::vector<ValueId> rows);  // i64 becomes an index
  Value registers_value(const tile::Type& type, int stored_rows, Layout layout,
                        std::vector<ValueId> registers);
  Value from_elements(const tile::Type& type, Layout layout,
                      const std::function<ValueId(int row, int col)>& element);
  static int stored_rows(const Value& v);
  ValueId at(const Value& v, int row, int index,
             Layout layout);  // register `index` of a row, under another layout too
  ValueId unguarded(const Value& v, int row, int index, Layout layout);
  ValueId element(const Value& v, int row, int col) {
    return at(v, row, col, {0, v.column_count()});
  }
  ValueId scalar_of(const Value& v) { return element(v, 0, 0); }
  ValueId assemble(int lanes, const std::function<ValueId(int lane)>& element);

  // elementwise.cpp
  Value elementwise(const Inst& inst, ScalarOp op);
  std::optional<Value> lane_limit(ScalarOp op, const Value& a, const Value& b, Layout layout);
  std::optional<Value> and_masks(const Value& a, const Value& b);
  DType lane_dtype(int columns) const;

  // memory.cpp
  Value load(const Inst& inst);
  void store(const Inst& inst);
  Value atomic(const Inst& inst, Combine combine);
  struct Access {
    int buffer;
    const Value& index;
    const Value* mask;  // null: none
  };
  bool contiguous(const Access& access, Layout layout) const;
  ValueId load_scalar(const Access& access, int row, int col);
  std::vector<ValueId> load_row_of_scalars(const Access& access, int row, int cols);
  std::optional<Value> load_words(const Access& access, const tile::Type& result, int steps);
  ValueId each_repeated(ValueId mask, int times);

  // contract.cpp
  Value dot(const Inst& inst);
  int steps_in_word(const Inst& inst) const { return kernel::simd::steps_in_word(f_, inst, machine_); }
  Value dot_in_words(const Inst& inst, int steps);
  ValueId words_of(const Value& b, int word, int index, Layout to, int steps);
  // tiles.cpp
  Value dot_in_tiles(const Inst& inst);
  std::optional<Sum> even_step(const std::vector<Sum>& rows, int every);
  std::optional<Value> load_tiles(const Access& access, const tile::Type& type, bool right);
  Value load_uneven(const Access& access, const tile::Type& type);
  static std::vector<int> row_starts(const tile::Type& type);
  bool store_tiles(const Inst& inst);
  Value tiles_value(const tile::Type& type, std::vector<ValueId> tiles);
  int tile_scratch(DType dtype);
  std::vector<ValueId> through_scratch(DType dtype, const std::vector<ValueId>& registers, int stride, const std::vector<int>& starts);
  std::vector<ValueId> sum_tiles(ValueId v);
  std::vector<ValueId> left_tiles(ValueId v);
  std::vector<ValueId> right_tiles(ValueId v);
  std::vector<ValueId> operand_tiles(const Value& v);
  Value later(const Access& access, const tile::Type& type, std::function<std::vector<ValueId>()> load);
  const Value& spread(ValueId v);

  Value reduce(const Inst& inst, Combine combine);
  Value scan(const Inst& inst, Combine combine);
  Value transpose(const Inst& inst);
  std::vector<ValueId> interleaved(const std::vector<ValueId>& rows);

  const tile::Function& f_;
  const Machine& machine_;
  const TileUses tiles_;
  std::vector<std::function<std::vector<ValueId>()>> operands_;  // loads of tiles
  std::map<int, std::vector<ValueId>> loaded_;  // of these, what the last dot had
  std::map<DType, int> scratch_;      // on-chip buffers that tiles pass through
  std::map<ValueId, Value> spread_;   // what is in tiles, in vectors
  Builder b_;
  IndexMath math_;
  bool has_fma_ = true;
  int width_ = 1;                 // lanes of a full vector
  int element_bits_ = 8;          // of the dtype that fills a vector with them
  std::vector<bool> by_element_;  // tiles that are used one scalar at a time: left operands of dots
  std::vector<int> words_;        // loads that only dots in words use, on their right: steps of a word; else 0
  std::vector<Value> values_;
};

// Which values only reach left operands of dots, through elementwise ops.
std::vector<bool> used_by_element(const tile::Function& function, const Machine& machine);
std::vector<int> used_as_words(const tile::Function& function, const Machine& machine);

}  // namespace weft::kernel::simd
