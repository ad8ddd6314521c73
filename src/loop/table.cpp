// Names of the ops and the bridge to the scalar table they start with.
#include <array>

#include "loop/group.h"

namespace weft::loop {
namespace {

constexpr const char* kNames[] = {
#define OP(id, name, operands, doc) name,
#include "loop/ops.def"
#undef OP
};
constexpr int kCount = static_cast<int>(std::size(kNames));

}  // namespace

const char* name(Op op) { return kNames[static_cast<int>(op)]; }

std::optional<Op> parse_op(std::string_view name) {
  for (int i = 0; i < kCount; ++i) {
    if (name == kNames[i]) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::optional<ScalarOp> as_scalar(Op op) {
  if (static_cast<int>(op) >= scalar_op_count()) return std::nullopt;
  return static_cast<ScalarOp>(op);
}

}  // namespace weft::loop
