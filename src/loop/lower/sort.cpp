// Sort and top-k as a few kernels over scratch memory.
//
// Elements become unsigned keys whose order is the wanted one: of floats the bits, turned round where the sign is set,
// with every NaN the largest; all of it inverted to descend. Keys of at most 32 bits travel in one u64 with their
// index, wider ones beside it. A short row is sorted by counting: an element's rank is the number of those before it,
// ties by index. A longer one goes through radix passes of 8 bits, which are stable: count the digits, sum the counts,
// move. A moved key is rotated by 8 bits, so that all passes are one kernel. A top-k of few finds the k-th key bit by
// bit, counting the keys below a candidate, and sorts only what comes before it. Values are read from the operand at
// the end, at the sorted indices.
#include "loop/lower/sort.h"

#include <fmt/format.h>

#include "loop/lower/emit.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr std::int64_t kDigits = 256;
constexpr std::int64_t kOnes32 = 0xffffffff;

// Integer arithmetic of one dtype.
struct Ints {
  Group& g;
  DType t;
  ExprId number(std::int64_t v) const { return g.constant_i64(v, t); }
  ExprId op(ScalarOp o, ExprId a, ExprId b) const { return g.scalar(o, t, {a, b}); }
  ExprId by(ScalarOp o, ExprId a, std::int64_t b) const { return op(o, a, number(b)); }
  ExprId compare(ScalarOp o, ExprId a, ExprId b) const { return g.scalar(o, DType::Bool, {a, b}); }
  ExprId select(ExprId c, ExprId a, ExprId b) const { return g.scalar(ScalarOp::Select, t, {c, a, b}); }
  ExprId rotate(ExprId v, int places) const {  // to the right, of 64 bits
    return op(ScalarOp::Or, by(ScalarOp::Shr, v, places), by(ScalarOp::Shl, v, 64 - places));
  }
};

// A kernel being written, with the loops over rows that it stands in.
struct Writer {
  Writer(const EmitContext& context, const Node& node, const char* name)
      : reader(context.graph, context.stored, {}, step.group), g(step.group) {
    g.name = name;
    reader.note(node);
  }
  Writer(const Writer&) = delete;

  void over(const Shape& outer) { rows = make_nest(g, LoopKind::Parallel, outer); }
  std::vector<ExprId> at(std::vector<ExprId> rest) const {
    std::vector<ExprId> all = rows.at;
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }
  Nest loop(LoopKind kind, Dim extent) { return make_nest(g, kind, {std::move(extent)}); }
  Step finish(std::vector<Stmt> body) {
    g.body = around(rows, std::move(body));
    step.args = reader.args();
    return std::move(step);
  }

  Step step;
  Reader reader;
  Group& g;
  Nest rows;
};

void append(std::vector<Stmt>& to, std::vector<Stmt> more) {
  for (Stmt& s : more) to.push_back(std::move(s));
}

// Rows of scratch that hold the elements: `keys`, and `index` where it is not part of the key.
struct Items {
  int keys = 0;
  int index = 0;
  Dim length;     // elements that count
  Dim room;       // elements in memory; the rest holds the largest key
  int shift = 0;  // where the index stands in its u64
};

class Sorter {
 public:
  Sorter(const EmitContext& context, const Node& node)
      : context_(context),
        node_(node),
        x_(node.operands[0]),
        axis_(node.attrs.integer(Attr::Axis)),
        outer_(context.graph.type(x_).shape),
        n_(outer_[axis_]),
        k_(node.op == GOp::TopK ? node.attrs.dims(Attr::K)[0] : n_),
        dtype_(context.graph.type(x_).dtype),
        bits_(key_bits(dtype_)),
        wide_(bits_ > 32) {
    outer_.erase(outer_.begin() + axis_);
    plan_ = plan_sort(product(outer_), n_, k_, bits_, context.graph.facts);
  }

