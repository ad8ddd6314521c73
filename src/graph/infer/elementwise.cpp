// Unary, binary, select and cast: everything but select's and the casts' dtype conditions stands in
// the op table.
#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Result<void> check_cast(const InferInput& in, DType from, DType to) {
  if (in.op == Op::Bitcast) {
    if (is_string(to) || is_complex(to) || bits(from) != bits(to)) {
      return infer_error(in, "dtype-mismatch", "the dtypes must have equal widths")
          .expected(std::to_string(bits(from)) + " bits")
          .found(name(to));
    }
  } else if (is_complex(from) != is_complex(to) && (is_complex(from) || is_string(from))) {
    return infer_error(
        in, "dtype-mismatch",
        std::string("there is no conversion from ") + name(from) + " to " + name(to));
  } else if (is_complex(from) && is_string(to)) {
    return infer_error(
        in, "dtype-mismatch",
        std::string("there is no conversion from ") + name(from) + " to " + name(to));
  }
  return {};
}

}  // namespace

Result<Types> infer_elementwise(const InferInput& in) {
  Type result = in.operands[0];
  switch (info(in.op).dtype_rule) {
    case DTypeRule::Same:
      break;
    case DTypeRule::Bool:
      result.dtype = DType::Bool;
      break;
    case DTypeRule::Attr:
      result.dtype = in.attrs.dtype(Attr::DType);
      WEFT_TRY(check_cast(in, in.operands[0].dtype, result.dtype));
      break;
    case DTypeRule::Own:  // select
      result.dtype = in.operands[1].dtype;
      WEFT_TRY(expect_dtype(in, 2, result.dtype));
      break;
  }
  return Types{result};
}

}  // namespace weft::graph
