#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Result<Dim> symbol_attr(const InferInput& in) {
  const Shape& symbol = in.attrs.dims(Attr::Symbol);
  WEFT_TRY(expect_count(in, Attr::Symbol, symbol.size(), 1));
  return Dim::symbol(WEFT_TRY(bare_symbol(in, symbol[0])));
}

Result<Types> infer_unique(const InferInput& in, const Dim& count) {
  const Type& x = in.operands[0];
  Type values{x.dtype, {count}};
  Dim inverse = product(x.shape);
  if (in.attrs.has(Attr::Axis)) {
    const std::int64_t axis = WEFT_TRY(axis_attr(in, x.rank()));
    values.shape = x.shape;
    values.shape[axis] = count;
    inverse = x.shape[axis];
  }
  return Types{values, {DType::I64, {count}}, {DType::I64, {inverse}}, {DType::I64, {count}}};
}

Result<Types> infer_nms(const InferInput& in, const Dim& count) {
  const Type& boxes = in.operands[0];
  const Type& scores = in.operands[1];
  WEFT_TRY(expect_rank(in, 0, 3));
  WEFT_TRY(expect_rank(in, 1, 3));
  WEFT_TRY(expect_dtype(in, 1, boxes.dtype));
  WEFT_TRY(expect_equal(in, "a box must have four coordinates", 4, boxes.shape[2]));
  WEFT_TRY(expect_equal(in, "boxes and scores differ in batch", boxes.shape[0], scores.shape[0]));
  WEFT_TRY(expect_equal(in, "boxes and scores differ in number", boxes.shape[1], scores.shape[2]));
  WEFT_TRY(expect_scalar(in, 2, DType::I64));
  WEFT_TRY(expect_scalar(in, 3, DType::F32));
  WEFT_TRY(expect_scalar(in, 4, DType::F32));
  return Types{{DType::I64, {count, 3}}};
}

}  // namespace

Result<Types> infer_host(const InferInput& in) {
  if (in.op == Op::Fail) return Types{};
  const Dim count = WEFT_TRY(symbol_attr(in));
  switch (in.op) {
    case Op::NonZero:
      return Types{{DType::I64, {static_cast<std::int64_t>(in.operands[0].rank()), count}}};
    case Op::Unique:
      return infer_unique(in, count);
    case Op::NonMaxSuppression:
      return infer_nms(in, count);
    default:
      return internal_error("a host op without inference");
  }
}

}  // namespace weft::graph