  std::vector<Step> emit() {
    for (const Dim& d : context_.graph.type(node_.results[0]).shape) {
      if (d.is(0)) return nothing();
    }
    Items items = plan_.select ? select() : all();
    if (plan_.counting) {
      count(items);
    } else {
      for (int pass = 0; pass < bits_ / 8; ++pass) plan_.blocks > 1 ? pass_of_blocks(items) : pass_of_row(items);
      if (!wide_) items.shift = 32 - bits_;
    }
    results(items);
    return std::move(steps_);
  }

 private:
  int scratch(DType t, std::vector<Dim> last) {
    Shape shape = outer_;
    shape.insert(shape.end(), last.begin(), last.end());
    return add_scratch(context_, t, std::move(shape));
  }

  Items make_items(Dim length, Dim room) {
    Items items{0, 0, std::move(length), std::move(room), wide_ ? 0 : 32};
    items.keys = scratch(DType::U64, {items.room});
    if (wide_) items.index = scratch(DType::U32, {items.room});
    return items;
  }

  ParamId param(Writer& w, int arg, Role role) const {
    const Scratch& s = context_.scratch[scratch_number(arg)];
    return w.reader.scratch(arg, s.dtype, s.shape, role);
  }

  // ---- keys ----

  DType key_dtype() const { return wide_ ? DType::U64 : DType::U32; }

  // The key of element i of the row.
  ExprId key(Writer& w, ExprId i, ExprId guard) {
    Group& g = w.g;
    std::vector<ExprId> at = w.rows.at;
    at.insert(at.begin() + axis_, i);
    ExprId x = w.reader.read(x_, at, guard);
    const Ints u{g, key_dtype()};
    const std::int64_t ones = wide_ ? -1 : (std::int64_t{1} << bits_) - 1;
    const std::int64_t sign = std::int64_t{1} << (bits_ - 1);
    ExprId result = -1;
    if (is_float(dtype_)) {
      const DType t = g.expr(x).dtype;
      const DType raw = bits_ == 16 ? DType::U16 : u.t;
      ExprId zero = g.constant(t, 0);
      ExprId plain = g.scalar(ScalarOp::Select, t, {g.scalar(ScalarOp::Eq, DType::Bool, {x, zero}), zero, x});
      ExprId e = g.cast(g.scalar(ScalarOp::Bitcast, raw, {g.cast(plain, dtype_)}), u.t);
      ExprId negative = u.compare(ScalarOp::Ge, e, u.number(sign));
      e = u.op(ScalarOp::Xor, e, u.select(negative, u.number(ones), u.number(sign)));
      result = u.select(g.scalar(ScalarOp::IsNan, DType::Bool, {x}), u.number(ones), e);
    } else {
      result = u.by(ScalarOp::And, g.cast(x, u.t), ones);
      if (is_signed_int(dtype_)) result = u.by(ScalarOp::Xor, result, sign);
    }
    return node_.attrs.flag(Attr::Descending) ? u.by(ScalarOp::Xor, result, ones) : result;
  }

  // Indices have 32 bits: i, in a run whose rows are not longer than that.
  ExprId index(Writer& w, ExprId i) {
    Group& g = w.g;
    if (context_.graph.facts.range(n_).hi <= kOnes32) return i;
    g.checks.push_back(fmt::format("a row longer than 2^32 in '{}' ({})", where(), info(node_.op).name));
    ExprId n = g.size(n_);
    return g.iadd(i, g.isub(w.reader.checked(n, Dim(kOnes32 + 1)), n));
  }

  std::string where() const { return node_.origin ? node_.origin->node : info(node_.op).name; }

  std::vector<Stmt> store_item(Writer& w, const Items& items, ExprId at, ExprId key, ExprId index) {
    Group& g = w.g;
    const Ints u{g, DType::U64};
    if (wide_) {
      return {store_stmt(param(w, items.keys, Role::Output), w.at({at}), key),
              store_stmt(param(w, items.index, Role::Output), w.at({at}), g.cast(index, DType::U32))};
    }
    ExprId packed = u.op(ScalarOp::Or, u.by(ScalarOp::Shl, g.cast(index, u.t), 32), g.cast(key, u.t));
    return {store_stmt(param(w, items.keys, Role::Output), w.at({at}), packed)};
  }

