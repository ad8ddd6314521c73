#include <fmt/format.h>

#include <algorithm>

#include "graph/interpret/elements.h"

namespace weft::graph::interpreter {
namespace {

Result<Tensor> reshape(Eval& e) {
  Sizes shape = WEFT_TRY(evaluate(e.attrs().dims(Attr::Shape), e.bindings));
  Sizes found = e.in[0].shape();
  std::int64_t count = 1;
  bool overflow = false;
  for (std::int64_t d : shape) overflow = __builtin_mul_overflow(count, d, &count) || overflow;
  const bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
  if ((overflow && !empty) || (empty ? 0 : count) != e.in[0].size()) {
    return e.error("shape-mismatch", "the number of elements changes").expected(shape_str(shape)).found(shape_str(found));
  }
  return e.in[0].reshaped(std::move(shape));
}

Result<Tensor> broadcast(Eval& e) {
  const Tensor& x = e.in[0];
  const Sizes shape = WEFT_TRY(evaluate(e.attrs().dims(Attr::Shape), e.bindings));
  const Sizes& axes = e.attrs().ints(Attr::Axes);
  const Sizes strides = row_major_strides(x.shape());
  Sizes steps(shape.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t size = x.shape()[i];
    if (size != 1 && size != shape[axes[i]]) {
      return e.error("shape-mismatch", "a size is neither 1 nor the result's")
          .expected(shape_str(shape))
          .found(shape_str(x.shape()));
    }
    steps[axes[i]] = size == 1 ? 0 : strides[i];
  }
  WEFT_TRY(Tensor::empty(x.dtype(), shape));  // too large a result is an error before the tables are made
  std::vector<AxisTable> tables;
  for (std::size_t a = 0; a < shape.size(); ++a) tables.push_back(linear_table(0, shape[a], steps[a]));
  return copy_by_tables(x, tables);
}

Result<Tensor> slice(Eval& e) {
  const Tensor& x = e.in[0];
  const Sizes starts = WEFT_TRY(e.dims(Attr::Starts)), sizes = WEFT_TRY(evaluate(e.attrs().dims(Attr::Sizes), e.bindings));
  const Sizes& steps = e.attrs().ints(Attr::Steps);
  const Sizes strides = row_major_strides(x.shape());
  std::vector<AxisTable> tables;
  for (int a = 0; a < x.rank(); ++a) {
    const auto last = static_cast<__int128>(starts[a]) + static_cast<__int128>(sizes[a] - 1) * steps[a];
    const std::int64_t extent = x.shape()[a];
    if (sizes[a] > 0 && (starts[a] < 0 || starts[a] >= extent || last < 0 || last >= extent)) {
      return e.error("slice-out-of-range", fmt::format("start {}, size {}, step {} leave axis {} of extent {}",
                                                       starts[a], sizes[a], steps[a], a, extent));
    }
    tables.push_back(linear_table(starts[a] * strides[a], sizes[a], steps[a] * strides[a]));
  }
  return copy_by_tables(x, tables);
}

Result<Tensor> reverse(Eval& e) {
  const Tensor& x = e.in[0];
  const Sizes& axes = e.attrs().ints(Attr::Axes);
  const Sizes strides = row_major_strides(x.shape());
  std::vector<AxisTable> tables;
  for (int a = 0; a < x.rank(); ++a) {
    tables.push_back(linear_table(0, x.shape()[a], strides[a]));
    if (std::count(axes.begin(), axes.end(), a)) std::reverse(tables[a].begin(), tables[a].end());
  }
  return copy_by_tables(x, tables);
}

// Where index i of a padded axis reads, i counted from the first operand element.
std::int64_t pad_source(const std::string& mode, std::int64_t i, std::int64_t extent) {
  if (i >= 0 && i < extent) return i;
  if (mode == "constant") return kFill;
  if (mode == "edge") return i < 0 ? 0 : extent - 1;
  if (mode == "wrap") return (i % extent + extent) % extent;
  return i < 0 ? -i : 2 * (extent - 1) - i;  // reflect, by less than the extent
}

// A reflection reads each element at most once on each side; an empty axis has nothing to repeat.
Result<void> check_pad_extent(const Eval& e, int axis, std::int64_t longest) {
  const std::string& mode = e.attrs().str(Attr::Mode);
  const std::int64_t extent = e.in[0].shape()[axis];
  if (mode == "constant" || longest <= 0) return {};
  if (extent == 0) return e.error("empty-axis", fmt::format("mode {} of axis {}, which has no elements", mode, axis));
  if (mode != "reflect" || longest < extent) return {};
  return e.error("bad-attribute", fmt::format("reflect padding is longer than axis {} can give", axis))
      .expected(fmt::format("<= {}", extent - 1))
      .found(fmt::to_string(longest));
}

Result<Tensor> pad(Eval& e) {
  const Tensor& x = e.in[0];
  const Sizes lo = WEFT_TRY(evaluate(e.attrs().dims(Attr::Lo), e.bindings)), hi = WEFT_TRY(evaluate(e.attrs().dims(Attr::Hi), e.bindings));
  const std::string& mode = e.attrs().str(Attr::Mode);
  const Sizes strides = row_major_strides(x.shape());
  Sizes shape = x.shape();
  for (int a = 0; a < x.rank(); ++a) {
    if (__builtin_add_overflow(shape[a], lo[a], &shape[a]) || __builtin_add_overflow(shape[a], hi[a], &shape[a])) {
      return e.error("tensor-too-large", "the padded size overflows");
    }
    WEFT_TRY(check_pad_extent(e, a, std::max(lo[a], hi[a])));
  }
  WEFT_TRY(Tensor::empty(x.dtype(), shape));
  std::vector<AxisTable> tables(shape.size());
  for (int a = 0; a < x.rank(); ++a) {
    for (std::int64_t i = 0; i < shape[a]; ++i) {
      const std::int64_t source = pad_source(mode, i - lo[a], x.shape()[a]);
      tables[a].push_back(source == kFill ? kFill : source * strides[a]);
    }
  }
  return copy_by_tables(x, tables, &e.in[1]);
}

}  // namespace

Result<Tensors> eval_movement(Eval& e) {
  switch (e.op()) {
    case Op::Reshape: return one(reshape(e));
    case Op::Transpose: return one(transposed(e.in[0], e.attrs().ints(Attr::Axes)));
    case Op::Broadcast: return one(broadcast(e));
    case Op::Slice: return one(slice(e));
    case Op::Pad: return one(pad(e));
    case Op::Concat: return one(concatenated(e.in, e.attrs().integer(Attr::Axis)));
    case Op::Reverse: return one(reverse(e));
    default: break;
  }
  return internal_error(std::string("a movement op without evaluation: ") + info(e.op()).name);
}

}  // namespace weft::graph::interpreter
