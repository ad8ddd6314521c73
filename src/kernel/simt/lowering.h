// The state of lowering one tile function; the methods are grouped by file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kernel/index.h"
#include "kernel/simt/hazards.h"
#include "kernel/simt/lower.h"
#include "kernel/simt/spread.h"

namespace weft::kernel::simt {

constexpr int kNarrowedFrom = 8;  // registers of a comparison that pay for cutting its limit to 32 bits

// A thread's share of a tile. A broadcast only changes `type`: one stored row stands for all, and one scalar in a row
// ("uniform") for all its columns.
struct Value : Lines {  // the lines when it is an index
  enum class Form { Index, Registers, Condition } form = Form::Registers;
  tile::Type type;
  bool one_scalar = false;            // Registers: a row is one scalar
  bool one_row = false;               // all rows are alike, in all threads
  int stored_rows = 1;                // Registers
  std::vector<ValueId> registers;     // row-major
  std::vector<Lines> above;           // Condition: of constant lanes, all of which are above zero

  bool is_index() const { return form == Form::Index; }
  bool is_condition() const { return form == Form::Condition; }
  bool uniform() const;
  int rows_held() const;
};

class Lowering {
 public:
  Lowering(const tile::Function& function, const Machine& machine, int most_stages);
  Result<Function> run();

 private:
  using Inst = ssa::Inst;

  // lower.cpp: structure
  void block(const ssa::Block& block);
  void inst(const Inst& inst);
  void look_over(const ssa::Block& block);
  void defer_transposes();
  void lower_for(const Inst& inst);
  void lower_if(const Inst& inst);
  void check(const Inst& inst);
  std::vector<ValueId> expand(const std::vector<ValueId>& values);  // all registers of each
  void define_expanded(const std::vector<ValueId>& values, const std::vector<ValueId>& registers);
  Result<void> fits(const Function& kernel) const;
  const Value& in(const Inst& inst, int i) const { return values_[inst.operands[i]]; }
  const tile::Type& type(ValueId v) const { return f_.type(v); }
  Share share(const tile::Type& type) const { return share_of(spread_, type); }

  // values.cpp: what a register of a tile is
  Value index_value(const tile::Type& type, Lines lines) const;
  Value registers_value(const tile::Type& type, int stored_rows, bool one_scalar, std::vector<ValueId> registers);
  ValueId at(const Value& v, int row, int index);        // a register
  Sum first_index(const Value& v, int row, int index);   // of the first column in a register
  ValueId scalar_of(const Value& v) { return at(v, 0, 0); }
  ValueId element(const Value& v, int number);           // by its number in the layout; zero where there is only padding
  Value from_elements(const tile::Type& type, const std::function<ValueId(int number)>& element);
  ValueId splat(ValueId scalar, int lanes);
  ValueId splat_scalar(ValueId v) const;                 // the scalar that fills all lanes; -1: none known
  ValueId assemble(const std::vector<ValueId>& lanes);
  Sum own_column(const Share& share);
  Sum own_row(const Share& share);
  Lines rows_of(const tile::Type& type);
  ValueId inside(const tile::Type& type, int row, int index);  // which lanes are no padding; -1: all
  ValueId owner(const Share& share);                     // whether this thread is the one to store; -1: all are
  ValueId both(ValueId a, ValueId b);                    // and; -1 is true
  ValueId linear(const LinearMap& map, ValueId x);       // emits the map

  // elementwise.cpp
  Value elementwise(const Inst& inst, ScalarOp op);
  Value elementwise(ScalarOp op, std::vector<Value>& operands, const tile::Type& result);
  std::optional<Value> narrow_equality(ScalarOp op, const Value& a, const Value& b, const tile::Type& result);
  ValueId apply(ScalarOp op, const std::vector<ValueId>& args, DType result);
  ValueId accumulate(ValueId a, ValueId b, ValueId sum);

