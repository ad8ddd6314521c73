#include <fmt/format.h>

#include "graph/interpret/elements.h"
#include "runtime/custom.h"

namespace weft::graph::interpreter {
namespace {

Result<Tensors> run(const Eval& e, std::size_t region, Tensors inputs) {
  return run_region(*e.node.regions[region], std::move(inputs), e.bindings, e.depth + 1);
}

Result<bool> truth(const Eval& e, const Tensor& t) {
  if (t.size() != 1) return e.error("shape-mismatch", "a condition is one value").found(shape_str(t.shape()));
  return t.i64(0) != 0;
}

// Slices, one per iteration, stacked on a new axis 0; without iterations the region's type gives the shape, where a
// size that nothing binds is 0.
Result<Tensor> stacked(const Eval& e, const Tensors& slices, const Type& type) {
  if (slices.empty()) {
    Sizes shape{0};
    for (const Dim& d : type.shape) {
      const auto size = d.evaluate(e.bindings);
      shape.push_back(size.ok() && *size > 0 ? *size : 0);
    }
    return result_tensor(type.dtype, shape);
  }
  Tensors rows;
  for (const Tensor& s : slices) {
    if (s.shape() != slices[0].shape()) {
      return e.error("shape-mismatch", "the shapes of a stacked output differ between iterations")
          .expected(shape_str(slices[0].shape()))
          .found(shape_str(s.shape()));
    }
    Sizes shape{1};
    shape.insert(shape.end(), s.shape().begin(), s.shape().end());
    rows.push_back(s.reshaped(std::move(shape)));
  }
  return concatenated(rows, 0);
}

// Moves the results [from, end) of an iteration to the stacks.
void collect(const Tensors& results, std::size_t from, std::vector<Tensors>& stacks) {
  for (std::size_t i = from; i < results.size(); ++i) stacks[i - from].push_back(results[i]);
}

Result<Tensors> finish(const Eval& e, Tensors carried, const std::vector<Tensors>& stacks) {
  const Graph& body = *e.node.regions[0];
  const std::size_t first = body.outputs().size() - stacks.size();
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    carried.push_back(WEFT_TRY(stacked(e, stacks[i], body.type(body.outputs()[first + i]))));
  }
  return carried;
}

Result<Tensors> eval_if(Eval& e) {
  const bool holds = WEFT_TRY(truth(e, e.in[0]));
  return run(e, holds ? 0 : 1, Tensors(e.in.begin() + 1, e.in.end()));
}

Result<Tensors> eval_loop(Eval& e) {
  const auto count = static_cast<std::size_t>(e.attrs().integer(Attr::Carried));
  if (e.in[0].size() != 1) return e.error("shape-mismatch", "the trip count is one value");
  const std::int64_t trips = e.in[0].i64(0);
  bool go = WEFT_TRY(truth(e, e.in[1]));
  Tensors carried(e.in.begin() + 2, e.in.begin() + 2 + static_cast<std::ptrdiff_t>(count));
  std::vector<Tensors> stacks(e.node.regions[0]->outputs().size() - 1 - count);
  for (std::int64_t i = 0; i < trips && go; ++i) {
    Tensors inputs{Tensor::scalar_i64(DType::I64, i), Tensor::scalar_i64(DType::Bool, 1)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), e.in.begin() + 2 + static_cast<std::ptrdiff_t>(count), e.in.end());
    carried.clear();
    Tensors results = WEFT_TRY(run(e, 0, std::move(inputs)));
    go = WEFT_TRY(truth(e, results[0]));
    carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(count));
    collect(results, 1 + count, stacks);
  }
  return finish(e, std::move(carried), stacks);
}

Result<Tensor> row_of(const Tensor& x, std::int64_t i) {
  const Sizes strides = row_major_strides(x.shape());
  std::vector<AxisTable> tables{linear_table(i * strides[0], 1, 0)};
  for (int a = 1; a < x.rank(); ++a) tables.push_back(linear_table(0, x.shape()[a], strides[a]));
  const Tensor row = WEFT_TRY(copy_by_tables(x, tables));
  return row.reshaped(Sizes(x.shape().begin() + 1, x.shape().end()));
}

Result<Tensors> eval_scan_region(Eval& e) {
  const std::int64_t count = e.attrs().integer(Attr::Carried), xs = e.attrs().integer(Attr::Xs);
  Tensors carried(e.in.begin(), e.in.begin() + count);
  std::vector<Tensors> stacks(e.node.regions[0]->outputs().size() - static_cast<std::size_t>(count));
  const std::int64_t length = xs > 0 ? e.in[count].shape()[0] : 0;
  for (std::int64_t x = 0; x < xs; ++x) {
    if (e.in[count + x].shape()[0] == length) continue;
    return e.error("shape-mismatch", "the sliced operands differ in length")
        .expected(fmt::to_string(length))
        .found(fmt::to_string(e.in[count + x].shape()[0]));
  }
  for (std::int64_t i = 0; i < length; ++i) {
    Tensors inputs = std::move(carried);
    for (std::int64_t x = 0; x < xs; ++x) inputs.push_back(WEFT_TRY(row_of(e.in[count + x], i)));
    inputs.insert(inputs.end(), e.in.begin() + count + xs, e.in.end());
    Tensors results = WEFT_TRY(run(e, 0, std::move(inputs)));
    carried.assign(results.begin(), results.begin() + count);
    collect(results, static_cast<std::size_t>(count), stacks);
  }
  return finish(e, std::move(carried), stacks);
}

Result<Tensors> eval_custom_call(Eval& e) {
  std::vector<runtime::CustomOp::Type> types;
  for (const Type& type : WEFT_TRY(parse_types(e.attrs().str(Attr::Types)))) types.push_back({type.dtype, type.shape});
  return runtime::call_custom_op(e.attrs().str(Attr::Name), types, e.in, e.bindings);
}

}  // namespace

Result<Tensors> eval_control(Eval& e) {
  switch (e.op()) {
    case Op::If: return eval_if(e);
    case Op::Loop: return eval_loop(e);
    case Op::Scan: return eval_scan_region(e);
    case Op::Composite: return run(e, 0, e.in);
    case Op::CustomCall:
      return eval_custom_call(e);
    default: break;
  }
  return internal_error(std::string("a control op without evaluation: ") + info(e.op()).name);
}

}  // namespace weft::graph::interpreter
