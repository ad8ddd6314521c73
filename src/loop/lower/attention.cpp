// Attention in one pass over the keys: max-then-sum turned into a running (max, sum, accumulator) that is rescaled when
// the maximum grows (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022).
//
//   parallel outer, i:                                  a query row
//     query[e] = q[i, e]; sum[c] = 0                    on chip
//     m = -inf; l = 0
//     serial block of keys:
//       s[j] = scores(dot(query, k[j]))                 on chip; mask, scale and softcap as the graph writes them
//       x = max(m, max s);  r = x, or 0 when x is -inf: a block in which no key is seen adds 0, not NaN
//       a = exp(m - r)
//       s[j] = exp(s[j] - r);  l = l a + sum s
//       sum[c] = sum[c] a + dot(s, v[:, c])
//       m = x
//     out[i, c] = sum[c] / l                            0 / 0 where a row sees no key: NaN, as the plain form gives
//
// A NaN or +inf score makes x NaN or inf and with it all of the row, as in the plain form. Where the graph counts NaN
// probabilities as 0, such rows are summed with probability 0 and not divided.
// The keys that are left after whole blocks are a block of their own, so that nothing is guarded. Whole blocks that a mask
// excludes are left out, and of the others the parts that it excludes; masks are applied to parts that they change
// (attention_skip.h). A number that the product is multiplied by first is applied to the query, and where nothing else is
// done with it the scores are logarithms to base 2.
#include "loop/lower/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "loop/lower/attention_skip.h"

namespace weft::loop {

using graph::Attr;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
constexpr double kLeastScale = 1e-6;  // of what is applied to the query

class AttentionEmitter {
 public:
  AttentionEmitter(const EmitContext& context, const Unit& unit)
      : context_(context),
        graph_(context.graph),
        unit_(unit),
        reader_(context.graph, context.stored, unit.outputs, step_.group),
        g_(step_.group),
        qk_(graph_.node(unit.attention.qk)),
        pv_(graph_.node(unit.attention.pv)) {}

  std::vector<Step> emit() {
    g_.name = "attention";
    for (graph::NodeId n : unit_.nodes) reader_.note(graph_.node(n));
    const Shape& scores = graph_.type(unit_.attention.scores).shape;
    keys_ = scores.back();
    size_ = graph_.type(qk_.operands[0]).shape[qk_.attrs.ints(Attr::LhsContract)[0]];
    value_size_ = graph_.type(pv_.results[0]).shape.back();
    std::vector<Step> steps;
    find_scale();
    base_two_ = unit_.attention_plan.powers_of_two && product_ == unit_.attention.scores;
    if (unit_.attention_plan.skips && !single()) skips_ = attention_skips(context_, unit_);
    if (skips_) steps = emit_attention_skips(context_, unit_, *skips_);
    const Nest rows = make_nest(g_, LoopKind::Parallel, {scores.begin(), scores.end() - 1});
    at_ = rows.at;
    g_.body = around(rows, row());
    step_.args = reader_.args();
    steps.push_back(std::move(step_));
    return steps;
  }

 private:
  ExprId number(double v) { return g_.constant(DType::F32, v); }
  ExprId f32(ScalarOp op, std::vector<ExprId> args) { return g_.scalar(op, DType::F32, std::move(args)); }
  ExprId test(ScalarOp op, std::vector<ExprId> args) { return g_.scalar(op, DType::Bool, std::move(args)); }
  ExprId select(ExprId c, ExprId a, ExprId b) { return f32(ScalarOp::Select, {c, a, b}); }

  // Of scores. exp(x ln 2) is how 2^x is written.
  ExprId exp_of_difference(ExprId a, ExprId b) {
    ExprId x = f32(ScalarOp::Sub, {a, b});
    if (!unit_.attention_plan.powers_of_two) return f32(ScalarOp::Exp, {x});
    if (!base_two_) x = f32(ScalarOp::Mul, {x, number(kLog2E)});
    return f32(ScalarOp::Exp, {f32(ScalarOp::Mul, {x, number(kLn2)})});
  }

  ParamId on_chip(const Dim& extent) { return reader_.scratch(kOnChip, DType::F32, {extent}, Role::OnChip); }

