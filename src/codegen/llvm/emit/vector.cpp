// Lanes: splat, iota, interleaving, reductions.
#include <algorithm>
#include <vector>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/emit/lanes.h"

namespace weft::codegen {

using kernel::Op;
using llvm::Value;

Value* lane_of(llvm::IRBuilderBase& b, Value* vector, std::uint64_t lane) {
  while (auto* put = llvm::dyn_cast<llvm::InsertElementInst>(vector)) {
    const auto* at = llvm::dyn_cast<llvm::ConstantInt>(put->getOperand(2));
    if (at == nullptr) break;
    if (at->getZExtValue() == lane) return put->getOperand(1);
    vector = put->getOperand(0);
  }
  const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector);
  if (shuffle != nullptr && shuffle->isZeroEltSplat()) return lane_of(b, shuffle->getOperand(0), 0);
  return b.CreateExtractElement(vector, lane);
}

Value* Emitter::splat(Value* x, int lanes) {
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes), x);
}

Value* Emitter::iota(const ssa::Type& t) {
  if (t.rank == 0) return number(t.dtype, 0, t);
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < t.lanes(); ++i) lanes.push_back(number(t.dtype, i, ssa::Type::scalar(t.dtype)));
  return llvm::ConstantVector::get(lanes);
}

Value* Emitter::interleave(Value* a, Value* b, int lanes, int half) {
  std::vector<int> from;
  for (int i = 0; i < lanes; ++i) from.push_back((i % 2) * lanes + half * lanes / 2 + i / 2);
  return b_.CreateShuffleVector(a, b, from);
}

Value* Emitter::reduce_bools(bool all, Value* x) {
  if (!isa_.spirv) return all ? b_.CreateAndReduce(x) : b_.CreateOrReduce(x);
  Value* result = b_.CreateExtractElement(x, std::uint64_t{0});  // LLVM would make a word of them, which SPIR-V has not
  for (unsigned k = 1; k < llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements(); ++k) {
    Value* lane = b_.CreateExtractElement(x, std::uint64_t{k});
    result = all ? b_.CreateAnd(result, lane) : b_.CreateOr(result, lane);
  }
  return result;
}

// The upper half onto the lower, which keeps the middle lane of an odd count: the interpreter's order.
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
  if (is_bool(t.dtype)) return reduce_bools(combine == ScalarOp::And, x);
  const bool narrow_float = is_float(t.dtype) && bits(t.dtype) == 16;
  const DType wide = narrow_float ? DType::F32 : t.dtype;
  x = widen(x, t.dtype);
  for (int n = t.lanes(); n > 1; n = (n + 1) / 2) {
    const int half = (n + 1) / 2;
    std::vector<int> low(half), high(half), keep(half);
    for (int i = 0; i < half; ++i) {
      low[i] = i;
      high[i] = std::min(half + i, n - 1);
      keep[i] = half + i < n ? i : half + i;  // from the result, or from the lower half
    }
    const auto shape = ssa::Type::vector(wide, half);
    Value* lower = b_.CreateShuffleVector(x, low);
    x = scalar(combine, shape, shape, {lower, b_.CreateShuffleVector(x, high)});
    if (!x) return nullptr;
    if (n % 2 != 0) x = b_.CreateShuffleVector(x, lower, keep);
  }
  x = b_.CreateExtractElement(x, std::uint64_t{0});
  return narrow(x, t.dtype);
}

}  // namespace weft::codegen
