// Losses over classes: negative log likelihood, alone and after a softmax.
#include <fmt/format.h>

#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"
#include "ops/norm.h"

namespace weft::onnx {

namespace {

using graph::Attr;
using graph::Attrs;
using graph::Op;

// log_probabilities [N, C, d...], labels [N, d...], weights [C] or none. The reduction "mean" divides by the sum of the
// weights of the labels.
Result<ValueId> likelihood_loss(NodeContext& c, ValueId log_probabilities) {
  const Shape scores = c.b.shape(log_probabilities), labels = c.shape(1);
  if (scores.size() < 2 || labels.size() + 1 != scores.size()) return c.bad("the input must be [N, C, ...], the target [N, ...]");
  std::string reduction = c.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") return c.bad(fmt::format("unknown reduction '{}'", reduction));
  DType t = c.b.dtype(log_probabilities);
  ValueId label = c.b.cast(c.in(1), DType::I64), zero = c.b.scalar(DType::I64, 0);
  ValueId counts = -1;  // bool: the label is not the one to ignore
  if (c.has_attr("ignore_index")) {
    ValueId ignored = c.b.constant(Tensor::scalar_i64(DType::I64, c.integer("ignore_index", 0)));
    counts = c.b.binary(Op::Ne, label, ignored);
    label = c.b.select(counts, label, zero);
  }
  Shape column = labels;
  column.insert(column.begin() + 1, Dim(1));
  ValueId picked = c.b.node(Op::GatherElements, {log_probabilities, c.b.reshape(label, column)},
                            Attrs().set(Attr::Axis, std::int64_t{1}));
  ValueId loss = c.b.unary(Op::Neg, c.b.reshape(picked, labels));
  ValueId weight = c.has(2) ? c.b.gather(c.in(2), label, 0) : c.b.splat({t, labels}, 1);
  if (counts >= 0) {
    weight = c.b.select(counts, weight, c.b.scalar(t, 0));
    loss = c.b.select(counts, loss, c.b.scalar(t, 0));
  }
  if (c.has(2)) loss = c.b.binary(Op::Mul, loss, weight);
  if (reduction == "none") return loss;
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < labels.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
  ValueId sum = c.b.reduce(Op::ReduceSum, loss, axes);
  if (reduction == "sum") return sum;
  return c.b.binary(Op::Div, sum, c.b.reduce(Op::ReduceSum, weight, axes));
}

Result<void> negative_log_likelihood(NodeContext& c) {
  c.out(0, WEFT_TRY(likelihood_loss(c, c.in(0))));
  return {};
}

Result<void> softmax_cross_entropy(NodeContext& c) {
  if (c.rank(0) < 2) return c.bad("scores must be [N, C, ...]");
  ValueId log_probabilities = ops::log_softmax(c.b, c.in(0), {1});
  c.out(0, WEFT_TRY(likelihood_loss(c, log_probabilities)));
  c.out(1, log_probabilities);
  return {};
}

constexpr OpEntry kLossOps[] = {
    {"NegativeLogLikelihoodLoss", 12, kOpsetMax, 2, 3, "ignore_index reduction", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, kOpsetMax, 2, 3, "ignore_index reduction", softmax_cross_entropy},
};

}  // namespace

OpTable loss_ops() { return {kLossOps, std::size(kLossOps)}; }

}  // namespace weft::onnx
