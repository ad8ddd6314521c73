#include "graph/infer/gather_nd.h"
#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

Result<void> check_combine(const InferInput& in) {
  const std::string& combine = in.attrs.str(Attr::Combine);
  const DType dtype = in.operands[0].dtype;
  const bool number = is_int(dtype) || is_float(dtype);
  const bool known = combine == "none" || combine == "add" || combine == "mul" ||
                     combine == "max" || combine == "min";
  if (!known) {
    return infer_error(in, "bad-attribute", "unknown combine")
        .expected("none, add, mul, max or min")
        .found(combine);
  }
  const bool ordered = combine == "max" || combine == "min";
  if (combine != "none" && !number && !(ordered ? is_bool(dtype) : is_complex(dtype))) {
    return infer_error(in, "dtype-mismatch", "combine " + combine + " of such a dtype")
        .found(name(dtype));
  }
  return {};
}

}  // namespace

Result<Types> infer_scatter(const InferInput& in) {
  WEFT_TRY(expect_int(in, 1));
  WEFT_TRY(expect_dtype(in, 2, in.operands[0].dtype));
  WEFT_TRY(check_combine(in));
  Shape updates;
  if (in.op == Op::ScatterElements) {
    WEFT_TRY(check_elements_index(in));
    updates = in.operands[1].shape;
  } else {
    updates = WEFT_TRY(nd_slice_shape(in, 0));
  }
  if (!known_equal(in.facts, updates, in.operands[2].shape)) {
    return shape_error(in, "the updates have another shape than the index calls for", str(updates),
                       str(in.operands[2].shape));
  }
  return Types{in.operands[0]};
}

}  // namespace weft::graph
