// Expressions: memoised per scope, addresses as scalar part + row part + lane part.
#include <algorithm>

#include "tile/lower/lowerer.h"

namespace weft::tile {

using LOp = loop::Op;

namespace {

constexpr int kTransposed = 4;  // tiles of so many rows and lanes, or a multiple, are worth turning round

}  // namespace

Type join(const Type& a, const Type& b) {
  Type r = a;
  r.rank = std::max(a.rank, b.rank);
  for (int i = 0; i < 2; ++i) r.shape[i] = std::max(a.shape[i], b.shape[i]);
  return r;
}

ValueId Lowerer::size(const Dim& d) {
  if (d.is_const()) return b_.constant_i64(d.value());
  const auto [it, fresh] = size_numbers_.try_emplace(d, 0);
  if (fresh) {
    it->second = b_.add_size();
    sizes_.push_back(d);
  }
  return b_.size(it->second);
}

ValueId Lowerer::as(ValueId v, Type shape) {
  const Type& t = b_.type(v);
  if (t.rank == shape.rank && t.shape == shape.shape) return v;
  WEFT_CHECK(shape.rank == 2 && t.shape[0] <= shape.shape[0] && t.shape[1] <= shape.shape[1],
             "a value varies along a tiled loop that its target does not have");
  return b_.broadcast(v, shape.shape[0], shape.shape[1]);
}

ValueId Lowerer::identity(Combine c, DType t) {
  const Scalar v = weft::identity(c, t);
  return is_float(t) ? b_.constant(t, v.f) : b_.constant_i64(v.i, t);
}

ValueId Lowerer::combined(Combine c, ValueId a, ValueId b) {
  switch (c) {
    case Combine::Sum:
      return b_.add(a, b);
    case Combine::Prod:
      return b_.mul(a, b);
    case Combine::Max:
      return b_.scalar(ScalarOp::Max, {a, b});
    case Combine::Min:
      return b_.min(a, b);
    case Combine::And:
      return b_.logical_and(a, b);
    case Combine::Or:
      return b_.scalar(ScalarOp::Or, {a, b});
    case Combine::None:
      break;
  }
  return b;
}

// Expressions only use earlier ones, so the table grows in order.
const Lowerer::Depends& Lowerer::depends(ExprId id) {
  while (static_cast<ExprId>(depends_.size()) <= id) {
    const loop::Expr& e = g_.expr(static_cast<ExprId>(depends_.size()));
    Depends d{std::vector<bool>(g_.loops.size()), std::vector<bool>(g_.locals.size()),
              std::vector<bool>(g_.params.size())};
    for (ExprId a : e.args) {
      const auto add = [](std::vector<bool>& into, const std::vector<bool>& from) {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] = into[i] || from[i];
      };
      add(d.loops, depends_[a].loops);
      add(d.locals, depends_[a].locals);
      add(d.params, depends_[a].params);
    }
    if (e.op == LOp::Index) d.loops[e.id] = true;
    if (e.op == LOp::Local) d.locals[e.id] = true;
    if (e.op == LOp::Load || e.op == LOp::LoadIf) d.params[e.id] = true;
    depends_.push_back(std::move(d));
  }
  return depends_[id];
}

void Lowerer::forget(const std::set<LocalId>& locals, const std::set<ParamId>& params) {
  if (locals.empty() && params.empty()) return;
  const auto stale = [&](ExprId e) {
    const Depends& d = depends(e);
    return std::any_of(locals.begin(), locals.end(), [&](LocalId l) { return d.locals[l]; }) ||
           std::any_of(params.begin(), params.end(), [&](ParamId p) { return d.params[p]; });
  };
  for (auto& frame : frames_) std::erase_if(frame, [&](const auto& known) { return stale(known.first); });
  std::erase_if(tiles_along_, [&](const auto& known) { return stale(known.first.first); });
}

std::optional<ValueId> Lowerer::known(ExprId id) const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (const auto it = frame->find(id); it != frame->end()) return it->second;
  }
  return std::nullopt;
}