  Items all() {
    const Dim room = plan_.blocks > 1 ? ceil_div(n_, Dim(plan_.blocks)) * plan_.blocks : n_;
    Items items = make_items(n_, room);
    Writer w(context_, node_, "sort_keys");
    w.over(outer_);
    Nest each = w.loop(LoopKind::Parallel, room);
    ExprId i = each.at[0], inside = -1;
    if (!(room == n_)) inside = w.g.scalar(ScalarOp::Lt, DType::Bool, {i, w.g.size(n_)});
    ExprId k = key(w, i, inside);
    const Ints u{w.g, key_dtype()};
    if (inside >= 0) k = u.select(inside, k, u.number(wide_ ? -1 : (std::int64_t{1} << bits_) - 1));
    steps_.push_back(w.finish(around(each, store_item(w, items, i, k, index(w, i)))));
    return items;
  }

  // ---- top-k of few ----

  // The first k in their order of index. One more place takes what is not wanted.
  Items select() {
    const int keys = scratch(key_dtype(), {n_});
    {
      Writer w(context_, node_, "top_k_keys");
      w.over(outer_);
      Nest each = w.loop(LoopKind::Parallel, n_);
      ExprId k = key(w, each.at[0], -1);
      steps_.push_back(w.finish(around(each, {store_stmt(param(w, keys, Role::Output), w.at(each.at), k)})));
    }
    Items items = make_items(k_, k_ + 1);
    Writer w(context_, node_, "top_k_select");
    w.over(outer_);
    Group& g = w.g;
    const Ints u{g, key_dtype()}, n{g, DType::I64};
    ParamId p = param(w, keys, Role::Input);
    LocalId bound = g.add_local(u.t), below = g.add_local(DType::I64);
    std::vector<Stmt> body{local_stmt(bound, u.number(0))};
    const auto count_below = [&](ExprId limit) {
      LocalId few = g.add_local(DType::U32);
      Nest j = w.loop(LoopKind::Reduce, n_);
      ExprId is_below = u.compare(ScalarOp::Lt, g.load(p, w.at(j.at)), limit);
      std::vector<Stmt> stmts{local_stmt(few, g.constant_i64(0, DType::U32))};
      append(stmts, around(j, {update_stmt(few, Combine::Sum, g.cast(is_below, DType::U32))}));
      stmts.push_back(local_stmt(below, g.cast(g.local(few), DType::I64)));
      return stmts;
    };
    // The k-th key is the largest that fewer than k keys are below.
    {
      Nest bit = w.loop(LoopKind::Serial, Dim(bits_));
      LocalId next = g.add_local(u.t);
      ExprId place = g.cast(g.isub(g.constant_i64(bits_ - 1), bit.at[0]), u.t);
      std::vector<Stmt> inner{local_stmt(
          next, u.op(ScalarOp::Or, g.local(bound), u.op(ScalarOp::Shl, u.number(1), place)))};
      append(inner, count_below(g.local(next)));
      ExprId fewer = n.compare(ScalarOp::Lt, g.local(below), g.size(k_));
      inner.push_back(set_stmt(bound, u.select(fewer, g.local(next), g.local(bound))));
      append(body, around(bit, std::move(inner)));
    }
    append(body, count_below(g.local(bound)));
    append(body, keep(w, items, p, bound, below));
    steps_.push_back(w.finish(std::move(body)));
    return items;
  }

