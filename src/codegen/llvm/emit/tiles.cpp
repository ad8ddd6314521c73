// Tiles of x86's matrix unit (AMX), whose registers LLVM's intrinsics name by number. The same configuration serves all kernels: eight
// tiles of 16 rows of 64 bytes, set when a part of a grid begins and released when it ends.
#include <array>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using llvm::Value;
using ssa::ValueId;
namespace Intrinsic = llvm::Intrinsic;

Result<void> Emitter::assign_tiles() {
  auto registers = kernel::tile_registers(f_);
  if (!registers) return internal_error("more than eight tiles at a time").at(f_.name);
  tile_registers_ = *std::move(registers);
  if (has_tiles() && !isa_.amx) return unsupported("matrix-unit", "tiles on a CPU without AMX").at(f_.name);
  return {};
}

void Emitter::configure_tiles() {
  if (!has_tiles()) return;
  constexpr int kBytes = 64, kPalette = 0, kRowBytes = 16, kRows = 48;  // where it says what
  std::array<std::uint8_t, kBytes> configuration{};
  configuration[kPalette] = 1;
  for (int t = 0; t < kTileRegisters; ++t) {
    configuration[kRowBytes + 2 * t] = kTileRowBytes;
    configuration[kRows + t] = kTileRows;
  }
  auto* data = llvm::ConstantDataArray::get(module_.getContext(), configuration);
  auto* global = new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "tiles");
  global->setAlignment(llvm::Align(kBytes));
  b_.CreateIntrinsic(Intrinsic::x86_ldtilecfg, llvm::ArrayRef<llvm::Type*>{}, {global});
}

void Emitter::release_tiles() {
  if (has_tiles()) b_.CreateIntrinsic(Intrinsic::x86_tilerelease, llvm::ArrayRef<llvm::Type*>{}, llvm::ArrayRef<Value*>{});
}

Value* Emitter::tile_register(ValueId tile) const { return b_.getInt8(static_cast<std::uint8_t>(tile_registers_[tile])); }

Value* Emitter::row_stride(const ssa::Inst& inst, ValueId stride) {
  return b_.CreateMul(values_[stride].value, b_.getInt64(bits(f_.buffers[inst.imm].dtype) / 8));
}

// A tile is no value of LLVM's: a constant that nothing reads stands for it.
Value* Emitter::zero_tile(const ssa::Inst& inst) {
  b_.CreateIntrinsic(Intrinsic::x86_tilezero, llvm::ArrayRef<llvm::Type*>{}, {tile_register(inst.results[0])});
  return b_.getFalse();
}

Value* Emitter::load_tile(const ssa::Inst& inst) {
  Value* from = address(static_cast<int>(inst.imm), inst.operands[0]);
  b_.CreateIntrinsic(Intrinsic::x86_tileloadd64, llvm::ArrayRef<llvm::Type*>{},
                     {tile_register(inst.results[0]), from, row_stride(inst, inst.operands[1])});
  return b_.getFalse();
}

void Emitter::store_tile(const ssa::Inst& inst) {
  Value* to = address(static_cast<int>(inst.imm), inst.operands[1]);
  b_.CreateIntrinsic(Intrinsic::x86_tilestored64, llvm::ArrayRef<llvm::Type*>{},
                     {tile_register(inst.operands[0]), to, row_stride(inst, inst.operands[2])});
}

Value* Emitter::multiply_tiles(const ssa::Inst& inst) {
  const DType a = f_.type(inst.operands[0]).dtype, b = f_.type(inst.operands[1]).dtype;
  const auto id = a == DType::BF16                    ? Intrinsic::x86_tdpbf16ps
                  : a == DType::U8 && b == DType::U8  ? Intrinsic::x86_tdpbuud
                  : a == DType::U8                    ? Intrinsic::x86_tdpbusd
                  : b == DType::U8                    ? Intrinsic::x86_tdpbsud
                                                      : Intrinsic::x86_tdpbssd;
  b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{},
                     {tile_register(inst.results[0]), tile_register(inst.operands[0]), tile_register(inst.operands[1])});
  return b_.getFalse();
}

}  // namespace weft::codegen