std::vector<ExprId> Lowerer::operands(ExprId id) {
  const loop::Expr& e = g_.expr(id);
  if (e.op != LOp::Load && e.op != LOp::LoadIf) return e.args;
  std::vector<ExprId> result;
  if (e.op == LOp::LoadIf) result.push_back(e.args[0]);
  for (const auto& [atom, c] : address(id).terms) result.push_back(atom);
  return result;
}

ValueId Lowerer::eval(ExprId root) {
  std::vector<ExprId> stack{root};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    if (known(id)) {
      stack.pop_back();
      continue;
    }
    const std::size_t before = stack.size();
    for (ExprId a : operands(id)) {
      if (!known(a)) stack.push_back(a);
    }
    if (stack.size() > before) continue;
    frames_.back()[id] = compute(id);
    stack.pop_back();
  }
  return *known(root);
}

ValueId Lowerer::compute(ExprId id) {
  const loop::Expr e = g_.expr(id);
  switch (e.op) {
    case LOp::Const:
      return is_float(e.dtype) ? b_.constant(e.dtype, e.constant.f)
                               : b_.constant_i64(e.constant.i, e.dtype);
    case LOp::Size:
      return size(e.dim);
    case LOp::Index:
      return active_[e.id]->index;
    case LOp::Local:
      return locals_.at(e.id).value;
    case LOp::Load:
    case LOp::LoadIf:
      return load(id);
    case LOp::Wrap:
      return wrap(e);
    case LOp::Require:
      check(*known(e.args[1]), e.args[1], e.id);
      return *known(e.args[0]);
    case LOp::Cast:
      return b_.cast(*known(e.args[0]), e.dtype);
    case LOp::Bitcast:
      return b_.bitcast(*known(e.args[0]), e.dtype);
    case LOp::FloorDiv:
    case LOp::Mod:
      if (const ValueId v = divided(e); v >= 0) return v;
      break;
    default:
      break;
  }
  std::vector<ValueId> args;
  for (ExprId a : e.args) args.push_back(*known(a));
  return b_.scalar(*loop::as_scalar(e.op), args);
}

// Lanes past the end of a panel's axis stay in the panel when it is as wide as the tile.
bool Lowerer::padded(const loop::Expr& load) const {
  const loop::StorageMap& map = g_.params[load.id].map;
  if (map.panel <= 0 || load.op != LOp::Load) return false;
  for (std::size_t i = 0; i < load.args.size(); ++i) {
    const loop::Expr& at = g_.expr(load.args[i]);
    const bool panel = static_cast<int>(i) == map.panel_axis;
    if (at.op == LOp::Const || at.op == LOp::Size) continue;
    if (at.op != LOp::Index) return false;
    const auto& plan = record_.loops[at.id];
    if (panel != (plan.axis == 1) || (panel && plan.tile != map.panel)) return false;
    if (panel && !(g_.loops[at.id].extent == g_.params[load.id].shape[i])) return false;
  }
  return true;
}

ValueId Lowerer::load(ExprId id) {
  const loop::Expr e = g_.expr(id);
  const int buffer = buffer_of_[e.id];
  const ValueId index = own_tile(e.id, emit_address(address(id)));
  ValueId mask = padded(e) ? -1 : lane_mask(depends(id));
  if (!g_.checks.empty()) mask = both(mask, not_empty(id));
  if (e.op == LOp::Load && g_.checks.empty() && lies_transposed(e.id, address(id))) {
    const ValueId across = emit_address(address(id), true);
    const ValueId rows = mask < 0 ? -1 : lane_mask_of_rows();  // first: types move when values are made
    return b_.transpose(b_.load(buffer, across, mask < 0 ? -1 : as(rows, b_.type(across))));
  }
  const auto masked = [&](ValueId m) {
    if (m < 0) return b_.load(buffer, index);
    const Type shape = join(b_.type(index), b_.type(m));
    return b_.load(buffer, as(index, shape), as(m, shape));
  };
  if (e.op != LOp::LoadIf) return masked(mask);
  const ValueId condition = *known(e.args[0]);
  if (b_.type(condition).rank > 0 || b_.type(index).rank == 0) return masked(both(mask, condition));
  // One condition for a whole tile is a branch: a masked access far outside is slow even if it is
  // not made.
  Type type = b_.type(index).with(e.dtype);
  if (mask >= 0) type = join(type, b_.type(mask));
  const ValueId zero = is_float(e.dtype) ? b_.constant(e.dtype, 0) : b_.constant_i64(0, e.dtype);
  b_.begin_if(condition, {type});
  const ValueId value = masked(mask);
  b_.begin_else({value});
  return b_.end_if({as(zero, type)})[0];
}