  // A loop, and the index that it gives.
  struct Along {
    Nest nest;
    ExprId at;
  };
  Along along(LoopKind kind, const Dim& extent) {
    Nest nest = make_nest(g_, kind, {extent});
    const ExprId at = nest.at[0];
    return {std::move(nest), at};
  }
  static void put(std::vector<Stmt>& into, const Along& loop, std::vector<Stmt> body) {
    for (Stmt& s : around(loop.nest, std::move(body))) into.push_back(std::move(s));
  }

  std::vector<Stmt> row() {
    std::vector<Stmt> body;
    const Dim block = unit_.attention_plan.block;
    query_ = on_chip(size_);
    s_ = on_chip(single() ? keys_ : block);
    if (parts() > 1) flags_ = on_chip(parts());
    sum_ = on_chip(value_size_);
    pack_query(body);
    if (!single()) {
      const Along c = along(LoopKind::Parallel, value_size_);
      put(body, c, {store_stmt(sum_, {c.at}, number(0))});
    }
    max_ = g_.add_local(DType::F32);
    total_ = g_.add_local(DType::F32);
    body.push_back(local_stmt(max_, number(-INFINITY)));
    body.push_back(local_stmt(total_, number(0)));
    if (single()) {
      keys(body, g_.constant_i64(0), keys_, true);
    } else {
      if (skips_) reach_ = query_reach(body);
      const Along blocks = along(LoopKind::Serial, floor_div(keys_, block));
      block_ = blocks.at;
      std::vector<Stmt> inner;
      if (parts() > 1) choose_parts(inner);
      keys(inner, g_.imul(blocks.at, g_.size(block)), block, false);
      put(body, blocks, std::move(inner));
      if (skips_ && !blocks.nest.loops.empty()) body.back().value = block_needed();
      block_ = -1;
      const Dim left = mod(keys_, block);
      if (!left.is(0)) keys(body, g_.size(keys_ - left), left, false);
    }
    finish(body);
    return body;
  }

  bool single() const { return keys_.is_const() && keys_.value() <= unit_.attention_plan.block; }

  // How far a score can be from that of a product of 0, in units of the largest key.
  ExprId query_reach(std::vector<Stmt>& body) {
    constexpr double kRounding = 1.01;  // of the sum in the product
    const LocalId most = g_.add_local(DType::F32);
    body.push_back(local_stmt(most, number(0)));
    const Along e = along(LoopKind::Reduce, size_);
    put(body, e, {update_stmt(most, Combine::Max, f32(ScalarOp::Abs, {g_.load(query_, {e.at})}))});
    const double factor = skips_->factor / std::fabs(scale_) * static_cast<double>(size_.value()) * kRounding;
    return f32(ScalarOp::Mul, {g_.local(most), number(factor)});
  }

  // Of a block's keys, what is left out one by one.
  std::int64_t parts() const { return skips_ ? unit_.attention_plan.block / skips_->count : 1; }
  ExprId part_of_block(ExprId part) { return g_.iadd(g_.imul(block_, g_.constant_i64(parts())), part); }

  ExprId part_needed(ExprId part) {
    std::vector<std::size_t> batch(skips_->keys_shape.size() - 1);
    std::iota(batch.begin(), batch.end(), std::size_t{0});
    const ExprId at = part_of_block(part);
    const ExprId largest_key = block_value(skips_->keys, skips_->keys_shape, batch, at);
    const ExprId mask = mask_value(skips_->masks, at);
    return weft::loop::block_needed(g_, g_.local(max_), mask, f32(ScalarOp::Mul, {reach_, largest_key}));
  }

  ExprId block_needed() {
    ExprId any = part_needed(g_.constant_i64(0));
    for (std::int64_t part = 1; part < parts(); ++part) any = test(ScalarOp::Or, {any, part_needed(g_.constant_i64(part))});
    return any;
  }

  // Notes which parts of the block are needed, before its scores raise the maximum: 0, or 1 where a mask may change scores, or 2.
  void choose_parts(std::vector<Stmt>& body) {
    const Along part = along(LoopKind::Parallel, parts());
    ExprId how = number(1);
    if (skips_->unmasked >= 0) how = select(part_masked(part.at), how, number(2));
    put(body, part, {store_stmt(flags_, {part.at}, select(part_needed(part.at), how, number(0)))});
  }

