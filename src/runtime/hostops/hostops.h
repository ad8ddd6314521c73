// Plain algorithms of the ops that run on the host at run time: data-dependent sizes, sorting, strings, sizes as
// values. The interpreter and the plan's host steps share them. Each gives the results of the prim of the same name in
// graph/ops.def, whose doc column states the semantics; parameters are checked, operands have the dtypes of that row.
#pragma once

#include <optional>
#include <vector>

#include "base/dim.h"
#include "base/tensor.h"

namespace weft::runtime {

using Tensors = std::vector<Tensor>;

Result<Tensors> non_zero(const Tensor& x);  // {i64[rank, n]}
// {unique elements, i64 first indices, i64 inverse, i64 counts}. NaNs are one value, the largest.
Result<Tensors> unique(const Tensor& x, bool sorted, std::optional<std::int64_t> axis);

struct NmsOptions {
  std::int64_t max_per_class = 0;
  double iou_threshold = 0;    // a box that overlaps a kept one by more goes
  double score_threshold = 0;  // only scores above it stay
  bool center = false;         // boxes are (x centre, y centre, width, height), not two corners (y, x, y, x)
};
Result<Tensors> non_max_suppression(const Tensor& boxes, const Tensor& scores, const NmsOptions& options);
// The same with the three numbers as tensors of one element.
Result<Tensors> non_max_suppression(const Tensors& operands, bool center);

Result<Tensors> sort(const Tensor& x, std::int64_t axis, bool descending);  // {values, i64 indices}
Result<Tensors> top_k(const Tensor& x, std::int64_t axis, std::int64_t k, bool descending);

Result<Tensor> shape_value(const Shape& dims, const Bindings& bindings);
// Binds the symbols to the values; expressions and symbols that are already bound must agree.
Result<void> bind(const Tensor& values, const Shape& symbols, Bindings& bindings);
Result<void> bind_symbol(const Dim& symbol, std::int64_t value, Bindings& bindings);
// Of a size with one unknown symbol that enters linearly: binds it, if a value >= 0 gives that size.
bool solve_symbol(const Dim& d, std::int64_t size, Bindings& bindings);
// Whether a result's sizes are as stated; bare symbols that have no value yet get theirs.
bool fit_shape(const Shape& stated, const std::vector<std::int64_t>& sizes, Bindings& bindings);

// Numbers as text: integers in decimal, floats as the shortest text that reads back as the same value, the way Python
// writes them (1.0, 1e-05, nan, inf), bool as True and False. And back: what is no number is a user error.
Result<Tensor> to_strings(const Tensor& x);
Result<Tensor> from_strings(const Tensor& x, DType dtype, bool saturate);

}  // namespace weft::runtime
