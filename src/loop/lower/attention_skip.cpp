#include "loop/lower/attention_skip.h"

#include <algorithm>
#include <cmath>

#include "base/likely.h"

namespace weft::loop {

using graph::Attr;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

constexpr double kSharedBy = 8;     // rows of scores, at least, for one of the masks: the masks are read once more
constexpr double kReachOfExp = 110;  // exp(-x) is 0 in f32 from 104 on
constexpr double kSlack = 0x1p-20;   // more than what rounding moves a score by, relative to the numbers it is made of

// The factor of the product in the scores, where each step between them is a number's multiple, a term more or less,
// a choice between it and something else, or tanh, which grows no faster than what it is taken of.
class Steps {
 public:
  Steps(const Graph& g, const Attention& a) : g_(g), a_(a), product_(g.node(a.qk).results[0]) {}

  std::optional<double> factor(ValueId v) const {
    if (v == product_) return 1;
    const Node* node = g_.def(v);
    const auto inside = [&](int side) { return this->inside(*node, side); };
    const auto scaled = [&](int side, std::optional<double> by) -> std::optional<double> {
      const auto before = by ? factor(node->operands[side]) : std::nullopt;
      return before ? std::optional(*before * std::fabs(*by)) : std::nullopt;
    };
    switch (node->op) {
      case GOp::Tanh:
        return scaled(0, 1);
      case GOp::Add:
      case GOp::Sub:
        return inside(0) != inside(1) ? scaled(inside(0) ? 0 : 1, 1) : std::nullopt;
      case GOp::Mul: {
        const int side = inside(0) ? 0 : 1;
        return scaled(side, one_number(g_, node->operands[1 - side]));
      }
      case GOp::Div: {
        const auto by = one_number(g_, node->operands[1]);
        return scaled(0, by ? std::optional(1 / *by) : std::nullopt);
      }
      case GOp::Select:
        return inside(1) != inside(2) ? scaled(inside(1) ? 1 : 2, 1) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  // The last steps, as far as each changes nothing for some value of what it adds or chooses by.
  struct Masks {
    std::vector<const Node*> steps;
    ValueId before;
  };
  Masks masks(ValueId v) const {
    Masks found{{}, v};
    while (found.before != product_) {
      const Node* node = g_.def(found.before);
      const int side = product_side(*node);
      if (side < 0) break;
      found.steps.push_back(node);
      found.before = node->operands[side];
    }
    return found;
  }
  // The operand of a mask's step that the product is in; -1: none, or in several, or no mask's step.
  int product_side(const Node& node) const {
    const bool sum = node.op == GOp::Add || node.op == GOp::Sub, choice = node.op == GOp::Select;
    if (!sum && !choice) return -1;
    const int first = choice ? 1 : 0;
    const bool left = inside(node, first), right = inside(node, first + 1);
    if (left == right || (right && node.op == GOp::Sub)) return -1;
    return left ? first : first + 1;
  }

 private:
  bool inside(const Node& node, int side) const {
    return std::find(a_.nodes.begin(), a_.nodes.end(), g_.value(node.operands[side]).def) != a_.nodes.end();
  }

  const Graph& g_;
  const Attention& a_;
  ValueId product_;
};

// A kernel for one of the arrays.
struct Maxima {
  Maxima(const EmitContext& context, const Unit& unit, const char* name)
      : reader(context.graph, context.stored, unit.outputs, step.group), g(step.group) {
    g.name = name;
    for (graph::NodeId n : unit.nodes) reader.note(context.graph.node(n));
  }

  // The score at `at` of a product of 0.
  ExprId mask(const EmitContext& context, const Unit& unit, const std::vector<ExprId>& at) {
    reader.bind(context.graph.node(unit.attention.qk).results[0], at, g.constant(DType::F32, 0));
    return reader.read(unit.attention.scores, at);
  }

  LocalId begin(std::vector<Stmt>& body) {
    const LocalId most = g.add_local(DType::F32);
    body.push_back(local_stmt(most, g.constant(DType::F32, -INFINITY)));
    return most;
  }
  void largest(std::vector<Stmt>& body, LocalId most, const Nest& over, ExprId value) {
    for (Stmt& s : around(over, {update_stmt(most, Combine::Max, value)})) body.push_back(std::move(s));
  }

  Step finish(const Nest& nest, std::vector<Stmt> body, ValueId into, const Shape& shape, ExprId value) {
    body.push_back(store_stmt(reader.scratch(into, DType::F32, shape, Role::Output), nest.at, value));
    g.body = around(nest, std::move(body));
    step.args = reader.args();
    return std::move(step);
  }

  Step step;
  Reader reader;
  Group& g;
};

// 1 where no mask changes a score at `at`, else 0.
ExprId unchanged(Maxima& kernel, const Steps& steps, const Steps::Masks& masks, const std::vector<ExprId>& at) {
  Group& g = kernel.g;
  ExprId all = -1;
  for (const Node* node : masks.steps) {
    const int side = steps.product_side(*node);
    ExprId same = kernel.reader.read(node->operands[node->op == GOp::Select ? 0 : 1 - side], at);
    if (node->op != GOp::Select) {
      same = g.scalar(ScalarOp::Eq, DType::Bool, {same, g.constant(DType::F32, 0)});
    } else if (side == 2) {
      same = g.scalar(ScalarOp::Not, DType::Bool, {same});
    }
    all = all < 0 ? same : g.scalar(ScalarOp::And, DType::Bool, {all, same});
  }
  return g.scalar(ScalarOp::Select, DType::F32, {all, g.constant(DType::F32, 1), g.constant(DType::F32, 0)});
}

// The axes of the scores that the score of a product of 0 depends on.
std::vector<std::size_t> axes_of_mask(const EmitContext& context, const Unit& unit) {
  Maxima trial(context, unit, "");
  const Nest all = make_nest(trial.g, LoopKind::Parallel, context.graph.type(unit.attention.scores).shape);
  const auto used = used_exprs(trial.g, trial.mask(context, unit, all.at));
  std::vector<std::size_t> axes;
  for (std::size_t d = 0; d < all.at.size(); ++d) {
    if (std::find(used.begin(), used.end(), all.at[d]) != used.end()) axes.push_back(d);
  }
  return axes;
}

Step emit_masks(const EmitContext& context, const Unit& unit, const AttentionSkips& skips) {
  Maxima kernel(context, unit, "attention_masks");
  Group& g = kernel.g;
  const Nest nest = make_nest(g, LoopKind::Parallel, skips.masks_shape);
  std::vector<Stmt> body;
  const LocalId most = kernel.begin(body);
  const Dim& rows = context.graph.type(unit.attention.scores).shape.end()[-2];
  const Nest over = make_nest(g, LoopKind::Reduce, {min(rows, Dim(kRowsTogether)), Dim(skips.count)});
  std::vector<ExprId> at(context.graph.type(unit.attention.scores).shape.size(), g.constant_i64(0));
  for (std::size_t k = 0; k < skips.mask_axes.size(); ++k) at[skips.mask_axes[k]] = nest.at[k];
  ExprId& row = at[at.size() - 2];
  row = g.iadd(g.imul(row, g.constant_i64(kRowsTogether)), over.at[0]);
  if (!mod(rows, Dim(kRowsTogether)).is(0)) row = g.scalar(ScalarOp::Min, DType::I64, {row, g.size(rows - 1)});  // again the last one
  at.back() = g.iadd(g.imul(nest.at.back(), g.constant_i64(skips.count)), over.at[1]);
  std::vector<Stmt> inner{update_stmt(most, Combine::Max, kernel.mask(context, unit, at))};
  const LocalId plain = g.add_local(DType::F32);
  if (skips.unmasked >= 0) {
    const Steps steps(context.graph, unit.attention);
    body.push_back(local_stmt(plain, g.constant(DType::F32, 1)));
    inner.push_back(update_stmt(plain, Combine::Min, unchanged(kernel, steps, steps.masks(unit.attention.scores), at)));
  }
  for (Stmt& s : around(over, std::move(inner))) body.push_back(std::move(s));
  if (skips.unmasked >= 0) {
    body.push_back(store_stmt(kernel.reader.scratch(skips.plain, DType::F32, skips.masks_shape, Role::Output), nest.at, g.local(plain)));
  }
  return kernel.finish(nest, std::move(body), skips.masks, skips.masks_shape, g.local(most));
}

Step emit_keys(const EmitContext& context, const Unit& unit, const AttentionSkips& skips) {
  const Graph& graph = context.graph;
  const Attention& a = unit.attention;
  Maxima kernel(context, unit, "attention_keys");
  Group& g = kernel.g;
  const Nest nest = make_nest(g, LoopKind::Parallel, skips.keys_shape);
  std::vector<ExprId> row(nest.at.begin(), nest.at.end() - 1);
  row.resize(graph.type(a.scores).shape.size() - 1, g.constant_i64(0));
  std::vector<Stmt> body;
  const auto largest = [&](graph::NodeId product, ValueId operand, const Dim& size, bool keys_first) {
    const LocalId most = kernel.begin(body);
    const Nest over = make_nest(g, LoopKind::Reduce, {Dim(skips.count), size});
    const ExprId key = g.iadd(g.imul(nest.at.back(), g.constant_i64(skips.count)), over.at[0]);
    const auto at = attention_coordinates(graph, a, product, 1, row, keys_first ? key : over.at[1], keys_first ? over.at[1] : key);
    kernel.largest(body, most, over, g.scalar(ScalarOp::Abs, DType::F32, {kernel.reader.read(operand, at)}));
    return g.local(most);
  };
  const Node &qk = graph.node(a.qk), &pv = graph.node(a.pv);
  const Dim& size = graph.type(qk.operands[0]).shape[qk.attrs.ints(Attr::LhsContract)[0]];
  const ExprId keys = largest(a.qk, without_scale(graph, qk.operands[1]).value, size, false);
  const ExprId values = largest(a.pv, pv.operands[1], graph.type(pv.results[0]).shape.back(), true);
  const ExprId nothing = g.scalar(ScalarOp::Mul, DType::F32, {values, g.constant(DType::F32, 0)});  // NaN where not finite
  return kernel.finish(nest, std::move(body), skips.keys, skips.keys_shape, g.scalar(ScalarOp::Add, DType::F32, {keys, nothing}));
}

}  // namespace

std::optional<AttentionSkips> attention_skips(const EmitContext& context, const Unit& unit) {
  const Graph& graph = context.graph;
  const Attention& a = unit.attention;
  const Shape& scores = graph.type(a.scores).shape;
  const Steps steps(graph, a);
  const auto factor = steps.factor(a.scores);
  if (!factor || !std::isfinite(*factor)) return std::nullopt;
  AttentionSkips skips;
  skips.factor = *factor;
  skips.mask_axes = axes_of_mask(context, unit);
  if (skips.mask_axes.empty() || skips.mask_axes.back() + 1 != scores.size()) return std::nullopt;
  skips.mask_axes.pop_back();
  const bool by_row = !skips.mask_axes.empty() && skips.mask_axes.back() + 2 == scores.size();
  if (!by_row) return std::nullopt;  // padding: where there is any, it is short
  double others = 1;
  for (std::size_t d = 0; d + 1 < scores.size(); ++d) {
    const bool own = std::find(skips.mask_axes.begin(), skips.mask_axes.end(), d) != skips.mask_axes.end();
    if (own) skips.masks_shape.push_back(scores[d]);
    else others *= likely_size(scores[d]);
  }
  if (others < kSharedBy) return std::nullopt;
  const auto batch = graph.node(a.qk).attrs.ints(Attr::LhsBatch).size();
  for (const std::int64_t axis : graph.node(a.pv).attrs.ints(Attr::LhsBatch)) {
    if (axis >= static_cast<std::int64_t>(batch)) return std::nullopt;  // values of their own for what shares its keys
  }
  skips.keys_shape.assign(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(batch));
  const std::int64_t block = unit.attention_plan.block, parts = unit.attention_plan.part > 0 ? block / unit.attention_plan.part : 1;
  skips.count = block / parts;
  const Dim blocks = floor_div(scores.back(), Dim(block)) * Dim(parts);
  skips.masks_shape.back() = ceil_div(skips.masks_shape.back(), Dim(kRowsTogether));
  skips.masks_shape.push_back(blocks);
  skips.keys_shape.push_back(blocks);
  skips.masks = add_scratch(context, DType::F32, skips.masks_shape);
  skips.keys = add_scratch(context, DType::F32, skips.keys_shape);
  const Steps::Masks masks = steps.masks(a.scores);
  if (!masks.steps.empty()) {
    skips.unmasked = masks.before;
    skips.plain = add_scratch(context, DType::F32, skips.masks_shape);
  }
  return skips;
}

std::vector<Step> emit_attention_skips(const EmitContext& context, const Unit& unit, const AttentionSkips& skips) {
  std::vector<Step> steps;
  steps.push_back(emit_masks(context, unit, skips));
  steps.push_back(emit_keys(context, unit, skips));
  return steps;
}

// Comparisons with NaN are false: what is not known to be far below is needed.
ExprId block_needed(Group& g, ExprId most, ExprId mask, ExprId reach) {
  const auto f32 = [&](ScalarOp op, ExprId a, ExprId b) { return g.scalar(op, DType::F32, {a, b}); };
  const auto test = [&](ScalarOp op, ExprId a, ExprId b) { return g.scalar(op, DType::Bool, {a, b}); };
  const auto number = [&](double v) { return g.constant(DType::F32, v); };
  const ExprId half = f32(ScalarOp::Mul, f32(ScalarOp::Sub, most, mask), number(0.5));
  const ExprId rounding = f32(ScalarOp::Mul, g.scalar(ScalarOp::Abs, DType::F32, {most}), number(kSlack));
  const ExprId far = test(ScalarOp::Lt, f32(ScalarOp::Add, f32(ScalarOp::Add, reach, number(kReachOfExp)), rounding), half);
  const ExprId excluded = test(ScalarOp::And, test(ScalarOp::Eq, mask, number(-INFINITY)), test(ScalarOp::Lt, reach, number(INFINITY)));
  return g.scalar(ScalarOp::Not, DType::Bool, {test(ScalarOp::Or, far, excluded)});
}

std::vector<ExprId> attention_coordinates(const Graph& graph, const Attention& a, graph::NodeId product, int side,
                                          const std::vector<ExprId>& row, ExprId inner, ExprId free) {
  const Node& dot = graph.node(product);
  const auto& left_batch = dot.attrs.ints(Attr::LhsBatch);
  const auto& batch = side == 0 ? left_batch : dot.attrs.ints(Attr::RhsBatch);
  const auto& contract = dot.attrs.ints(side == 0 ? Attr::LhsContract : Attr::RhsContract);
  std::vector<ExprId> at(graph.type(dot.operands[side]).shape.size(), -1);
  // The scores' axes are those of the first product's result; the second one names them by its left side.
  for (std::size_t k = 0; k < batch.size(); ++k) at[batch[k]] = row[product == a.qk ? k : left_batch[k]];
  at[contract[0]] = inner;
  std::size_t next = batch.size();
  for (ExprId& x : at) {
    if (x < 0) x = side == 0 ? row[next++] : free;
  }
  return at;
}

}  // namespace weft::loop