  ExprId part_masked(ExprId part) {
    return test(ScalarOp::Eq, {mask_value(skips_->plain, part_of_block(part)), number(0)});
  }

  ExprId mask_value(ValueId scratch, ExprId block) {
    std::vector<ExprId> at;
    for (std::size_t axis : skips_->mask_axes) at.push_back(at_[axis]);
    at.back() = g_.ifloordiv(at.back(), g_.constant_i64(kRowsTogether));
    at.push_back(block);
    return g_.load(reader_.scratch(scratch, DType::F32, skips_->masks_shape, Role::Input), at);
  }

  // What is known of a block, at the row's coordinates along `axes`.
  ExprId block_value(ValueId scratch, const Shape& shape, const std::vector<std::size_t>& axes, ExprId block) {
    std::vector<ExprId> at;
    for (std::size_t axis : axes) at.push_back(at_[axis]);
    at.push_back(block);
    return g_.load(reader_.scratch(scratch, DType::F32, shape, Role::Input), at);
  }

  // The number that the product is multiplied by before anything else is done with it.
  void find_scale() {
    product_ = qk_.results[0];
    const Node* user = nullptr;
    for (graph::NodeId n : unit_.attention.nodes) {
      const Node& node = graph_.node(n);
      if (std::find(node.operands.begin(), node.operands.end(), product_) == node.operands.end()) continue;
      if (user) return;
      user = &node;
    }
    if (!user || user->op != GOp::Mul || user->operands[0] == user->operands[1]) return;
    const auto by = one_number(graph_, user->operands[user->operands[0] == product_ ? 1 : 0]);
    if (!by || !(std::fabs(*by) <= 1) || std::fabs(*by) < kLeastScale) return;  // the query stays in range
    scale_ = *by;
    product_ = user->results[0];
  }

  // The scale of the keys is applied to the query, once, and that of the product.
  void pack_query(std::vector<Stmt>& body) {
    const Along e = along(LoopKind::Parallel, size_);
    const Scaled key = without_scale(graph_, qk_.operands[1]);
    key_ = key.value;
    std::vector<ExprId> lhs = coordinates(qk_, 0, e.at, -1);
    ExprId q = reader_.read(qk_.operands[0], lhs);
    if (key.factor >= 0) {
      std::vector<ExprId> anywhere(graph_.type(key.factor).shape.size(), g_.constant_i64(0));
      q = f32(ScalarOp::Mul, {q, reader_.read(key.factor, anywhere)});
    }
    const double scale = scale_ * (base_two_ ? kLog2E : 1);
    if (scale != 1) q = f32(ScalarOp::Mul, {q, number(scale)});
    put(body, e, {store_stmt(query_, {e.at}, q)});
  }

  std::vector<ExprId> coordinates(const Node& dot, int side, ExprId inner, ExprId free) const {
    return attention_coordinates(graph_, unit_.attention, &dot == &qk_ ? unit_.attention.qk : unit_.attention.pv, side, at_, inner, free);
  }

  // Keys [base, base + count), whose scores lie from `offset` on.
  struct Span {
    ExprId base, offset;
    Dim count;
    ExprId part = -1;  // its number in the block
  };

  // All of a block, or its parts that are needed one after the other.
  template <class Body>
  void each_part(std::vector<Stmt>& body, ExprId base, const Dim& count, const Body& make) {
    const ExprId none = g_.constant_i64(0);
    if (block_ < 0 || parts() == 1) return make(body, Span{base, none, count, none});
    const Along part = along(LoopKind::Serial, parts());
    const ExprId offset = g_.imul(part.at, g_.constant_i64(skips_->count));
    std::vector<Stmt> inner;
    make(inner, Span{g_.iadd(base, offset), offset, skips_->count, part.at});
    put(body, part, std::move(inner));
    body.back().value = test(ScalarOp::Ne, {g_.load(flags_, {part.at}), number(0)});
  }

