// Dtypes as LLVM types, and constants.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using kernel::Function;

namespace {

bool has_register(DType t) {
  if (is_float(t)) return bits(t) >= 16 || t == DType::F8E4M3FN || t == DType::F8E5M2;  // of 8 bits: codes, for units
  return is_bool(t) || (is_int(t) && bits(t) >= 8);
}

}  // namespace

Result<void> check_types(const Function& function) {
  auto refuse = [&](DType t) {
    return unsupported("dtype", std::string("the llvm code generator has no arithmetic on ") + name(t))
        .at(function.name)
        .suggest("convert to f32 or to an integer of at least 8 bits before");
  };
  for (const auto& buffer : function.buffers) {
    if (!has_register(buffer.dtype)) return refuse(buffer.dtype);
  }
  for (const auto& type : function.types) {
    if (!has_register(type.dtype)) return refuse(type.dtype);
  }
  return {};
}

llvm::Type* Emitter::element(DType t) const {
  switch (t) {
    case DType::Bool: return b_.getInt1Ty();
    case DType::F16: return b_.getHalfTy();
    case DType::F32: return b_.getFloatTy();
    case DType::F64: return b_.getDoubleTy();
    default: return b_.getIntNTy(bits(t));
  }
}

llvm::Type* Emitter::memory_element(DType t) const {
  return is_bool(t) ? b_.getInt8Ty() : element(t);
}

llvm::Type* Emitter::type(const ssa::Type& t) const {
  llvm::Type* scalar = element(t.dtype);
  return t.rank == 0 ? scalar : llvm::FixedVectorType::get(scalar, t.lanes());
}

llvm::Constant* Emitter::number(DType t, double value, const ssa::Type& shape) {
  llvm::Type* ty = type(shape.with(t));
  if (t == DType::F64) return llvm::ConstantFP::get(ty, value);
  if (!is_float(t)) {
    return llvm::ConstantInt::get(ty, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  const std::uint64_t encoded = encode_float(t, value);
  if (t == DType::BF16) return llvm::ConstantInt::get(ty, encoded);
  const auto& semantics = t == DType::F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::IEEEsingle();
  return llvm::ConstantFP::get(ty, llvm::APFloat(semantics, llvm::APInt(bits(t), encoded)));
}

llvm::Value* Emitter::constant(const ssa::Inst& inst) {
  const ssa::Type& t = f_.type(inst.results[0]);
  if (is_float(t.dtype)) return number(t.dtype, inst.fimm, t);
  const auto value = is_bool(t.dtype) ? std::int64_t{inst.imm != 0} : inst.imm;
  const llvm::APInt wide(64, static_cast<std::uint64_t>(value));
  return llvm::ConstantInt::get(type(t), wide.trunc(element(t.dtype)->getIntegerBitWidth()));
}

}  // namespace weft::codegen