  // Keeps the keys below the bound, and of those equal to it as many as are missing.
  std::vector<Stmt> keep(Writer& w, const Items& items, ParamId p, LocalId bound, LocalId below) {
    Group& g = w.g;
    const Ints u{g, key_dtype()}, n{g, DType::I64};
    LocalId place = g.add_local(DType::I64), missing = g.add_local(DType::I64);
    LocalId take = g.add_local(DType::I64), equal = g.add_local(DType::I64);
    std::vector<Stmt> body{local_stmt(place, n.number(0)), local_stmt(missing, g.isub(g.size(k_), g.local(below)))};
    Nest j = w.loop(LoopKind::Serial, n_);
    ExprId key = g.load(p, w.at(j.at));
    ExprId is_equal = g.scalar(ScalarOp::And, DType::Bool,
                               {u.compare(ScalarOp::Eq, key, g.local(bound)),
                                n.compare(ScalarOp::Gt, g.local(missing), n.number(0))});
    ExprId is_below = u.compare(ScalarOp::Lt, key, g.local(bound));
    std::vector<Stmt> inner{
        local_stmt(equal, g.cast(is_equal, DType::I64)),
        local_stmt(take, n.op(ScalarOp::Or, g.cast(is_below, DType::I64), g.local(equal)))};
    append(inner, store_item(w, items, g.local(place), key, index(w, j.at[0])));
    inner.push_back(set_stmt(place, g.iadd(g.local(place), g.local(take))));
    inner.push_back(set_stmt(missing, g.isub(g.local(missing), g.local(equal))));
    append(body, around(j, std::move(inner)));
    return body;
  }

  // ---- by counting ----

  void count(Items& items) {
    const int ranks = scratch(DType::I64, {items.length});
    {
      Writer w(context_, node_, "sort_ranks");
      w.over(outer_);
      Group& g = w.g;
      Nest each = w.loop(LoopKind::Parallel, items.length), others = w.loop(LoopKind::Reduce, items.length);
      LocalId rank = g.add_local(DType::I64);
      ParamId p = param(w, items.keys, Role::Input);
      ExprId before = comes_before(g, g.load(p, w.at(others.at)), others.at[0], g.load(p, w.at(each.at)), each.at[0]);
      std::vector<Stmt> body{local_stmt(rank, g.constant_i64(0))};
      append(body, around(others, {update_stmt(rank, Combine::Sum, g.cast(before, DType::I64))}));
      body.push_back(store_stmt(param(w, ranks, Role::Output), w.at(each.at), g.local(rank)));
      steps_.push_back(w.finish(around(each, std::move(body))));
    }
    Items sorted{0, scratch(DType::U32, {items.length}), items.length, items.length, 0};
    Writer w(context_, node_, "sort_place");
    w.over(outer_);
    Group& g = w.g;
    Nest each = w.loop(LoopKind::Serial, items.length);
    ExprId rank = g.load(param(w, ranks, Role::Input), w.at(each.at));
    ExprId index = index_at(w, items, each.at[0]);
    ParamId out = param(w, sorted.index, Role::Output);
    steps_.push_back(w.finish(around(each, {store_stmt(out, w.at({rank}), g.cast(index, DType::U32))})));
    sorted.keys = sorted.index;
    items = sorted;
    counted_ = true;
  }

  // Whether key a comes before key b; i and j are their places. Signed comparisons are the faster ones.
  ExprId comes_before(Group& g, ExprId a, ExprId i, ExprId b, ExprId j) const {
    const Ints u{g, DType::U64}, s{g, DType::I64};
    const auto ordered = [&](ExprId v) {
      return g.cast(u.by(ScalarOp::Xor, wide_ ? v : u.rotate(v, 32), INT64_MIN), DType::I64);
    };
    ExprId less = s.compare(ScalarOp::Lt, ordered(a), ordered(b));
    if (!wide_) return less;
    ExprId tie = g.scalar(ScalarOp::And, DType::Bool, {u.compare(ScalarOp::Eq, a, b), s.compare(ScalarOp::Lt, i, j)});
    return g.scalar(ScalarOp::Or, DType::Bool, {less, tie});
  }

  ExprId index_at(Writer& w, const Items& items, ExprId at) const {
    Group& g = w.g;
    if (wide_ || counted_) return g.cast(g.load(param(w, items.index, Role::Input), w.at({at})), DType::I64);
    const Ints u{g, DType::U64};
    ExprId v = g.load(param(w, items.keys, Role::Input), w.at({at}));
    return g.cast(u.by(ScalarOp::And, u.by(ScalarOp::Shr, v, items.shift), kOnes32), DType::I64);
  }

