// Constant folding by the interpreter, and of shape arithmetic by the contents analysis.
#include "graph/content.h"
#include "graph/rewrite.h"
#include "transform/passes.h"

namespace weft::transform {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using GOp = graph::Op;

namespace {

// Bytes of all results, or nothing when a size is symbolic.
std::optional<std::size_t> result_bytes(const Graph& g, const Node& node) {
  std::size_t total = 0;
  for (ValueId v : node.results) {
    auto sizes = static_sizes(g.type(v).shape);
    if (!sizes) return std::nullopt;
    std::int64_t count = 1;
    for (std::int64_t d : *sizes) {
      if (__builtin_mul_overflow(count, d, &count)) return std::nullopt;
    }
    auto bytes = storage_bytes(g.type(v).dtype, count);
    if (!bytes) return std::nullopt;
    total += *bytes;
  }
  return total;
}

constexpr std::size_t kSpreadBytes = 64 << 20;

// A constant spread out costs memory and saves nothing: kernels read through it.
bool only_spreads(const Node& node) { return node.op == GOp::Broadcast || node.op == GOp::Iota; }

// Large weights stay where they are until their last layout is known: a kernel's packing reads them in any order.
constexpr std::size_t kDeferredBytes = 64 << 10;

bool moves_later(const Node& node, const Tensor& data) {
  return node.op == GOp::Transpose && data.byte_size() >= kDeferredBytes && !is_string(data.dtype()) &&
         bits(data.dtype()) % 8 == 0;
}

int result_rank(const graph::RewriteContext& c) {
  return c.node.results.empty() ? 0 : c.from.type(c.node.results[0]).rank();
}

// The elements of a constant that a broadcast spreads out, for the moment of folding what reads it.
std::optional<Tensor> spread_constant(const Graph& g, ValueId v) {
  const Node* node = g.def(v);
  if (!node || node->op != GOp::Broadcast || !g.constant(node->operands[0])) return std::nullopt;
  const auto bytes = result_bytes(g, *node);
  if (!bytes || *bytes > kSpreadBytes) return std::nullopt;
  Bindings none;
  auto results = graph::interpret_node(g, *node, {*g.constant(node->operands[0])}, none);
  if (!results.ok()) return std::nullopt;
  return (*results)[0];
}

class Folder {
 public:
  explicit Folder(std::size_t budget) : budget_(budget) {}

  std::optional<std::vector<ValueId>> operator()(const graph::RewriteContext& c) {
    const graph::OpInfo& op = info(c.node.op);
    if (!op.pure || c.node.op == GOp::Constant || only_spreads(c.node) || !c.regions.empty()) return std::nullopt;
    auto bytes = result_bytes(c.from, c.node);
    if (!bytes || *bytes > budget_) return std::nullopt;
    std::vector<Tensor> operands;
    // Of a result that only spreads its operands nothing is gained by having it.
    bool dense = c.operands.empty() || result_rank(c) == 0;
    for (ValueId v : c.operands) {
      const Tensor* data = c.builder.graph().constant(v);
      dense = dense || (data && (data->rank() > 0 || c.operands.size() == 1));
      std::optional<Tensor> value = data ? std::optional(*data) : spread_constant(c.builder.graph(), v);
      if (!value) return std::nullopt;
      operands.push_back(std::move(*value));
    }
    if (!dense) return std::nullopt;
    if (!operands.empty() && moves_later(c.node, operands[0])) {
      const auto& order = c.node.attrs.ints(graph::Attr::Axes);
      return std::vector<ValueId>{c.builder.constant(operands[0].permuted({order.begin(), order.end()}))};
    }
    Bindings none;
    auto results = graph::interpret_node(c.from, c.node, operands, none);
    if (!results.ok()) return std::nullopt;  // fails when it runs, if it does
    budget_ -= *bytes;
    std::vector<ValueId> values;
    for (Tensor& t : *results) values.push_back(c.builder.constant(std::move(t)));
    return values;
  }

 private:
  std::size_t budget_;
};

}  // namespace

Result<Graph> fold_constants(const Graph& graph, const PassOptions& options) {
  return graph::Rewriter(Folder(options.fold_bytes)).run(graph);
}

Result<Graph> fold_shapes(const Graph& graph, const PassOptions&) {
  const Graph* analysed = nullptr;
  std::unique_ptr<graph::Contents> contents;
  return graph::Rewriter([&](const graph::RewriteContext& c) -> std::optional<std::vector<ValueId>> {
           if (c.node.op == GOp::Constant || c.node.op == GOp::ShapeValue || c.node.results.size() != 1) return std::nullopt;
           if (!info(c.node.op).pure || only_spreads(c.node)) return std::nullopt;
           if (analysed != &c.from) {
             contents = std::make_unique<graph::Contents>(c.from);
             analysed = &c.from;
           }
           const auto& known = contents->of(c.node.results[0]);
           if (!known) return std::nullopt;
           const graph::Type& type = c.from.type(c.node.results[0]);
           ValueId made = c.builder.cast(c.builder.shape_value(*known), type.dtype);
           return std::vector<ValueId>{c.builder.reshape(made, type.shape)};
         })
      .run(graph);
}

}  // namespace weft::transform
