#include "graph/interpret/eval.h"
#include "runtime/hostops/hostops.h"

namespace weft::graph::interpreter {

Result<Tensors> eval_sort(Eval& e) {
  const std::int64_t axis = e.attrs().integer(Attr::Axis);
  const bool descending = e.attrs().flag(Attr::Descending);
  if (e.op() == Op::Sort) return runtime::sort(e.in[0], axis, descending);
  return runtime::top_k(e.in[0], axis, WEFT_TRY(e.dims(Attr::K))[0], descending);
}

}  // namespace weft::graph::interpreter