  // ---- radix passes ----

  ExprId digit(Group& g, ExprId key) const {
    return g.cast(Ints{g, DType::U64}.by(ScalarOp::And, key, kDigits - 1), DType::I64);
  }

  // Where the counters of the digits are, and one of them.
  struct Counters {
    ParamId param;
    std::vector<ExprId> lead;
    std::vector<ExprId> at(ExprId digit) const {
      std::vector<ExprId> all = lead;
      all.push_back(digit);
      return all;
    }
  };

  std::vector<Stmt> clear(Writer& w, const Counters& counters) const {
    Nest d = w.loop(LoopKind::Parallel, kDigits);
    return around(d, {store_stmt(counters.param, counters.at(d.at[0]), w.g.constant_i64(0, DType::U32))});
  }

  std::vector<Stmt> tally(Writer& w, const Counters& counters, ParamId keys, const Dim& extent, ExprId first) const {
    Group& g = w.g;
    Nest i = w.loop(LoopKind::Serial, extent);
    ExprId key = g.load(keys, w.at({g.iadd(first, i.at[0])}));
    return around(i, {store_stmt(counters.param, counters.at(digit(g, key)), g.constant_i64(1, DType::U32), Combine::Sum)});
  }

  std::vector<Stmt> move(Writer& w, const Counters& counters, ParamId keys, const Items& from, const Items& to,
                         const Dim& extent, ExprId first) const {
    Group& g = w.g;
    const Ints u{g, DType::U64};
    Nest i = w.loop(LoopKind::Serial, extent);
    ExprId at = g.iadd(first, i.at[0]);
    LocalId key = g.add_local(DType::U64), place = g.add_local(DType::U32);
    std::vector<ExprId> counter = counters.at(digit(g, g.local(key)));
    ExprId target = g.cast(g.local(place), DType::I64);
    std::vector<Stmt> body{local_stmt(key, g.load(keys, w.at({at}))),
                           local_stmt(place, g.load(counters.param, counter)),
                           store_stmt(param(w, to.keys, Role::Output), w.at({target}), u.rotate(g.local(key), 8))};
    if (wide_) {
      ExprId index = g.load(param(w, from.index, Role::Input), w.at({at}));
      body.push_back(store_stmt(param(w, to.index, Role::Output), w.at({target}), index));
    }
    ExprId next = g.scalar(ScalarOp::Add, DType::U32, {g.local(place), g.constant_i64(1, DType::U32)});
    body.push_back(store_stmt(counters.param, counter, next));
    return around(i, std::move(body));
  }

  // A row that one program sorts: the counters stay on chip.
  void pass_of_row(Items& items) {
    Items next = make_items(items.length, items.room);
    Writer w(context_, node_, "sort_pass");
    w.over(outer_);
    Group& g = w.g;
    ParamId keys = param(w, items.keys, Role::Input);
    Counters counters{w.reader.scratch(kOnChip, DType::U32, {kDigits}, Role::OnChip), {}};
    ExprId zero = g.constant_i64(0);
    std::vector<Stmt> body = clear(w, counters);
    append(body, tally(w, counters, keys, items.length, zero));
    Nest d = w.loop(LoopKind::Serial, kDigits);
    append(body, sum(g, counters.param, counters.at(d.at[0]), d));
    append(body, move(w, counters, keys, items, next, items.length, zero));
    steps_.push_back(w.finish(std::move(body)));
    items = next;
  }

  // Replaces each counter on the way by the sum of those before it.
  std::vector<Stmt> sum(Group& g, ParamId counters, std::vector<ExprId> at, const Nest& order) const {
    LocalId total = g.add_local(DType::U32), here = g.add_local(DType::U32);
    ExprId next = g.scalar(ScalarOp::Add, DType::U32, {g.local(total), g.local(here)});
    std::vector<Stmt> body{local_stmt(total, g.constant_i64(0, DType::U32))};
    append(body, around(order, {local_stmt(here, g.load(counters, at)), store_stmt(counters, at, g.local(total)),
                                set_stmt(total, next)}));
    return body;
  }

