#include "graph/interpret/eval.h"
#include "runtime/hostops/hostops.h"
#include "runtime/kernel_abi.h"

namespace weft::graph::interpreter {
namespace {

Result<Tensors> run(Eval& e) {
  switch (e.op()) {
    case Op::NonZero: return runtime::non_zero(e.in[0]);
    case Op::Unique: {
      std::optional<std::int64_t> axis;
      if (e.attrs().has(Attr::Axis)) axis = e.attrs().integer(Attr::Axis);
      return runtime::unique(e.in[0], e.attrs().flag(Attr::Sorted), axis);
    }
    case Op::NonMaxSuppression: return runtime::non_max_suppression(e.in, e.attrs().flag(Attr::Center));
    default: break;
  }
  return internal_error(std::string("a host op without evaluation: ") + info(e.op()).name);
}

// The size that the op found.
std::int64_t produced(const Eval& e, const Tensors& results) {
  if (e.op() == Op::NonZero) return results[0].shape()[1];
  if (e.op() == Op::Unique) return results[1].shape()[0];
  return results[0].shape()[0];
}

}  // namespace

Result<Tensors> eval_host(Eval& e) {
  if (e.op() == Op::Fail) {
    const std::string& why = e.attrs().str(Attr::Name);
    if (why == runtime::kNeedsExact) return user_error("needs-exact", runtime::kNeedsExact);
    return user_error("failed", why);
  }
  Tensors results = WEFT_TRY(run(e));
  WEFT_TRY(runtime::bind_symbol(e.attrs().dims(Attr::Symbol)[0], produced(e, results), e.bindings));
  return results;
}

}  // namespace weft::graph::interpreter
