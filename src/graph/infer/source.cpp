#include <fmt/format.h>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Type constant_type(const Tensor& data) {
  return {data.dtype(), Shape(data.shape().begin(), data.shape().end())};
}

Result<Types> infer_iota(const InferInput& in) {
  const Type result{in.attrs.dtype(Attr::DType), in.attrs.dims(Attr::Shape)};
  if (!is_int(result.dtype) && !is_float(result.dtype)) {
    return infer_error(in, "dtype-mismatch", "the result has a dtype that cannot count")
        .expected("an integer or float dtype")
        .found(name(result.dtype));
  }
  WEFT_TRY(axis_attr(in, result.rank()));
  return Types{result};
}

Result<Types> infer_bind(const InferInput& in) {
  const Type& x = in.operands[0];
  const Shape& symbols = in.attrs.dims(Attr::Shape);
  for (const Dim& d : symbols) WEFT_TRY(bare_symbol(in, d));
  if (x.rank() > 1)
    return infer_error(in, "rank-mismatch", "operand 0 must have rank 0 or 1").found(str(x));
  WEFT_TRY(expect_equal(in, "operand 0 must hold one element for each symbol",
                        static_cast<std::int64_t>(symbols.size()), product(x.shape)));
  return Types{};
}

Result<Types> infer_random_bits(const InferInput& in) {
  WEFT_TRY(expect_dtype(in, 0, DType::U64));
  WEFT_TRY(expect_rank(in, 0, 1));
  WEFT_TRY(expect_equal(in, "the key must hold two words", 2, in.operands[0].shape[0]));
  const DType dtype = in.attrs.dtype(Attr::DType);
  if (dtype != DType::U32 && dtype != DType::U64) {
    return infer_error(in, "dtype-mismatch", "random bits come as u32 or u64").found(name(dtype));
  }
  return Types{{dtype, in.attrs.dims(Attr::Shape)}};
}

}  // namespace

Result<Types> infer_source(const InferInput& in) {
  switch (in.op) {
    case Op::Constant:
      return Types{constant_type(in.attrs.data(Attr::Data))};
    case Op::Iota:
      return infer_iota(in);
    case Op::ShapeValue:
      return Types{{DType::I64, {static_cast<std::int64_t>(in.attrs.dims(Attr::Shape).size())}}};
    case Op::Bind:
      return infer_bind(in);
    case Op::RandomBits:
      return infer_random_bits(in);
    default:
      return internal_error("a source op without inference");
  }
}

}  // namespace weft::graph
