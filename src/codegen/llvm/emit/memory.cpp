// Memory operands (buffer, element index) as pointers.
//
// An index is a sum. Terms that vary in the innermost loop, terms fixed outside of it, and the constant become separate
// steps from the buffer's pointer, so that accesses share the varying part and the rest fits x86's addressing modes:
// [varying + fixed * size + constant].
#include <algorithm>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using kernel::Op;
using llvm::Value;
using ssa::ValueId;

struct Emitter::Index {
  std::vector<ValueId> varying, fixed;
  std::int64_t constant = 0;
};

namespace {

llvm::Align align_of(DType t) { return llvm::Align(std::max(1, bits(t) / 8)); }

// Vectors of a function with several threads are aligned, as far as one access reaches.
llvm::Align align_of(const kernel::Function& f, DType t, int lanes) {
  constexpr int most = 16;
  return f.threads == 1 ? align_of(t) : llvm::Align(std::min(most, lanes * std::max(1, bits(t) / 8)));
}

bool all_true(Value* mask) {
  auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  return !mask || (constant && constant->isAllOnesValue());
}

bool all_false(Value* mask) {
  auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  return constant && constant->isNullValue();
}

}  // namespace

void Emitter::split_index(ValueId index, int levels, Index& into) const {
  const Local& local = values_[index];
  if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(local.value)) {
    into.constant += number->getSExtValue();
  } else if (local.inst && levels > 0 && local.inst->op == static_cast<std::uint16_t>(Op::Add)) {
    for (ValueId operand : local.inst->operands) split_index(operand, levels - 1, into);
  } else {
    (local.depth < static_cast<int>(preheaders_.size()) ? into.fixed : into.varying).push_back(index);
  }
}

Value* Emitter::sum(const std::vector<ValueId>& terms) {
  Value* result = nullptr;
  for (ValueId term : terms) {
    Value* value = values_[term].value;
    result = result ? b_.CreateAdd(result, value) : value;
  }
  return result;
}

Value* Emitter::address(int buffer, ValueId index) {
  constexpr int max_terms_depth = 8;
  Index parts;
  split_index(index, max_terms_depth, parts);
  std::sort(parts.varying.begin(), parts.varying.end());
  std::sort(parts.fixed.begin(), parts.fixed.end());
  llvm::Type* element = memory_element(f_.buffers[buffer].dtype);
  Value* pointer = buffers_[buffer];
  if (!parts.varying.empty()) {
    Value*& base = bases_[{buffer, parts.varying}];
    if (!base) base = b_.CreateGEP(element, pointer, sum(parts.varying));
    pointer = base;
  }
  if (!parts.fixed.empty()) {
    if (near_block_ != b_.GetInsertBlock()) near_.clear(), near_block_ = b_.GetInsertBlock();
    Value*& offset = sums_[parts.fixed];
    if (!offset) {
      llvm::IRBuilderBase::InsertPointGuard guard(b_);
      b_.SetInsertPoint(preheaders_.back()->getTerminator());
      offset = sum(parts.fixed);
    }
    Value*& near = near_[{pointer, offset}];
    if (!near) near = b_.CreateGEP(element, pointer, offset);
    pointer = near;
  }
  return parts.constant == 0 ? pointer : b_.CreateGEP(element, pointer, b_.getInt64(parts.constant));
}

Value* Emitter::addresses(int buffer, ValueId index) {
  return b_.CreateGEP(memory_element(f_.buffers[buffer].dtype), buffers_[buffer], values_[index].value);
}

Value* Emitter::lane_address(int buffer, ValueId index, int lane) {
  return b_.CreateGEP(memory_element(f_.buffers[buffer].dtype), buffers_[buffer], b_.CreateExtractElement(values_[index].value, lane));
}

// Lane by lane, for languages whose accesses have no masks.
Value* Emitter::load_lanes(DType t, int lanes, Value* mask, const std::function<Value*(int)>& address) {
  llvm::Type* element = memory_element(t);
  Value* all = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, lanes));
  for (int k = 0; k < lanes; ++k) {
    const auto load = [&] { return b_.CreateAlignedLoad(element, address(k), align_of(t)); };
    Value* allowed = b_.CreateExtractElement(mask, k);
    all = b_.CreateInsertElement(all, all_true(allowed) ? load() : only_if(allowed, element, load), k);
  }
  return all;
}

