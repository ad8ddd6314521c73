// Reductions, cumulative scans and sorts.
#include <algorithm>

#include "graph/infer/infer.h"

namespace weft::graph {

Result<Types> infer_reduce(const InferInput& in) {
  const Type& x = in.operands[0];
  const bool arg = info(in.op).dtype_rule == DTypeRule::Own;
  std::vector<std::int64_t> axes;
  if (arg) {
    axes = {WEFT_TRY(axis_attr(in, x.rank()))};
    if (in.facts.known_equal(x.shape[axes[0]], 0))
      return infer_error(in, "empty-axis", "the axis is empty");
  } else {
    axes = in.attrs.ints(Attr::Axes);
    WEFT_TRY(expect_increasing(in, axes, x.rank()));
  }
  Type result{arg ? DType::I64 : x.dtype, {}};
  for (int i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) result.shape.push_back(x.shape[i]);
  }
  return Types{result};
}

Result<Types> infer_scan(const InferInput& in) {
  WEFT_TRY(axis_attr(in, in.operands[0].rank()));
  return Types{in.operands[0]};
}

Result<Types> infer_sort(const InferInput& in) {
  Type values = in.operands[0];
  const std::int64_t axis = WEFT_TRY(axis_attr(in, values.rank()));
  if (in.op == Op::TopK) {
    const Shape& k = in.attrs.dims(Attr::K);
    WEFT_TRY(expect_count(in, Attr::K, k.size(), 1));
    if (in.facts.known_less(values.shape[axis], k[0])) {
      return shape_error(in, "k is larger than the axis", "at most " + values.shape[axis].str(),
                         k[0].str());
    }
    values.shape[axis] = k[0];
  }
  return Types{values, {DType::I64, values.shape}};
}

}  // namespace weft::graph
