#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

// "2+" -> at least 2, variadic.
constexpr int arity(const char* s) { return s[0] - '0'; }
constexpr bool variadic(const char* s) { return s[1] == '+'; }

constexpr ssa::OpInfo kOps[] = {
#define OP(id, name, operands, results, regions, imm, pure, doc) \
  {name, arity(operands), variadic(operands), results, regions, ssa::Imm::imm, pure},
#include "kernel/ops.def"
#undef OP
};
constexpr ssa::OpTable kTable = {"kernel", kOps};

}  // namespace

const ssa::OpTable& op_table() { return kTable; }

std::optional<ScalarOp> as_scalar(Op op) {
  if (static_cast<int>(op) >= scalar_op_count()) return std::nullopt;
  return static_cast<ScalarOp>(op);
}

std::optional<Combine> as_atomic(Op op) {
  switch (op) {
    case Op::AtomicAdd: return Combine::Sum;
    case Op::AtomicMax: return Combine::Max;
    case Op::AtomicMin: return Combine::Min;
    default: return std::nullopt;
  }
}

}  // namespace weft::kernel