void Emitter::store_lanes(DType t, Value* x, Value* mask, const std::function<Value*(int)>& address) {
  const int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  for (int k = 0; k < lanes; ++k) {
    const auto store = [&] { return b_.CreateAlignedStore(b_.CreateExtractElement(x, k), address(k), align_of(t)); };
    Value* allowed = b_.CreateExtractElement(mask, k);
    all_true(allowed) ? void(store()) : void(only_if(allowed, nullptr, store));
  }
}

Value* Emitter::to_memory(Value* x, DType t) {
  return is_bool(t) ? b_.CreateZExt(x, x->getType()->getWithNewType(b_.getInt8Ty())) : x;
}

Value* Emitter::from_memory(Value* x, DType t) {
  return is_bool(t) ? b_.CreateICmpNE(x, llvm::ConstantInt::get(x->getType(), 0)) : x;
}

Value* Emitter::slot_unless(Value* mask, Value* pointer, Value* slot) {
  return all_true(mask) ? pointer : b_.CreateSelect(mask, pointer, slot);
}

Value* Emitter::load(const ssa::Inst& inst) {
  const int buffer = static_cast<int>(inst.imm);
  const DType t = f_.buffers[buffer].dtype;
  const ssa::Type& result = f_.type(inst.results[0]);
  Value* pointer = address(buffer, inst.operands[0]);
  Value* mask = inst.operands.size() > 1 ? values_[inst.operands[1]].value : nullptr;
  llvm::Type* ty = memory_element(t);
  if (result.rank == 0) {
    const auto scalar = [&] { return b_.CreateAlignedLoad(ty, pointer, align_of(t)); };
    if (isa_.groups) return from_memory(all_true(mask) ? scalar() : only_if(mask, ty, scalar), t);
    pointer = slot_unless(mask, pointer, zero_slot_);
    return from_memory(b_.CreateAlignedLoad(ty, pointer, align_of(t)), t);
  }
  ty = llvm::FixedVectorType::get(ty, result.lanes());
  // One condition for a few bytes: those of the slot where it does not hold.
  if (mask && !isa_.groups && result.lanes() * bits(t) <= 64) {
    const ssa::Inst* splat = values_[inst.operands[1]].inst;
    if (splat && splat->op == static_cast<std::uint16_t>(Op::Splat)) {
      pointer = slot_unless(values_[splat->operands[0]].value, pointer, zero_slot_);
      mask = nullptr;
    }
  }
  if (all_true(mask)) return from_memory(b_.CreateAlignedLoad(ty, pointer, align_of(f_, t, result.lanes())), t);
  if (all_false(mask)) return from_memory(llvm::Constant::getNullValue(ty), t);
  if (isa_.spirv) {
    return from_memory(load_lanes(t, result.lanes(), mask, [&](int k) { return b_.CreateConstGEP1_64(memory_element(t), pointer, k); }), t);
  }
  return from_memory(b_.CreateMaskedLoad(ty, pointer, align_of(t), mask, llvm::Constant::getNullValue(ty)), t);
}

void Emitter::store(const ssa::Inst& inst) {
  const int buffer = static_cast<int>(inst.imm);
  const DType t = f_.buffers[buffer].dtype;
  Value* mask = inst.operands.size() > 2 ? values_[inst.operands[2]].value : nullptr;
  if (all_false(mask)) return;
  Value* value = to_memory(values_[inst.operands[0]].value, t);
  Value* pointer = address(buffer, inst.operands[1]);
  const bool scalar = !value->getType()->isVectorTy();
  if (all_true(mask)) {
    b_.CreateAlignedStore(value, pointer, scalar ? align_of(t) : align_of(f_, t, f_.type(inst.operands[0]).lanes()));
  } else if (scalar && isa_.groups) {
    only_if(mask, nullptr, [&] { return b_.CreateAlignedStore(value, pointer, align_of(t)); });
  } else if (scalar) {
    b_.CreateAlignedStore(value, slot_unless(mask, pointer, sink_slot_), align_of(t));
  } else if (isa_.spirv) {
    store_lanes(t, value, mask, [&](int k) { return b_.CreateConstGEP1_64(memory_element(t), pointer, k); });
  } else {
    b_.CreateMaskedStore(value, pointer, align_of(t), mask);
  }
}

