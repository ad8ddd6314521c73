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

struct Combining {
  Op op;
  Combine combine;
};
constexpr Combining kReductions[] = {
    {Op::ReduceSum, Combine::Sum}, {Op::ReduceProd, Combine::Prod}, {Op::ReduceMax, Combine::Max},
    {Op::ReduceMin, Combine::Min}, {Op::ReduceAnd, Combine::And},   {Op::ReduceOr, Combine::Or},
};
constexpr Combining kScans[] = {{Op::ScanSum, Combine::Sum}, {Op::ScanProd, Combine::Prod},
                                {Op::ScanMax, Combine::Max}, {Op::ScanMin, Combine::Min}};
constexpr Combining kAtomics[] = {
    {Op::AtomicAdd, Combine::Sum}, {Op::AtomicMax, Combine::Max}, {Op::AtomicMin, Combine::Min}};

Op op_of(std::span<const Combining> rows, Combine combine) {
  for (const Combining& row : rows) {
    if (row.combine == combine) return row.op;
  }
  WEFT_CHECK(false, "no such way to combine");
}

std::optional<Combine> combine_of(std::span<const Combining> rows, Op op) {
  for (const Combining& row : rows) {
    if (row.op == op) return row.combine;
  }
  return std::nullopt;
}

}  // namespace

const ssa::OpTable& op_table() {
  static constexpr ssa::OpTable table = {"tile", kRows};
  return table;
}

std::optional<ScalarOp> as_scalar(Op op) {
  if (static_cast<int>(op) >= scalar_op_count()) return std::nullopt;
  return static_cast<ScalarOp>(op);
}

Op reduce_op(Combine combine) { return op_of(kReductions, combine); }
Op scan_op(Combine combine) { return op_of(kScans, combine); }
Op atomic_op(Combine combine) { return op_of(kAtomics, combine); }
std::optional<Combine> as_reduce(Op op) { return combine_of(kReductions, op); }
std::optional<Combine> as_scan(Op op) { return combine_of(kScans, op); }
std::optional<Combine> as_atomic(Op op) { return combine_of(kAtomics, op); }

bool atomic_on(DType dtype, Combine combine) {
  const bool word = dtype == DType::I32 || dtype == DType::U32 || dtype == DType::I64 || dtype == DType::U64;
  return word || (combine == Combine::Sum && (dtype == DType::F32 || dtype == DType::F64));
}

}  // namespace weft::tile
