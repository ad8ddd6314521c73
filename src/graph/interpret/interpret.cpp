#include <fmt/format.h>

#include <algorithm>

#include "graph/interpret/eval.h"
#include "runtime/hostops/hostops.h"

namespace weft::graph {
namespace interpreter {
namespace {

constexpr int kMaxDepth = 128;  // of regions within regions

Result<Tensors> eval(Eval& e) {
  switch (info(e.op()).family) {
    case Family::Unary: return eval_unary(e);
    case Family::Binary: return eval_binary(e);
    case Family::Select: return eval_select(e);
    case Family::Cast: return eval_cast(e);
    case Family::Movement: return eval_movement(e);
    case Family::Source: return eval_source(e);
    case Family::Gather: return eval_gather(e);
    case Family::Scatter: return eval_scatter(e);
    case Family::Reduce: return eval_reduce(e);
    case Family::Scan: return eval_scan(e);
    case Family::Sort: return eval_sort(e);
    case Family::Dot: return eval_dot(e);
    case Family::Conv: return e.op() == Op::ConvWinograd ? eval_conv_winograd(e) : eval_conv(e);
    case Family::Window: return eval_window(e);
    case Family::Control: return eval_control(e);
    case Family::Host: return eval_host(e);
  }
  return internal_error("an op without a family");
}

// What the graph says of a result must hold; sizes that are still unknown get their values here.
Result<void> check_result(const Type& type, const Tensor& t, Bindings& bindings) {
  const bool fits = type.dtype == t.dtype() && runtime::fit_shape(type.shape, t.shape(), bindings);
  if (fits) return {};
  return user_error("shape-mismatch", "a result differs from what the graph states")
      .expected(str(type))
      .found(name(t.dtype()) + shape_str(t.shape()));
}

Result<Tensors> eval_node(const Graph& graph, const Node& node, const Tensors& operands, Bindings& bindings,
                          int depth) {
  const OpInfo& op = info(node.op);
  WEFT_CHECK(static_cast<int>(operands.size()) >= op.min_operands, std::string("operands of ") + op.name);
  Eval e{graph, node, operands, bindings, depth};
  Tensors results = WEFT_TRY(eval(e));
  if (node.results.size() == results.size()) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId id = node.results[i];
      if (id < 0 || id >= static_cast<ValueId>(graph.values().size())) continue;
      WEFT_TRY(check_result(graph.type(id), results[i], bindings));
    }
  }
  return results;
}

// An error that names no place yet gets the user's node, or the prim where there is none.
Result<Tensors> eval_named(const Graph& graph, const Node& node, const Tensors& operands, Bindings& bindings,
                           int depth) {
  Result<Tensors> results = eval_node(graph, node, operands, bindings, depth);
  if (results.ok() || !results.error().where().empty()) return results;
  Error error = results.error();
  error.at(node.origin ? str(*node.origin) : info(node.op).name);
  return error;
}

Error wrong_input(const Graph& graph, std::size_t i, const Sizes& shape) {
  const Value& v = graph.value(graph.inputs()[i]);
  return user_error("shape-mismatch", fmt::format("the shape of input {} does not fit the graph", i))
      .at(v.name.empty() ? fmt::format("input {}", i) : v.name)
      .expected(str(v.type.shape))
      .found(shape_str(shape));
}

// Binds the bare symbols of the inputs, takes those still unknown from `outer`, solves the linear expressions, then
// checks every size.
Result<void> bind_shapes(const Graph& graph, const std::vector<Sizes>& shapes, Bindings& bindings,
                         const Bindings& outer = {}) {
  if (shapes.size() != graph.inputs().size()) {
    return user_error("wrong-input-count", "the number of inputs differs from the graph's")
        .expected(fmt::to_string(graph.inputs().size()))
        .found(fmt::to_string(shapes.size()));
  }
  const auto each = [&](auto&& f) {
    bool ok = true;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape& want = graph.type(graph.inputs()[i]).shape;
      for (std::size_t a = 0; a < want.size(); ++a) ok = f(want[a], shapes[i][a]) && ok;
    }
    return ok;
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].size() != graph.type(graph.inputs()[i]).shape.size()) return wrong_input(graph, i, shapes[i]);
  }
  each([&](const Dim& d, std::int64_t size) {
    if (const auto s = d.as_symbol()) bindings.emplace(*s, size);
    return true;
  });
  bindings.insert(outer.begin(), outer.end());
  each([&](const Dim& d, std::int64_t size) { return d.is_const() || runtime::solve_symbol(d, size, bindings) || true; });
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape& want = graph.type(graph.inputs()[i]).shape;
    for (std::size_t a = 0; a < want.size(); ++a) {
      const auto size = want[a].evaluate(bindings);
      if (!size.ok() || *size != shapes[i][a]) return wrong_input(graph, i, shapes[i]);
    }
  }
  return {};
}