// A wrapped index into an empty axis has nowhere to go: accesses by it are masked, unless the
// extent is known.
ValueId Lowerer::not_empty(ExprId load) {
  ValueId mask = -1;
  for (ExprId used : loop::used_exprs(g_, load)) {
    const loop::Expr w = g_.expr(used);
    if (w.op != LOp::Wrap) continue;
    const loop::Expr extent = g_.expr(w.args[1]);
    if (extent.op == LOp::Const && extent.constant.i > 0) continue;
    mask = both(mask, b_.scalar(ScalarOp::Gt, {eval(w.args[1]), b_.constant_i64(0)}));
  }
  return mask;
}

// A tile that starts at a multiple of its size does not cross a multiple of any divisor that its
// size divides.
ValueId Lowerer::divided(const loop::Expr& e) {
  const loop::Expr& x = g_.expr(e.args[0]);
  const loop::Expr& d = g_.expr(e.args[1]);
  if (x.op != LOp::Index || d.op != LOp::Const || d.constant.i <= 0 || !tiled(x.id)) return -1;
  const Active& a = *active_[x.id];
  const int t = tile(x.id), axis = record_.loops[x.id].axis;
  if (d.constant.i % t != 0 || (axis == 0 && a.mask >= 0)) return -1;
  const ValueId divisor = b_.constant_i64(d.constant.i);
  if (e.op == LOp::FloorDiv) return b_.scalar(ScalarOp::FloorDiv, {a.base, divisor});
  const ValueId lane = axis == 0 ? b_.iota(t, 1, 0) : b_.iota(1, t, 1);
  return d.constant.i == t ? lane : b_.add(b_.scalar(ScalarOp::Mod, {a.base, divisor}), lane);
}

// The run fails with the code where `ok`, which depends on what `from` does, is false for an element that exists.
void Lowerer::check(ValueId ok, ExprId from, int code) {
  if (const ValueId mask = lane_mask(depends(from)); mask >= 0) {
    ok = b_.scalar(ScalarOp::Or, {ok, b_.scalar(ScalarOp::Not, {mask})});
  }
  b_.check(ok, code);
}

// A bad index fails the run and is moved into range, so that no access leaves its buffer.
ValueId Lowerer::wrap(const loop::Expr& e) {
  const ValueId i = *known(e.args[0]), extent = *known(e.args[1]), zero = b_.constant_i64(0);
  const ValueId wrapped = b_.select(b_.lt(i, zero), b_.add(i, extent), i);
  check(b_.logical_and(b_.scalar(ScalarOp::Ge, {wrapped, zero}), b_.lt(wrapped, extent)), e.args[0], e.id);
  return b_.scalar(ScalarOp::Max, {b_.min(wrapped, b_.sub(extent, b_.constant_i64(1))), zero});
}

// Which lanes are in range, for what depends on the lanes. Rows need no mask: they repeat the last
// row.
ValueId Lowerer::lane_mask(const Depends& on) const {
  bool lanes = false;  // through a local
  for (const auto& [id, local] : locals_)
    lanes = lanes || (on.locals[id] && b_.type(local.value).shape[1] > 1);
  for (LoopId l : stack_) {
    if (tiled(l) && record_.loops[l].axis == 1 && (lanes || on.loops[l])) return active_[l]->mask;
  }
  return -1;
}

const loop::Linear& Lowerer::address(ExprId load) {
  const auto it = addresses_.find(load);
  if (it != addresses_.end()) return it->second;
  const loop::Expr e = g_.expr(load);
  std::vector<ExprId> at(e.args.begin() + (e.op == LOp::LoadIf ? 1 : 0), e.args.end());
  return addresses_[load] = address_of(e.id, at);
}