  // One block: keys [base, base + count).
  void keys(std::vector<Stmt>& body, ExprId base, const Dim& count, bool single) {
    const LocalId x = g_.add_local(DType::F32);
    body.push_back(local_stmt(x, g_.local(max_)));
    each_part(body, base, count, [&](std::vector<Stmt>& inner, const Span& span) {
      scores(inner, span);
      const Along j = along(LoopKind::Reduce, span.count);
      put(inner, j, {update_stmt(x, Combine::Max, g_.load(s_, {g_.iadd(span.offset, j.at)}))});
    });
    const LocalId r = g_.add_local(DType::F32);
    body.push_back(local_stmt(r, select(test(ScalarOp::Eq, {g_.local(x), number(-INFINITY)}), number(0), g_.local(x))));
    const ExprId bad = test(ScalarOp::Not, {test(ScalarOp::Lt, {g_.local(x), number(INFINITY)})});
    const auto guarded = [&](ExprId p) { return unit_.attention.nan_to_zero ? select(bad, number(0), p) : p; };
    LocalId a = -1;
    if (!single) {
      a = g_.add_local(DType::F32);
      body.push_back(local_stmt(a, guarded(exp_of_difference(g_.local(max_), g_.local(r)))));
    }
    part_ = g_.add_local(DType::F32);
    body.push_back(local_stmt(part_, number(0)));
    each_part(body, base, count, [&](std::vector<Stmt>& inner, const Span& span) { probabilities(inner, span, r, guarded); });
    if (!single) {
      body.push_back(set_stmt(total_, f32(ScalarOp::Add, {f32(ScalarOp::Mul, {g_.local(total_), g_.local(a)}), g_.local(part_)})));
    } else {
      total_ = part_;
    }
    accumulate(body, base, count, a);
    if (!single) body.push_back(set_stmt(max_, g_.local(x)));
  }

  void scores(std::vector<Stmt>& body, const Span& span) {
    const Along j = along(LoopKind::Parallel, span.count);
    const ExprId key = g_.iadd(span.base, j.at);
    const Along e = along(LoopKind::Reduce, size_);
    const LocalId dot = g_.add_local(DType::F32);
    std::vector<Stmt> inner{local_stmt(dot, number(0))};
    const ExprId k = reader_.read(key_, coordinates(qk_, 1, e.at, key));
    put(inner, e, {update_stmt(dot, Combine::Sum, f32(ScalarOp::Mul, {k, g_.load(query_, {e.at})}))});
    std::vector<ExprId> at = at_;
    at.push_back(key);
    reader_.bind(product_, at, g_.local(dot));
    const ValueId scores = unit_.attention.scores;
    const bool chosen = block_ >= 0 && skips_ && skips_->unmasked >= 0;
    ExprId score = chosen ? reader_.read(skips_->unmasked, at) : -1;
    const bool by_choice = chosen && !reads_matrix(score, j);
    if (!by_choice) score = reader_.read(scores, at);
    const bool apart = !by_choice && reads_matrix(score, j);
    inner.push_back(store_stmt(s_, {g_.iadd(span.offset, j.at)}, apart ? g_.local(dot) : score));
    put(body, j, std::move(inner));
    if (apart) finish_scores(body, span, product_);
    if (!by_choice) return;
    std::vector<Stmt> masked;
    finish_scores(masked, span, skips_->unmasked);
    const ExprId when = parts() > 1 ? test(ScalarOp::Lt, {g_.load(flags_, {span.part}), number(2)}) : part_masked(span.part);
    body.push_back(loop_stmt(g_.add_loop(LoopKind::Serial, 1), std::move(masked), when));
  }

  // Whether a score needs an element of memory of its own: a mask, or a bias of positions. Such are read in a walk apart
  // from the product's, whose tiles have another shape than what lies in memory.
  bool reads_matrix(ExprId score, const Along& j) const {
    const ExprId row = at_.back();
    if (g_.expr(row).op != Op::Index || j.nest.loops.empty()) return false;
    const auto uses = [&](ExprId root, LoopId loop) {
      const auto used = used_exprs(g_, root);
      return std::any_of(used.begin(), used.end(), [&](ExprId e) { return g_.expr(e).op == Op::Index && g_.expr(e).id == loop; });
    };
    for (ExprId e : used_exprs(g_, score)) {
      const Op op = g_.expr(e).op;
      if ((op == Op::Load || op == Op::LoadIf) && uses(e, g_.expr(row).id) && uses(e, j.nest.loops[0])) return true;
    }
    return false;
  }

