// Plain execution of a group: statement by statement, element by element, every coordinate checked.
#include <fmt/format.h>

#include "loop/group.h"

namespace weft::loop {
namespace {

struct Memory {
  void* data = nullptr;
  std::int64_t elements = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> own;  // of OnChip ones
};

class Interpreter {
 public:
  Interpreter(const Group& g, const Bindings& bindings) : g_(g), bindings_(bindings) {}

  Result<void> run(const std::vector<BufferView>& buffers) {
    WEFT_TRY(verify(g_));
    WEFT_TRY(bind(buffers));
    for (const Loop& l : g_.loops) extents_.push_back(WEFT_TRY(l.extent.evaluate(bindings_)));
    iv_.assign(g_.loops.size(), 0);
    locals_.assign(g_.locals.size(), Scalar{});
    values_.assign(g_.exprs().size(), Scalar{});
    orders_.resize(g_.exprs().size());
    return block(g_.body);
  }

 private:
  Result<void> bind(const std::vector<BufferView>& buffers) {
    if (buffers.size() != g_.params.size())
      return internal_error("one buffer per parameter is needed");
    memory_.resize(g_.params.size());
    for (std::size_t i = 0; i < g_.params.size(); ++i) {
      const Param& p = g_.params[i];
      Memory& m = memory_[i];
      m.shape = WEFT_TRY(evaluate(p.shape, bindings_));
      const std::int64_t need = WEFT_TRY(storage_elements(p.shape, p.map).evaluate(bindings_));
      if (p.role == Role::OnChip) {
        const auto bytes = storage_bytes(p.dtype, need);
        if (!bytes) return internal_error("an on-chip buffer is too large");
        m.own.resize(*bytes);
        m.data = m.own.data();
        m.elements = need;
        continue;
      }
      m.data = buffers[i].data;
      m.elements = buffers[i].elements;
      if (m.elements < need)
        return internal_error(fmt::format("buffer {} is smaller than its parameter", i));
    }
    return {};
  }

  Result<std::int64_t> element(ParamId id, const std::vector<std::int64_t>& at) {
    const Param& p = g_.params[id];
    const Memory& m = memory_[id];
    std::int64_t address = 0;
    const int rank = static_cast<int>(at.size());
    for (int axis = 0; axis < rank; ++axis) {
      if (at[axis] < 0 || at[axis] >= m.shape[axis]) {
        return internal_error(fmt::format("coordinate {} of axis {} of p{} is not in [0, {})",
                                          at[axis], axis, id, m.shape[axis]));
      }
    }
    const int split = p.map.panel > 0 ? p.map.panel_axis : -1;
    const int inner = split >= 0 ? p.map.inner : -1;
    if (split >= 0) address = at[split] / p.map.panel;
    for (int i = 0; i < rank; ++i) {
      const int axis = p.map.order.empty() ? i : p.map.order[i];
      if (axis != split && axis != inner) address = address * m.shape[axis] + at[axis];
    }
    if (split >= 0) address = address * p.map.panel + at[split] % p.map.panel;
    if (inner >= 0) address = address * m.shape[inner] + at[inner];
    if (address >= m.elements)
      return internal_error(fmt::format("an access to p{} is out of bounds", id));
    return address;
  }

  Result<Scalar> load(const Expr& e, std::size_t first) {
    std::vector<std::int64_t> at;
    for (std::size_t i = first; i < e.args.size(); ++i) at.push_back(values_[e.args[i]].i);
    return load_scalar(e.dtype, memory_[e.id].data, WEFT_TRY(element(e.id, at)));
  }

  Result<Scalar> compute(const Expr& e) {
    if (const auto op = as_scalar(e.op)) {
      Scalar operands[3];
      for (std::size_t i = 0; i < e.args.size(); ++i) operands[i] = values_[e.args[i]];
      const DType from = g_.expr(e.args[info(*op).result == ScalarResult::Select ? 1 : 0]).dtype;
      return evaluate(*op, from, e.dtype, {operands, e.args.size()});
    }
    switch (e.op) {
      case Op::Const:
        return e.constant;
      case Op::Size:
        return Scalar{0, WEFT_TRY(e.dim.evaluate(bindings_))};
      case Op::Index:
        return Scalar{0, iv_[e.id]};
      case Op::Local:
        return locals_[e.id];
      case Op::Load:
        return load(e, 0);
      case Op::LoadIf:
        return values_[e.args[0]].i != 0 ? load(e, 1) : Scalar{};
      case Op::Require:
        if (values_[e.args[1]].i == 0) return user_error("out-of-range", g_.checks[e.id - 1]);
        return values_[e.args[0]];
      case Op::Wrap: {
        const std::int64_t i = values_[e.args[0]].i, extent = values_[e.args[1]].i;
        const std::int64_t wrapped = i < 0 ? i + extent : i;
        if (wrapped < 0 || wrapped >= extent)
          return user_error("out-of-range", g_.checks[e.id - 1]);
        return Scalar{0, wrapped};
      }
      default:
        return internal_error("unknown op");
    }
  }

  Result<Scalar> value(ExprId root) {
    if (orders_[root].empty()) orders_[root] = used_exprs(g_, root);
    for (ExprId id : orders_[root]) values_[id] = WEFT_TRY(compute(g_.expr(id)));
    return values_[root];
  }

  Result<void> block(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Loop) {
        for (std::int64_t i = 0; i < extents_[s.id]; ++i) {
          iv_[s.id] = i;
          if (s.value >= 0 && WEFT_TRY(value(s.value)).i == 0) continue;
          WEFT_TRY(block(s.body));
        }
        continue;
      }
      const Scalar v = WEFT_TRY(value(s.value));
      if (s.kind == Stmt::Kind::Store) {
        WEFT_TRY(store(s, v));
      } else if (s.kind == Stmt::Kind::Update) {
        locals_[s.id] = combine(s.combine, g_.locals[s.id], locals_[s.id], v);
      } else {
        locals_[s.id] = v;
      }
    }
    return {};
  }

  Result<void> store(const Stmt& s, Scalar v) {
    std::vector<std::int64_t> at;
    for (ExprId i : s.index) at.push_back(WEFT_TRY(value(i)).i);
    const std::int64_t address = WEFT_TRY(element(s.id, at));
    const DType t = g_.params[s.id].dtype;
    void* data = memory_[s.id].data;
    if (s.combine != Combine::None) v = combine(s.combine, t, load_scalar(t, data, address), v);
    store_scalar(t, data, address, v);
    return {};
  }

  const Group& g_;
  const Bindings& bindings_;
  std::vector<Memory> memory_;
  std::vector<std::int64_t> extents_, iv_;
  std::vector<Scalar> locals_, values_;
  std::vector<std::vector<ExprId>> orders_;  // by root
};

}  // namespace

Result<void> interpret(const Group& group, const std::vector<BufferView>& buffers,
                       const Bindings& bindings) {
  return Interpreter(group, bindings).run(buffers);
}

}  // namespace weft::loop
