#include "graph/interpret/combine.h"
#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {

Result<Tensors> eval_scan(Eval& e) {
  const Tensor& x = e.in[0];
  const std::int64_t axis = e.attrs().integer(Attr::Axis);
  const bool exclusive = e.attrs().flag(Attr::Exclusive), reverse = e.attrs().flag(Attr::Reverse);
  const Meet how = meet_of(e.op());
  const Sizes& shape = x.shape();
  const std::int64_t extent = shape[axis];
  const std::int64_t outer = count_of(shape, 0, axis), inner = count_of(shape, axis + 1, shape.size());
  return with_wide(x.dtype(), [&](auto w) -> Result<Tensors> {
    using W = decltype(w);
    std::vector<W> values = widen<W>(x);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        W running = neutral<W>(how, x.dtype());
        for (std::int64_t j = 0; j < extent; ++j) {
          W& v = values[(o * extent + (reverse ? extent - 1 - j : j)) * inner + i];
          const W next = meet(how, running, v);
          v = exclusive ? running : next;
          running = next;
        }
      }
    }
    return one(narrow(x.dtype(), shape, values));
  });
}

}  // namespace weft::graph::interpreter