  // condition.cpp
  bool always_above(const Lines& x) const;
  bool never_less(const Lines& b, const Lines& a) const;
  void require(std::vector<Lines>& all, Lines x) const;
  Value condition_value(const tile::Type& type, std::vector<Lines> above) const;
  std::optional<Value> condition(ScalarOp op, const Value& a, const Value& b, const tile::Type& result) const;
  std::optional<Value> both_conditions(const Value& a, const Value& b, const tile::Type& result) const;
  std::pair<Sum, Sum> by_depth(const Sum& x) const;
  std::vector<Sum> least_candidates(const std::vector<Sum>& sums);
  ValueId above_zero(const Sum& x);
  bool whole_run(const Sum& x, std::int64_t lane, int lanes) const;
  ValueId cut(const std::vector<Sum>& sums, bool negated);
  ValueId condition_at(const Value& v, int row, int i);

  // memory.cpp
  Value load(const Inst& inst);
  void store(const Inst& inst);
  Value atomic(const Inst& inst, Combine combine);
  ValueId load_register(int buffer, const Value& index, int row, int i, ValueId mask);
  struct Write {
    tile::Type shape;
    int buffer = 0;
    Value value;
    std::optional<Value> mask;
    Share share;
    ValueId mine = -1;
  };
  Write begin_write(const Inst& inst, bool fixed_index);
  ValueId asked(const Write& write, int row, int i);
  void store_register(int buffer, ValueId value, const Value& index, int row, int i, ValueId mask);
  bool aligned(const Value& index, int row, int i);
  bool fixed(const Value& index) const;
  void before_read(int buffer);
  void before_write(int buffer, bool fixed);
  void barrier();
  int scratch(DType dtype, int which, std::int64_t elements);  // a shared buffer

  // exchange.cpp: between threads
  Value reduce(const Inst& inst, Combine combine);
  std::vector<ValueId> across(Combine combine, std::vector<ValueId> parts, int low, int high);
  void across_shared(Combine combine, std::vector<ValueId>& parts, int low, int high);
  Value transpose(const Inst& inst);
  void stage(int buffer, const Value& v, const LinearMap& position_to_offset);
  Value fetch(int buffer, const tile::Type& type, const LinearMap& position_to_offset);
  Value shared_by_owners(const Value& v);  // what threads that hold an element alike do not all have

  // operands.cpp: of products, in shared memory
  struct Reading {
    ValueId source = -1;       // the tile that lies there: the operand, or what it is the transpose of
    bool left = true;
    bool turned = false;       // it is the transpose
    bool lies_turned = false;  // it lies there transposed
    enum class How : std::uint8_t { Elements, Matrices, TurnedMatrices, Blocks } how = How::Elements;
    Layout layout;             // positions of readers to coordinates, as it lies
    int run = 0, served = 0;   // bits: neighbours that one access takes, lanes that are served at once (0: as many as can be)
    // Blocks: coordinates to offsets before bits are exclusive-ored, and after; where the units are told that they lie.
    LinearMap plain, mixed;
    ssa::BlockImm block;
  };
  struct Lying {
    int buffer = -1;
    LinearMap offsets;         // of coordinates, as it lies
    ValueId slot = -1;         // where the copy of this iteration begins; -1: there is one
  };
  Reading reading(const Inst& dot, int side) const;
  LinearMap lying_offsets(const Reading& r, const Layout& writer, int run) const;
  Lying place(const Reading& r, int which);
  void arrived(const Lying& lying);
  std::function<ValueId(Bits number)> offsets_of(const Lying& lying, const Layout& layout);