Value* Emitter::gather(const ssa::Inst& inst) {
  const int buffer = static_cast<int>(inst.imm);
  const DType t = f_.buffers[buffer].dtype;
  const int lanes = f_.type(inst.results[0]).lanes();
  llvm::Type* ty = llvm::FixedVectorType::get(memory_element(t), lanes);
  Value* mask = inst.operands.size() > 1 ? values_[inst.operands[1]].value : splat(b_.getTrue(), lanes);
  if (isa_.spirv) return from_memory(load_lanes(t, lanes, mask, [&](int k) { return lane_address(buffer, inst.operands[0], k); }), t);
  Value* pointers = addresses(buffer, inst.operands[0]);
  if (isa_.sve_bits > 0 && bits(t) < 32) {  // LLVM 22 cannot select some gathers of few small elements
    Value* all = llvm::PoisonValue::get(ty);
    for (int k = 0; k < lanes; ++k) {
      Value* pointer = slot_unless(b_.CreateExtractElement(mask, k), b_.CreateExtractElement(pointers, k), zero_slot_);
      all = b_.CreateInsertElement(all, b_.CreateAlignedLoad(memory_element(t), pointer, align_of(t)), k);
    }
    return from_memory(all, t);
  }
  return from_memory(b_.CreateMaskedGather(ty, pointers, align_of(t), mask, llvm::Constant::getNullValue(ty)), t);
}

void Emitter::scatter(const ssa::Inst& inst) {
  const int buffer = static_cast<int>(inst.imm);
  const DType t = f_.buffers[buffer].dtype;
  Value* value = to_memory(values_[inst.operands[0]].value, t);
  const int lanes = f_.type(inst.operands[0]).lanes();
  Value* mask = inst.operands.size() > 2 ? values_[inst.operands[2]].value : splat(b_.getTrue(), lanes);
  if (isa_.spirv) return store_lanes(t, value, mask, [&](int k) { return lane_address(buffer, inst.operands[1], k); });
  b_.CreateMaskedScatter(value, addresses(buffer, inst.operands[1]), align_of(t), mask);
}

// Lane by lane; masked lanes go to a slot of this thread's own.
Value* Emitter::atomic(const ssa::Inst& inst) {
  const DType t = f_.buffers[inst.imm].dtype;
  const Combine combine = *kernel::as_atomic(static_cast<Op>(inst.op));
  using Rmw = llvm::AtomicRMWInst;
  Rmw::BinOp op = is_float(t) ? Rmw::FAdd : Rmw::Add;
  if (combine == Combine::Max) op = is_signed_int(t) ? Rmw::Max : Rmw::UMax;
  if (combine == Combine::Min) op = is_signed_int(t) ? Rmw::Min : Rmw::UMin;
  Value* value = values_[inst.operands[0]].value;
  Value* index = values_[inst.operands[1]].value;
  Value* mask = inst.operands.size() > 2 ? values_[inst.operands[2]].value : nullptr;
  const auto one = [&](Value* x, Value* at, Value* allowed) -> Value* {
    Value* pointer = b_.CreateGEP(memory_element(t), buffers_[inst.imm], at);
    if (isa_.groups) {
      const auto access = [&]() -> Value* {
        if (isa_.spirv && is_float(t)) return add_by_exchange(pointer, x);
        return b_.CreateAtomicRMW(op, pointer, x, align_of(t), llvm::AtomicOrdering::Monotonic);
      };
      return all_true(allowed) ? access() : only_if(allowed, x->getType(), access);
    }
    Value* old = b_.CreateAtomicRMW(op, slot_unless(allowed, pointer, sink_slot_), x, align_of(t),
                                    llvm::AtomicOrdering::Monotonic);
    return all_true(allowed) ? old : b_.CreateSelect(allowed, old, llvm::Constant::getNullValue(old->getType()));
  };
  if (!value->getType()->isVectorTy()) return one(value, index, mask);
  Value* result = llvm::PoisonValue::get(value->getType());
  for (int lane = 0; lane < f_.type(inst.results[0]).lanes(); ++lane) {
    Value* allowed = mask ? b_.CreateExtractElement(mask, lane) : nullptr;
    Value* old = one(b_.CreateExtractElement(value, lane), b_.CreateExtractElement(index, lane), allowed);
    result = b_.CreateInsertElement(result, old, lane);
  }
  return result;
}

}  // namespace weft::codegen