  // Scores in place of `before`, which they are made of.
  void finish_scores(std::vector<Stmt>& body, const Span& span, ValueId before) {
    const Along j = along(LoopKind::Parallel, span.count);
    const ExprId place = g_.iadd(span.offset, j.at);
    std::vector<ExprId> at = at_;
    at.push_back(g_.iadd(span.base, j.at));
    reader_.bind(before, at, g_.load(s_, {place}));
    put(body, j, {store_stmt(s_, {place}, reader_.read(unit_.attention.scores, at))});
  }

  // Relative to r, in place of scores; their sum is added to part_.
  template <class Guard>
  void probabilities(std::vector<Stmt>& body, const Span& span, LocalId r, const Guard& guarded) {
    const Along j = along(LoopKind::Reduce, span.count);
    const ExprId place = g_.iadd(span.offset, j.at);
    const LocalId p = g_.add_local(DType::F32);
    put(body, j,
        {local_stmt(p, guarded(exp_of_difference(g_.load(s_, {place}), g_.local(r)))), store_stmt(s_, {place}, g_.local(p)),
         update_stmt(part_, Combine::Sum, g_.local(p))});
  }

  void accumulate(std::vector<Stmt>& body, ExprId base, const Dim& count, LocalId a) {
    const Along c = along(LoopKind::Parallel, value_size_);
    const LocalId dot = g_.add_local(DType::F32);
    const ExprId before = a < 0 ? number(0) : f32(ScalarOp::Mul, {g_.load(sum_, {c.at}), g_.local(a)});
    std::vector<Stmt> inner{local_stmt(dot, before)};
    each_part(inner, base, count, [&](std::vector<Stmt>& part, const Span& span) {
      const Along j = along(LoopKind::Reduce, span.count);
      const ExprId v = reader_.read(pv_.operands[1], coordinates(pv_, 1, g_.iadd(span.base, j.at), c.at));
      put(part, j, {update_stmt(dot, Combine::Sum, f32(ScalarOp::Mul, {v, g_.load(s_, {g_.iadd(span.offset, j.at)})}))});
    });
    inner.push_back(store_stmt(sum_, {c.at}, g_.local(dot)));
    put(body, c, std::move(inner));
  }

  void finish(std::vector<Stmt>& body) {
    const Along c = along(LoopKind::Parallel, value_size_);
    const ExprId sum = g_.load(sum_, {c.at}), total = g_.local(total_);
    ExprId value = f32(ScalarOp::Div, {sum, total});
    if (unit_.attention.nan_to_zero) {
      value = select(test(ScalarOp::Eq, {total, number(0)}), sum, value);
    } else if (graph_.facts.range(keys_).lo < 1) {  // a product over nothing is 0
      value = select(test(ScalarOp::Eq, {g_.size(keys_), g_.constant_i64(0)}), sum, value);
    }
    const auto& batch = pv_.attrs.ints(Attr::LhsBatch);
    std::vector<ExprId> at;
    std::vector<bool> used(at_.size(), false);
    for (std::int64_t axis : batch) at.push_back(at_[axis]), used[axis] = true;
    for (std::size_t d = 0; d < at_.size(); ++d) {
      if (!used[d]) at.push_back(at_[d]);
    }
    at.push_back(c.at);
    const ValueId out = pv_.results[0];
    put(body, c, {store_stmt(reader_.output(out), at, reader_.to_storage(out, value))});
  }

  const EmitContext& context_;
  const graph::Graph& graph_;
  const Unit& unit_;
  std::optional<AttentionSkips> skips_;
  Step step_;
  Reader reader_;
  Group& g_;
  const Node &qk_, &pv_;
  Dim keys_, size_, value_size_;
  std::vector<ExprId> at_;  // the row
  ParamId query_ = 0, s_ = 0, sum_ = 0, flags_ = 0;
  LocalId max_ = 0, total_ = 0, part_ = 0;
  ValueId key_ = -1, product_ = -1;  // the keys without their scale, the product with its own
  double scale_ = 1;
  bool base_two_ = false;
  ExprId reach_ = -1, block_ = -1;  // of the whole blocks that are being written
};

}  // namespace

std::vector<Step> emit_attention(const EmitContext& context, const Unit& unit) { return AttentionEmitter(context, unit).emit(); }

}  // namespace weft::loop