std::vector<Sizes> shapes_of(const Tensors& tensors) {
  std::vector<Sizes> shapes;
  for (const Tensor& t : tensors) shapes.push_back(t.shape());
  return shapes;
}

Result<void> check_dtypes(const Graph& graph, const Tensors& inputs) {
  for (std::size_t i = 0; i < std::min(inputs.size(), graph.inputs().size()); ++i) {
    const Value& v = graph.value(graph.inputs()[i]);
    if (v.type.dtype == inputs[i].dtype()) continue;
    return user_error("dtype-mismatch", fmt::format("the dtype of input {} differs from the graph's", i))
        .at(v.name.empty() ? fmt::format("input {}", i) : v.name)
        .expected(name(v.type.dtype))
        .found(name(inputs[i].dtype()));
  }
  return {};
}

Result<Tensors> run_nodes(const Graph& graph, Tensors inputs, Bindings bindings, int depth) {
  std::vector<int> uses(graph.values().size(), 0);  // operands still to be read; outputs are never freed
  for (const Node& node : graph.nodes()) {
    for (ValueId v : node.operands) ++uses[v];
  }
  for (ValueId v : graph.outputs()) ++uses[v];
  Tensors values(graph.values().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = graph.inputs()[i];
    if (uses[v] > 0) values[v] = std::move(inputs[i]);
  }
  inputs.clear();
  for (const Node& node : graph.nodes()) {
    Tensors operands;
    for (ValueId v : node.operands) {
      operands.push_back(values[v]);
      if (--uses[v] == 0) values[v] = Tensor();
    }
    Tensors results = WEFT_TRY(eval_named(graph, node, operands, bindings, depth));
    WEFT_CHECK(results.size() == node.results.size(), std::string("results of ") + info(node.op).name);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (uses[node.results[i]] > 0) values[node.results[i]] = std::move(results[i]);
    }
  }
  Tensors outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(values[v]);
  return outputs;
}

}  // namespace

Result<Tensors> run_region(const Graph& region, Tensors inputs, const Bindings& outer, int depth) {
  if (depth > kMaxDepth) return user_error("too-deep", fmt::format("regions nest deeper than {} levels", kMaxDepth));
  WEFT_TRY(check_dtypes(region, inputs));
  Bindings bindings;
  WEFT_TRY(bind_shapes(region, shapes_of(inputs), bindings, outer));
  return run_nodes(region, std::move(inputs), std::move(bindings), depth);
}

Result<Sizes> Eval::dims(Attr key) const {
  Sizes values;
  for (const Dim& d : attrs().dims(key)) values.push_back(WEFT_TRY(d.evaluate(bindings)));
  return values;
}

Error Eval::error(const char* code, const std::string& message) const {
  return user_error(code, fmt::format("{}: {}", info(op()).name, message));
}

Result<void> check_same_shapes(const Eval& e) {
  for (const Tensor& t : e.in) {
    if (t.shape() == e.in[0].shape()) continue;
    return e.error("shape-mismatch", "the operands' shapes differ")
        .expected(shape_str(e.in[0].shape()))
        .found(shape_str(t.shape()));
  }
  return {};
}

std::int64_t count_of(const Sizes& shape) { return count_of(shape, 0, shape.size()); }

std::int64_t count_of(const Sizes& shape, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t a = from; a < to; ++a) n *= shape[a];
  return n;
}

bool next_index(Sizes& index, const Sizes& shape) {
  for (std::size_t a = shape.size(); a-- > 0;) {
    if (++index[a] < shape[a]) return true;
    index[a] = 0;
  }
  return false;
}

}  // namespace interpreter

Result<Bindings> bind_inputs(const Graph& graph, const std::vector<std::vector<std::int64_t>>& shapes) {
  Bindings bindings;
  WEFT_TRY(interpreter::bind_shapes(graph, shapes, bindings));
  DimFacts bound;  // the facts of the symbols that the inputs bind; others get their values later
  for (const auto& [symbol, value] : bindings) {
    const auto known = graph.facts.symbols().find(symbol);
    bound.declare(symbol, known == graph.facts.symbols().end() ? SymbolRange{} : known->second);
  }
  WEFT_TRY(bound.check(bindings));
  return bindings;
}

Result<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs) {
  Bindings bindings = WEFT_TRY(bind_inputs(graph, interpreter::shapes_of(inputs)));
  WEFT_TRY(interpreter::check_dtypes(graph, inputs));
  return interpreter::run_nodes(graph, inputs, std::move(bindings), 0);
}

Result<std::vector<Tensor>> interpret_node(const Graph& graph, const Node& node, const std::vector<Tensor>& operands,
                                           Bindings& bindings) {
  return interpreter::eval_named(graph, node, operands, bindings, 0);
}

}  // namespace weft::graph
