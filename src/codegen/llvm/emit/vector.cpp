// Lanes: splat, iota, reductions.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using kernel::Op;
using llvm::Value;

Value* Emitter::splat(Value* x, int lanes) {
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes), x);
}

Value* Emitter::iota(const ssa::Type& t) {
  if (t.rank == 0) return number(t.dtype, 0, t);
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < t.lanes(); ++i) lanes.push_back(number(t.dtype, i, ssa::Type::scalar(t.dtype)));
  return llvm::ConstantVector::get(lanes);
}

// Halves onto halves; an odd last lane is kept for the end.
Value* Emitter::reduce(Op op, const ssa::Type& t, Value* x) {
  const ScalarOp combine = [&] {
    switch (op) {
      case Op::ReduceSum: return is_bool(t.dtype) ? ScalarOp::Or : ScalarOp::Add;
      case Op::ReduceProd: return is_bool(t.dtype) ? ScalarOp::And : ScalarOp::Mul;
      case Op::ReduceMax: return is_bool(t.dtype) ? ScalarOp::Or : ScalarOp::Max;
      case Op::ReduceMin: return is_bool(t.dtype) ? ScalarOp::And : ScalarOp::Min;
      case Op::ReduceAnd: return ScalarOp::And;
      default: return ScalarOp::Or;
    }
  }();
  if (t.rank == 0) return x;
  if (is_bool(t.dtype)) return combine == ScalarOp::And ? b_.CreateAndReduce(x) : b_.CreateOrReduce(x);
  const bool narrow_float = is_float(t.dtype) && bits(t.dtype) == 16;
  const DType wide = narrow_float ? DType::F32 : t.dtype;
  x = widen(x, t.dtype);
  std::vector<Value*> odd;
  int n = t.lanes();
  while (n > 1) {
    if (n % 2 != 0) odd.push_back(b_.CreateExtractElement(x, n - 1));
    n /= 2;
    std::vector<int> low(n), high(n);
    for (int i = 0; i < n; ++i) low[i] = i, high[i] = n + i;
    const auto half = ssa::Type::vector(wide, n);
    x = scalar(combine, half, half, {b_.CreateShuffleVector(x, low), b_.CreateShuffleVector(x, high)});
    if (!x) return nullptr;
  }
  const auto one = ssa::Type::scalar(wide);
  x = b_.CreateExtractElement(x, std::uint64_t{0});
  for (Value* lane : odd) x = scalar(combine, one, one, {x, lane});
  return narrow(x, t.dtype);
}

}  // namespace weft::codegen
