// The state of lowering one group under one record. Private to tile/lower.
//
// Each loop whose body is being emitted is active: its variable is a scalar counter, or a tile of
// indices along its axis. An expression becomes a scalar, [R,1], [1,C] or [R,C] tile by the tiled
// loops it depends on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "loop/group.h"
#include "loop/linear.h"
#include "schedule/schedule.h"
#include "tile/lower.h"
#include "tile/tile.h"

namespace weft::tile {

using loop::ExprId;
using loop::LocalId;
using loop::LoopId;
using loop::ParamId;
using loop::Stmt;

class Lowerer {
 public:
  Lowerer(const loop::Group& group, const schedule::Record& record);
  Result<Lowered> run();

 private:
  struct Active {
    ValueId base = -1;   // the counter, or the first element of the tile
    ValueId index = -1;  // what the loop variable means; rows past the end repeat the last one
    ValueId mask = -1;   // which elements of the tile are in range; -1: all
    bool cut = false;    // of a deep loop: the last of its steps may be past the end
  };
  struct Local {
    ValueId value = -1;
    Type type;                  // of a local that changes
    bool accumulating = false;  // inside the reduce loops that update it
  };
  struct Effects {  // of a statement
    std::set<LocalId> assigned;
    std::set<ParamId> stored;
  };
  struct Depends {  // what an expression reads
    std::vector<bool> loops, locals, params;
  };
  struct Accumulation {
    LocalId local = 0;
    Combine combine = Combine::None;
    std::set<int> axes;
    ValueId before = -1;
    Type before_type;
  };

  // lower.cpp: set-up and statements
  Result<void> check_record() const;
  void declare_buffers();
  void order_grid();
  void split_grid();
  void block(const std::vector<Stmt>& body);
  void statement(const Stmt& s);
  void declare(const Stmt& s);
  void update(const Stmt& s);
  void store(const Stmt& s);
  std::optional<LoopId> finished_apart(const std::vector<Stmt>& body, std::size_t from) const;
  void finish_apart(const std::vector<Stmt>& body, std::size_t from, LoopId rows);
  std::vector<std::pair<LocalId, int>> keep_sums(const std::vector<Stmt>& body, std::size_t from, LoopId rows);
  ValueId multiply_add(const Stmt& s, ValueId acc);
  ValueId multiply_words(const Stmt& s, ValueId acc);
  ValueId multiply_deep_words(loop::ExprId a, loop::ExprId b, ValueId acc, LoopId deep, LoopId word);
  bool run_on(loop::ExprId e, LoopId deep, LoopId word);
  ValueId multiply_deep(const Stmt& s, ValueId acc, LoopId deep);
  bool over_lanes(loop::ExprId e);
  std::optional<LoopId> deep_loop() const;
  ValueId along(LoopId loop, ValueId index, loop::ExprId e, int rows, int columns);

  // loops.cpp
  void loop(const Stmt& s);
  void grid_loop(const Stmt& s);
  void range(const Stmt& s, ValueId lo, ValueId hi);
  void steps(const Stmt& s, ValueId lo, ValueId hi, bool masked);
  void chain(const Stmt& s, ValueId lo, ValueId hi, bool masked);
  std::int64_t partial_steps(const Stmt& s) const;
  void step(const Stmt& s, ValueId base, bool masked);
  void where_needed(const Stmt& s);
  void enter(LoopId id, ValueId base, bool masked);
  void leave(LoopId id);
  std::vector<Accumulation> begin_accumulate(const Stmt& s);
  void end_accumulate(std::vector<Accumulation>& accumulations);
  void find_axes(const Stmt& s, std::set<int> axes, std::map<LocalId, Accumulation>& into) const;
  const Effects& effects(const Stmt& loop);
  std::vector<LocalId> outlive(const Effects& e) const;
  std::vector<ValueId> values(const std::vector<LocalId>& locals) const;
  void set_values(const std::vector<LocalId>& locals, const std::vector<ValueId>& values);
  bool tiled(LoopId id) const { return record_.loops[id].axis >= 0 && id != apart_; }
  int tile(LoopId id) const { return tiled(id) ? record_.loops[id].tile : 1; }
  int stride(LoopId id) const { return tiled(id) ? tile(id) : record_.loops[id].depth; }  // from a step to the next
  bool has_tail(LoopId id) const;
  bool masked() const;

  // eval.cpp: expressions
  ValueId eval(ExprId root);
  ValueId compute(ExprId id);
  std::vector<ExprId> operands(ExprId id);
  ValueId divided(const loop::Expr& e);
  ValueId wrap(const loop::Expr& e);
  void check(ValueId ok, ExprId from, int code);
  ValueId load(ExprId id);
  ValueId not_empty(ExprId load);
  bool padded(const loop::Expr& load) const;
  const loop::Linear& address(ExprId load);
  loop::Linear address_of(ParamId param, const std::vector<ExprId>& at);
  // `transposed`: rows become lanes and lanes rows.
  ValueId emit_address(const loop::Linear& form, bool transposed = false);
  ValueId own_tile(ParamId param, ValueId index);
  bool at_home(ParamId param, LoopId loop) const;
  bool lies_transposed(ParamId param, const loop::Linear& form) const;
  ValueId lane_mask_of_rows();
  ValueId lane_mask(const Depends& on) const;
  ValueId size(const Dim& d);
  ValueId both(ValueId a, ValueId b) { return a < 0 ? b : b < 0 ? a : b_.logical_and(a, b); }
  ValueId as(ValueId v, Type shape);  // broadcast to the shape of a type
  ValueId combined(Combine c, ValueId a, ValueId b);
  ValueId identity(Combine c, DType t);
  const Depends& depends(ExprId id);
  std::optional<ValueId> known(ExprId id) const;
  void forget(const std::set<LocalId>& locals, const std::set<ParamId>& params);

  loop::Group g_;  // a copy: addresses are built as expressions
  const schedule::Record& record_;
  Builder b_;
  std::vector<ParamId> buffers_;
  std::vector<int> buffer_of_;  // by param
  std::vector<std::vector<LoopId>> homes_;  // by param: loops whose iterations have on-chip memory of their own
  std::vector<int> own_;        // by param: elements side by side, one for each element of those loops' tiles
  std::vector<Dim> sizes_;
  std::map<Dim, int> size_numbers_;
  std::vector<ValueId> grid_coordinate_;  // by loop, of those on the grid
  std::vector<std::optional<Active>> active_;
  std::vector<LoopId> stack_;
  std::vector<LoopId> partial_;  // grid tiles that may be cut off
  std::map<LocalId, Local> locals_;
  std::set<LocalId> changing_;
  bool any_tile_ = false;
  LoopId apart_ = -1;  // rows that are being finished one by one
  std::vector<std::map<ExprId, ValueId>> frames_;
  std::map<std::pair<ExprId, ValueId>, ValueId> tiles_along_;  // by the tile of indices: of the step that is being made
  std::vector<Depends> depends_;
  std::map<ExprId, loop::Linear> addresses_;
  std::map<LoopId, Effects> effects_;
};

// The smallest shape that both broadcast to, of a's dtype.
Type join(const Type& a, const Type& b);

}  // namespace weft::tile
