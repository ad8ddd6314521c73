#include "graph/infer/infer.h"

namespace weft::graph {

Result<Types> infer_window(const InferInput& in) {
  const Type& x = in.operands[0];
  for (Attr attr : {Attr::Window, Attr::Strides, Attr::Dilations}) {
    WEFT_TRY(expect_count(in, attr, in.attrs.ints(attr).size(), x.shape.size()));
    WEFT_TRY(expect_positive(in, attr));
  }
  for (Attr attr : {Attr::Lo, Attr::Hi}) {
    WEFT_TRY(expect_count(in, attr, in.attrs.dims(attr).size(), x.shape.size()));
    for (const Dim& d : in.attrs.dims(attr)) {
      if (known_negative(in.facts, d))
        return infer_error(in, "bad-attribute", "padding is negative").found(d.str());
    }
  }
  Type result{info(in.op).dtype_rule == DTypeRule::Own ? DType::I64 : x.dtype, {}};
  for (int i = 0; i < x.rank(); ++i) {
    result.shape.push_back(window_output(in.facts, x.shape[i], in.attrs.dims(Attr::Lo)[i],
                                         in.attrs.dims(Attr::Hi)[i], in.attrs.ints(Attr::Window)[i],
                                         in.attrs.ints(Attr::Dilations)[i],
                                         in.attrs.ints(Attr::Strides)[i]));
  }
  return Types{result};
}

}  // namespace weft::graph