// Each element of an on-chip parameter is a tile of elements where tiles of loops have memory of their own.
loop::Linear Lowerer::address_of(ParamId param, const std::vector<ExprId>& at) {
  loop::Linear form = loop::linear(g_, loop::address_expr(g_, param, at));
  if (own_[param] == 1) return form;
  form.constant = form.constant * own_[param];
  for (auto& [atom, c] : form.terms) c = c * own_[param];
  return form;
}

bool Lowerer::at_home(ParamId param, LoopId loop) const {
  return std::find(homes_[param].begin(), homes_[param].end(), loop) != homes_[param].end();
}

ValueId Lowerer::own_tile(ParamId param, ValueId index) {
  if (own_[param] == 1) return index;
  int inner = 1;  // lanes are innermost
  for (const int axis : {1, 0}) {
    for (LoopId l : homes_[param]) {
      if (!tiled(l) || record_.loops[l].axis != axis) continue;
      const int t = tile(l);
      const ValueId own = axis == 0 ? b_.iota(t, 1, 0) : b_.iota(1, t, 1);
      index = b_.add(index, b_.mul(own, b_.constant_i64(inner)));
      inner *= t;
    }
  }
  return index;
}

// Elements in memory that lie side by side along the rows of a tile, and not along its lanes: accessed as the tile's
// transpose, they are.
bool Lowerer::lies_transposed(ParamId param, const loop::Linear& form) const {
  if (g_.params[param].role == loop::Role::OnChip) return false;
  bool rows = false, lanes = false;
  for (const auto& [atom, c] : form.terms) {
    const loop::Expr& e = g_.expr(atom);
    if (e.op == LOp::Index) {
      const int axis = record_.loops[e.id].axis;
      if (axis == 0) rows = c.is(1) && active_[e.id]->mask < 0 && tile(e.id) % kTransposed == 0;
      if (axis == 1) lanes = !c.is(1) && tile(e.id) % kTransposed == 0;
    } else if (const auto v = known(atom); !v || b_.type(*v).elements() > 1) {
      return false;
    }
  }
  return rows && lanes;
}

// The mask of the lanes in range, as one of rows.
ValueId Lowerer::lane_mask_of_rows() {
  for (LoopId l : stack_) {
    if (!tiled(l) || record_.loops[l].axis != 1 || active_[l]->mask < 0) continue;
    return b_.lt(b_.add(active_[l]->base, b_.iota(tile(l), 1, 0)), size(g_.loops[l].extent));
  }
  return -1;
}

// Scalars first, those of outer loops before those of inner ones, so that invariants hoist.
ValueId Lowerer::emit_address(const loop::Linear& form, bool transposed) {
  struct Part {
    std::size_t depth = 0;
    ValueId value = -1;
    Dim coefficient;
  };
  std::vector<Part> parts;
  const auto depth = [&](ExprId atom) {
    std::size_t d = 0;
    for (std::size_t i = 0; i < stack_.size(); ++i) {
      if (depends(atom).loops[stack_[i]]) d = i + 1;
    }
    return d;
  };
  for (const auto& [atom, c] : form.terms) {
    const loop::Expr& e = g_.expr(atom);
    const bool whole = e.op == LOp::Index && tiled(e.id) &&
                       (active_[e.id]->mask < 0 || record_.loops[e.id].axis == 1);
    if (!whole) {
      parts.push_back({depth(atom), *known(atom), c});
      continue;
    }
    const int t = tile(e.id), axis = transposed ? 1 - record_.loops[e.id].axis : record_.loops[e.id].axis;
    parts.push_back({depth(atom), active_[e.id]->base, c});
    parts.push_back({depth(atom), axis == 0 ? b_.iota(t, 1, 0) : b_.iota(1, t, 1), c});
  }
  const auto rank = [&](const Part& p) {  // scalars, rows, lanes, full tiles
    const Type& t = b_.type(p.value);
    return (t.shape[0] > 1 ? 1 : 0) + (t.shape[1] > 1 ? 2 : 0);
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const Part& x, const Part& y) {
    return rank(x) != rank(y) ? rank(x) < rank(y) : x.depth < y.depth;
  });
  ValueId sum = size(form.constant);
  for (const Part& p : parts) sum = b_.add(sum, b_.mul(p.value, size(p.coefficient)));
  return sum;
}

}  // namespace weft::tile
