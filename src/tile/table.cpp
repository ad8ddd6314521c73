#include <iterator>

#include "tile/tile.h"

namespace weft::tile {
namespace {

constexpr int operand_count(const char* spec) {
  int count = 0;
  for (; *spec >= '0' && *spec <= '9'; ++spec) count = count * 10 + (*spec - '0');
  return count;
}
constexpr bool is_variadic(const char* spec) {
  while (*spec >= '0' && *spec <= '9') ++spec;
  return *spec == '+';
}

constexpr ssa::OpInfo kRows[] = {
#define OP(id, name, operands, results, regions, imm, pure, doc) \
  {name, operand_count(operands), is_variadic(operands), results, regions, ssa::Imm::imm, pure},
#include "tile/ops.def"
#undef OP
};

struct Reduction {
  Op op;
  Combine combine;
};
constexpr Reduction kReductions[] = {
    {Op::ReduceSum, Combine::Sum}, {Op::ReduceProd, Combine::Prod}, {Op::ReduceMax, Combine::Max},
    {Op::ReduceMin, Combine::Min}, {Op::ReduceAnd, Combine::And},   {Op::ReduceOr, Combine::Or},
};

}  // namespace

const ssa::OpTable& op_table() {
  static constexpr ssa::OpTable table = {"tile", kRows};
  return table;
}

std::optional<ScalarOp> as_scalar(Op op) {
  if (static_cast<int>(op) >= scalar_op_count()) return std::nullopt;
  return static_cast<ScalarOp>(op);
}

Op reduce_op(Combine combine) {
  for (const Reduction& r : kReductions) {
    if (r.combine == combine) return r.op;
  }
  WEFT_CHECK(false, "no reduction of this kind");
}

std::optional<Combine> as_reduce(Op op) {
  for (const Reduction& r : kReductions) {
    if (r.op == op) return r.combine;
  }
  return std::nullopt;
}

}  // namespace weft::tile
