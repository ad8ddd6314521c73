// Loop IR. A group is what becomes one kernel: a tree of loops over scalar statements. Bodies are
// expression DAGs, plain data in a pool, hash-consed: equal expressions are one, so groups hash,
// print, compare and parse.
//
// Statements, in order of execution:
//   loop i: extent   Parallel  iterations are independent, any order
//                    Reduce    iterations only `update` locals declared outside, which may be
//                    reassociated Serial    in ascending order (carried state: scans, scatters). A
//                    serial body may begin with `when c`: an iteration in which c is false changes
//                    nothing and need not be run
//   local t = e      declares (or redeclares) a scalar for the statements after it in this block
//   and deeper update t += e    combines e into a local set t = e        replaces a local (only in
//   Serial loops) store P[...] = e writes an element; with a combine, combines into it
// Every element of an output is written at least once, unless the group only updates a part of it
// (`Role::InOut`).
//
// Float arithmetic on f16/bf16/f8 values is done in f32: such values are cast on load and on store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/scalar.h"

namespace weft::loop {

enum class Op : std::uint8_t {
#define OP(id, name, operands, doc) id,
#include "loop/ops.def"
#undef OP
};
const char* name(Op op);
std::optional<Op> parse_op(std::string_view name);
inline Op from_scalar(ScalarOp op) { return static_cast<Op>(op); }
std::optional<ScalarOp> as_scalar(Op op);

using ExprId = std::int32_t;
using LoopId = std::int32_t;
using LocalId = std::int32_t;
using ParamId = std::int32_t;

struct Expr {
  Op op = Op::Const;
  DType dtype = DType::F32;
  std::vector<ExprId> args;
  std::int32_t id = 0;  // Index: loop, Local: local, Load/LoadIf: param, Wrap/Require: check code
  Scalar constant;      // Const
  Dim dim;              // Size
  friend bool operator==(const Expr& a, const Expr& b);
};

// OnChip: memory of the kernel's own, undefined until it is written. Each iteration of the loops around all of its
// accesses has its own, so that such loops may run side by side.
enum class Role : std::uint8_t { Input, Output, InOut, OnChip };

// How a value that crosses memory is laid out. Row-major over `order` (a permutation of the axes,
// outermost first; empty: 0, 1, 2 ...). With a panel, axis `panel_axis` is split: its quotient by
// `panel` becomes the outermost axis and its remainder the innermost one, padded to whole panels
// (the padding holds zeros). Axis `inner`, if there is one, lies inside even that.
struct StorageMap {
  std::vector<int> order;
  int panel_axis = -1;
  int panel = 0;
  int inner = -1;
  friend bool operator==(const StorageMap&, const StorageMap&) = default;
};
Dim storage_elements(const Shape& shape, const StorageMap& map);

struct Param {
  Role role = Role::Input;
  DType dtype = DType::F32;
  Shape shape;
  StorageMap map;
  bool constant =
      false;  // a weight: known when compiling, so that its map may be chosen and prepared
};

enum class LoopKind : std::uint8_t { Parallel, Reduce, Serial };

struct Stmt {
  enum class Kind : std::uint8_t { Loop, Local, Update, Set, Store } kind = Kind::Loop;
  std::int32_t id = 0;              // Loop: loop, Local/Update/Set: local, Store: param
  Combine combine = Combine::None;  // Update, Store
  ExprId value = -1;                // Local, Update, Set, Store; Loop: its `when`, or -1
  std::vector<ExprId> index;        // Store: coordinates
  std::vector<Stmt> body;           // Loop
};

struct Loop {
  LoopKind kind = LoopKind::Parallel;
  Dim extent;
};

class Group {
 public:
  std::string name;
  std::vector<Param> params;
  std::vector<Loop> loops;    // by LoopId; each stands in the tree once
  std::vector<DType> locals;  // by LocalId
  std::vector<Stmt> body;
  std::vector<std::string> origins;  // the user's nodes inside, in order; not part of equality
  std::vector<std::string> checks;   // message of check code i+1 (Wrap, Require)

  const Expr& expr(ExprId id) const { return exprs_[id]; }
  const std::vector<Expr>& exprs() const { return exprs_; }

  ExprId add(Expr e);  // hash-consed; folds constants and the identities that hold for all values
  ExprId constant(DType t, double value);
  ExprId constant_i64(std::int64_t value, DType t = DType::I64);
  ExprId size(Dim d);  // a constant when the Dim is one
  ExprId index(LoopId loop);
  ExprId local(LocalId local);
  ExprId scalar(ScalarOp op, DType result, std::vector<ExprId> args);
  ExprId cast(ExprId x, DType t);
  ExprId require(ExprId value, ExprId condition, std::string message);  // adds the check
  ExprId load(ParamId param, std::vector<ExprId> index);
  ExprId load_if(ExprId cond, ParamId param, std::vector<ExprId> index);
  // i64 arithmetic with folding (uses `facts` of nothing: only what holds for all values)
  ExprId iadd(ExprId a, ExprId b);
  ExprId isub(ExprId a, ExprId b);
  ExprId imul(ExprId a, ExprId b);
  ExprId ifloordiv(ExprId a, ExprId b);
  ExprId imod(ExprId a, ExprId b);

  LoopId add_loop(LoopKind kind, Dim extent);
  LocalId add_local(DType t);
  ParamId add_param(Param p);

  std::uint64_t hash() const;  // of everything that shapes code or meaning; names, origins excluded

 private:
  std::vector<Expr> exprs_;
  std::unordered_multimap<std::uint64_t, ExprId> interned_;
};

Stmt loop_stmt(LoopId id, std::vector<Stmt> body, ExprId when = -1);
Stmt local_stmt(LocalId id, ExprId init);
Stmt update_stmt(LocalId id, Combine combine, ExprId value);
Stmt set_stmt(LocalId id, ExprId value);
Stmt store_stmt(ParamId id, std::vector<ExprId> index, ExprId value,
                Combine combine = Combine::None);

Result<void> verify(const Group& group);  // ids, dtypes, arity, scoping of loops and locals
std::string print(const Group& group);    // print(parse(print(g))) == print(g)
std::string print_alike(const Group& group);  // without the user's nodes: equal for groups that make one kernel
Result<Group> parse(std::string_view text);

// Plain execution, one element at a time; buffers by parameter (OnChip ones are made here).
// Coordinates are checked.
struct BufferView {
  void* data;
  std::int64_t elements;
};
Result<void> interpret(const Group& group, const std::vector<BufferView>& buffers,
                       const Bindings& bindings);

// affine.cpp: e as constant + sum of coefficient * loop index, when it is that (coefficients: Dim).
struct Affine {
  bool valid = false;
  Dim constant;
  std::vector<std::pair<LoopId, Dim>> terms;  // sorted by loop, no zero coefficients
  Dim coefficient(LoopId loop) const;
};
Affine affine(const Group& group, ExprId e);
// Element address of an access as one affine form (row-major by the parameter's order; panels: not
// affine).
Affine address(const Group& group, ParamId param, const std::vector<ExprId>& coordinates);
// By parameter: the loops around all accesses of an OnChip one, outermost first; none where an access depends on data.
std::vector<std::vector<LoopId>> on_chip_homes(const Group& group);
std::vector<ExprId> used_exprs(
    const Group& group, ExprId root);  // root's DAG, operands before users, without duplicates

}  // namespace weft::loop