  // pipeline.cpp
  struct Copy {
    const Inst* load = nullptr;
    std::vector<const Inst*> made_of;  // its index and mask, in order
    Spread spread;                     // of the threads that copy, and the same as a layout
    Layout layout;
    Lying lying;
    std::int64_t elements = 0;         // of a slot
  };
  struct Pipeline {
    std::vector<Copy> copies;
    int stages = 0;                    // slots
    bool fenced = false;               // products of four warps read them
    // The product whose sum is on its way when the next iteration begins, and which of the loop's values that is.
    const Inst* flying = nullptr;
    std::size_t sum = 0;
    int behind() const { return flying != nullptr ? 1 : 0; }  // slots that it reads then
  };
  bool slice(ValueId v, const std::set<ValueId>& inside, ValueId counter, std::vector<const Inst*>& into) const;
  const Inst* load_to_copy(const ssa::Block& body, const Reading& r) const;
  void at_iteration(const Copy& copy, ValueId counter, const Sum& iteration, const std::function<void()>& then);
  bool each_run(const Copy& copy, const Value* runs, const std::function<void(int row, int i, ValueId from, ValueId mask)>& visit);
  bool choose_runs(Copy& copy, const Inst& loop, const Reading& r);
  std::optional<Pipeline> plan_pipeline(const Inst& loop);
  bool choose_flying(Pipeline& p, const Inst& loop) const;
  void ask(const Pipeline& p, const Inst& loop, const Sum& iteration, ValueId slot);
  void begin_pipeline(const Pipeline& p, const Inst& loop);
  void advance_pipeline(const Pipeline& p, const Inst& loop, ValueId slot, ValueId free);
  ValueId slot_after(const Pipeline& p, ValueId slot);
  // What the loop carries: as expand and define_expanded, but for the sum that is on its way, which is given or comes back.
  std::vector<ValueId> expand_carried(const std::optional<Pipeline>& p, const std::vector<ValueId>& values, const std::vector<ValueId>& sums);
  std::vector<ValueId> define_carried(const std::optional<Pipeline>& p, const std::vector<ValueId>& values, const std::vector<ValueId>& registers);
  void end_pipeline(const Pipeline& p);

  // contract.cpp
  Value dot(const Inst& inst);
  Value outer_product(const Inst& inst);

  // matrix.cpp
  bool suits_matrix_units(const Inst& inst) const;
  Value matrix_dot(const Inst& inst);
  using Fragments = std::function<ValueId(int steps, int others)>;  // by blocks
  Reading matrix_reading(const Inst& inst, int side) const;
  std::optional<Fragments> left_in_registers(const Inst& inst);
  Fragments fragments(const Reading& r, const Lying& lying, int steps, int matrices);

  // warpgroup.cpp
  bool suits_groups(const Inst& inst) const;
  Reading block_reading(const Inst& inst, int side) const;
  std::function<ValueId(Bits steps, int part)> block_starts(const Reading& r, const Lying& lying, const Inst& inst);
  std::vector<ValueId> group_sums(const Value& acc);  // as the units hold them: by 64 rows
  Value from_group_sums(const tile::Type& type, const std::vector<ValueId>& sums);
  Value group_dot(const Inst& inst);

  const tile::Function& f_;
  const Machine& machine_;
  const int most_stages_;  // of pipelines
  Spread spread_;
  Builder b_;
  IndexMath math_;
  Hazards hazards_;
  std::vector<Value> values_;
  std::vector<bool> used_;  // by tile value
  std::vector<const Inst*> defining_;                  // by tile value; null: a block's argument
  std::vector<std::vector<const Inst*>> users_;        // by tile value
  std::set<ValueId> deferred_;                         // transposes that only the operands of matrix units are: never made
  std::map<ValueId, Lying> lying_;                     // loaded tiles that are copied to shared memory
  std::map<const Inst*, std::vector<ValueId>> flying_;  // sums of products that their loop does not wait for
  std::map<ValueId, ValueId> splats_;                  // vector -> scalar
  std::map<std::pair<DType, int>, int> scratch_;       // buffer numbers
  const ssa::Block* place_ = nullptr;                  // the list of statements that is being lowered
  int loops_ = 0;                                      // around it
};

}  // namespace weft::kernel::simt
