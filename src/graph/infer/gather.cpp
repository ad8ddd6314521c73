#include <fmt/format.h>

#include "graph/infer/gather_nd.h"
#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Result<Types> infer_gather_axis(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& index = in.operands[1].shape;
  const std::int64_t axis = WEFT_TRY(axis_attr(in, x.rank()));
  Type result{x.dtype, Shape(x.shape.begin(), x.shape.begin() + axis)};
  result.shape.insert(result.shape.end(), index.begin(), index.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return Types{result};
}

}  // namespace

Result<void> check_elements_index(const InferInput& in) {
  const Type& x = in.operands[0];
  const Type& index = in.operands[1];
  const std::int64_t axis = WEFT_TRY(axis_attr(in, x.rank()));
  WEFT_TRY(expect_rank(in, 1, x.rank()));
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis && in.facts.known_less(x.shape[i], index.shape[i])) {
      return shape_error(in, fmt::format("axis {} of the index is longer than operand 0's", i),
                         "at most " + x.shape[i].str(), index.shape[i].str());
    }
  }
  return {};
}

Result<Shape> nd_slice_shape(const InferInput& in, std::int64_t batch) {
  const Type& x = in.operands[0];
  const Type& index = in.operands[1];
  if (batch < 0 || batch >= index.rank() || batch >= x.rank()) {
    return infer_error(in, "bad-attribute", "batch must be less than both ranks")
        .found(std::to_string(batch));
  }
  const Dim& last = index.shape.back();
  if (!last.is_const() || last.value() < 1 || last.value() > x.rank() - batch) {
    return infer_error(in, "shape-mismatch",
                       "the index's last axis must be a known number of coordinates")
        .expected(fmt::format("1 to {}", x.rank() - batch))
        .found(last.str());
  }
  for (std::int64_t i = 0; i < batch; ++i) {
    WEFT_TRY(expect_equal(in, fmt::format("batch axis {} of the index must be operand 0's", i),
                          x.shape[i], index.shape[i]));
  }
  Shape shape(index.shape.begin(), index.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + batch + last.value(), x.shape.end());
  return shape;
}

Result<Types> infer_gather(const InferInput& in) {
  const DType dtype = in.operands[0].dtype;
  WEFT_TRY(expect_int(in, 1));
  switch (in.op) {
    case Op::Gather:
      return infer_gather_axis(in);
    case Op::GatherElements:
      WEFT_TRY(check_elements_index(in));
      return Types{{dtype, in.operands[1].shape}};
    case Op::GatherNd:
      return Types{{dtype, WEFT_TRY(nd_slice_shape(in, in.attrs.integer(Attr::Batch)))}};
    default:
      return internal_error("a gather op without inference");
  }
}

}  // namespace weft::graph