  // A row cut into blocks: each has its counters; digit by digit the blocks follow each other.
  void pass_of_blocks(Items& items) {
    const Dim blocks = plan_.blocks, extent = floor_div(items.room, blocks);
    const int counts = scratch(DType::U32, {blocks, kDigits});
    {
      Writer w(context_, node_, "sort_count");
      w.over(outer_);
      Nest block = w.loop(LoopKind::Parallel, blocks);
      Counters counters{param(w, counts, Role::Output), w.at(block.at)};
      std::vector<Stmt> body = clear(w, counters);
      ExprId first = w.g.imul(block.at[0], w.g.size(extent));
      append(body, tally(w, counters, param(w, items.keys, Role::Input), extent, first));
      steps_.push_back(w.finish(around(block, std::move(body))));
    }
    {
      Writer w(context_, node_, "sort_sums");
      w.over(outer_);
      Nest order = make_nest(w.g, LoopKind::Serial, {kDigits, blocks});
      steps_.push_back(w.finish(sum(w.g, param(w, counts, Role::InOut), w.at({order.at[1], order.at[0]}), order)));
    }
    Items next = make_items(items.length, items.room);
    Writer w(context_, node_, "sort_move");
    w.over(outer_);
    Nest block = w.loop(LoopKind::Parallel, blocks);
    Counters counters{param(w, counts, Role::InOut), w.at(block.at)};
    ExprId first = w.g.imul(block.at[0], w.g.size(extent));
    ParamId keys = param(w, items.keys, Role::Input);
    steps_.push_back(w.finish(around(block, move(w, counters, keys, items, next, extent, first))));
    items = next;
  }

  // ---- results ----

  void results(const Items& items) {
    const auto& graph = context_.graph;
    Writer w(context_, node_, node_.op == GOp::TopK ? "top_k" : "sort");
    Group& g = w.g;
    Nest nest = make_nest(g, LoopKind::Parallel, graph.type(node_.results[0]).shape);
    w.rows.at = nest.at;
    w.rows.at.erase(w.rows.at.begin() + axis_);
    // A row shorter than k is an error of the run; then nothing read before can be relied on.
    const bool proven = graph.facts.known_less_equal(k_, n_);
    ExprId place = nest.at[axis_];
    if (!proven) {
      g.checks.push_back(fmt::format("more elements than the axis has in '{}' ({})", where(), info(node_.op).name));
      place = w.reader.checked(place, n_);
    }
    ExprId index = index_at(w, items, place);
    if (!proven) index = w.reader.checked(index, n_);
    std::vector<ExprId> at = nest.at;
    at[axis_] = index;
    ExprId value = w.reader.to_storage(node_.results[0], w.reader.read(x_, at));
    g.body = around(nest, {store_stmt(w.reader.output(node_.results[0]), nest.at, value),
                           store_stmt(w.reader.output(node_.results[1]), nest.at, index)});
    w.step.args = w.reader.args();
    steps_.push_back(std::move(w.step));
  }

  std::vector<Step> nothing() {
    Writer w(context_, node_, "sort");
    w.over(context_.graph.type(node_.results[0]).shape);
    const Ints i{w.g, DType::I64};
    std::vector<Stmt> body;
    for (ValueId result : node_.results) {
      body.push_back(store_stmt(w.reader.output(result), w.rows.at, w.reader.to_storage(result, i.number(0))));
    }
    steps_.push_back(w.finish(std::move(body)));
    return std::move(steps_);
  }

  const EmitContext& context_;
  const Node& node_;
  ValueId x_;
  std::int64_t axis_;
  Shape outer_;
  Dim n_, k_;
  DType dtype_;
  int bits_;
  bool wide_;
  bool counted_ = false;
  SortPlan plan_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> emit_sort(const EmitContext& context, const Node& node) { return Sorter(context, node).emit(); }

}  // namespace weft::loop
