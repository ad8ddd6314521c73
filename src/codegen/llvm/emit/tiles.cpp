// Tiles of x86's matrix unit (AMX). LLVM's intrinsics name its eight registers by number: they are assigned here, once for
// a function, because a sum that a loop carries stays in one register. The same configuration serves all kernels: eight
// tiles of 16 rows of 64 bytes, set when a part of a grid begins and released when it ends.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emit/emitter.h"

namespace weft::codegen {

using kernel::Op;
using llvm::Value;
using ssa::ValueId;
namespace Intrinsic = llvm::Intrinsic;

namespace {

// Values that share a register, and when they are alive, by positions of instructions in the function's text.
class Assignment {
 public:
  explicit Assignment(const kernel::Function& f)
      : f_(f), parent_(f.types.size()), first_(f.types.size(), -1), last_(f.types.size(), -1), loops_of_(f.types.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // By value id, -1 for what is no tile. Nothing when there are more tiles alive than registers.
  std::optional<std::vector<int>> run() {
    block(f_.body);
    std::vector<Range> ranges;
    for (std::size_t v = 0; v < parent_.size(); ++v) {
      if (f_.types[v].rank != 2) continue;
      const ValueId root = find(static_cast<ValueId>(v));
      auto range = std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r.root == root; });
      if (range == ranges.end()) range = ranges.insert(ranges.end(), {root, first_[v], last_[v]});
      range->first = std::min(range->first, first_[v]);
      range->last = std::max(range->last, last_[v]);
    }
    return color(std::move(ranges));
  }

 private:
  struct Range {
    ValueId root;
    int first, last;
  };

  std::optional<std::vector<int>> color(std::vector<Range> ranges) {
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    std::array<int, kTileRegisters> busy;  // until when
    busy.fill(-1);
    std::vector<int> by_root(parent_.size(), -1), result(parent_.size(), -1);
    for (const Range& r : ranges) {
      const auto free = std::find_if(busy.begin(), busy.end(), [&](int until) { return until < r.first; });
      if (free == busy.end()) return std::nullopt;
      *free = r.last;
      by_root[r.root] = static_cast<int>(free - busy.begin());
    }
    for (std::size_t v = 0; v < result.size(); ++v) {
      if (f_.types[v].rank == 2) result[v] = by_root[find(static_cast<ValueId>(v))];
    }
    return result;
  }

  ValueId find(ValueId v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }

  void join(ValueId a, ValueId b) {
    if (f_.types[a].rank == 2) parent_[find(a)] = find(b);
  }

  void define(ValueId v) { first_[v] = last_[v] = position_, loops_of_[v] = loops_; }

  // In a loop that does not make the value, it is needed until the loop ends.
  void use(ValueId v, const std::vector<int>& ends) {
    const std::size_t outside = loops_of_[v];
    last_[v] = std::max(last_[v], outside < ends.size() ? ends[outside] : position_);
  }

  static int length(const ssa::Block& block) {
    int n = 1;
    for (const ssa::Inst& inst : block.insts) {
      n += 1;
      for (const ssa::Block& region : inst.regions) n += length(region);
    }
    return n;
  }

  void block(const ssa::Block& b) {
    for (const ssa::Inst& inst : b.insts) {
      ++position_;
      for (const ValueId v : inst.operands) use(v, ends_);
      if (static_cast<Op>(inst.op) == Op::MultiplyTiles) join(inst.operands[2], inst.results[0]);
      if (static_cast<Op>(inst.op) == Op::For) {
        for (std::size_t k = 0; k < inst.results.size(); ++k) {
          join(inst.operands[3 + k], inst.results[k]);
          join(inst.regions[0].args[1 + k], inst.results[k]);
          join(inst.regions[0].yields[k], inst.results[k]);
        }
        ends_.push_back(position_ + length(inst.regions[0]));
        ++loops_;
        for (const ValueId v : inst.regions[0].args) define(v);
        block(inst.regions[0]);
        for (const ValueId v : inst.regions[0].yields) use(v, ends_);
        ++position_;
        ends_.pop_back();
        --loops_;
      } else {
        for (const ssa::Block& region : inst.regions) {
          block(region);
          ++position_;
        }
      }
      for (const ValueId v : inst.results) define(v);
    }
  }

  const kernel::Function& f_;
  std::vector<ValueId> parent_;
  std::vector<int> first_, last_;
  std::vector<std::size_t> loops_of_;  // around the definition
  std::vector<int> ends_;              // of the open loops
  std::size_t loops_ = 0;
  int position_ = 0;
};

}  // namespace

Result<void> Emitter::assign_tiles() {
  if (std::none_of(f_.types.begin(), f_.types.end(), [](const ssa::Type& t) { return t.rank == 2; })) return {};
  if (!isa_.amx) return unsupported("matrix-unit", "tiles on a CPU without AMX").at(f_.name);
  auto registers = Assignment(f_).run();
  if (!registers) return internal_error("more than eight tiles at a time").at(f_.name);
  tile_registers_ = *std::move(registers);
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
