#include <fmt/format.h>

#include <algorithm>

#include "kernel/kernel.h"
#include "tile/tile.h"

namespace weft::kernel {
namespace {

constexpr int kMaxLanes = 1024;

class Verifier {
 public:
  explicit Verifier(const Function& f) : f_(f) {}

  Result<void> run() {
    for (const Type& t : f_.types) {
      const bool known = t.rank == 2 ? t == matrix_tile(t.dtype) : t.lanes() >= 1 && t.lanes() <= kMaxLanes;
      if (!known) return bad("a value of type " + str(t));
    }
    return block(f_.body);
  }

 private:
  Error bad(std::string what) const {
    return user_error("bad-kernel", std::move(what)).at(fmt::format("@{}", f_.name));
  }
  Error bad(const ssa::Inst& i, std::string what) const {
    std::string types;
    for (ValueId v : i.operands) types += (types.empty() ? "" : ", ") + str(f_.type(v));
    return bad(fmt::format("{} of ({}): {}", f_.info(i).name, types, what));
  }

  Result<void> block(const ssa::Block& b) {
    for (const ssa::Inst& i : b.insts) {
      WEFT_TRY(inst(i));
      for (const ssa::Block& region : i.regions) WEFT_TRY(block(region));
    }
    return {};
  }

  const Type& operand(const ssa::Inst& i, int n) const { return f_.type(i.operands[n]); }

  Result<void> scalar(const ssa::Inst& i, ScalarOp op) {
    const ScalarOpInfo& row = info(op);
    const Type& result = f_.type(i.results[0]);
    const Type& type = f_.type(i.operands.back());
    for (std::size_t n = op == ScalarOp::Select ? 1 : 0; n < i.operands.size(); ++n) {
      if (operand(i, static_cast<int>(n)) != type) return bad(i, "operands of one type are needed");
    }
    if (!accepts(op, type.dtype)) return bad(i, "not for this dtype");
    const bool moves = row.result == ScalarResult::Cast || row.result == ScalarResult::Select;
    if (!moves && is_float(type.dtype) && bits(type.dtype) < 32)
      return bad(i, "narrow floats are cast to f32 first");
    const bool fits = row.result == ScalarResult::Bool   ? result == type.with(DType::Bool)
                      : row.result == ScalarResult::Cast ? result == type.with(result.dtype)
                                                         : result == type;
    if (!fits) return bad(i, "a result of " + str(result));
    if (op == ScalarOp::Cast && !accepts(op, result.dtype))
      return bad(i, "a cast to " + str(result));
    if (op == ScalarOp::Bitcast && bits(result.dtype) != bits(type.dtype))
      return bad(i, "a bitcast to " + str(result));
    if (op == ScalarOp::Select && operand(i, 0) != type.with(DType::Bool))
      return bad(i, "a bool for each lane is needed");
    return {};
  }

  // `first`: operand number of the index; the mask, if any, follows it.
  Result<void> access(const ssa::Inst& i, const Type& value, int first, bool lanes) {
    const ssa::Buffer& buffer = f_.buffers[i.imm];
    if (value.dtype != buffer.dtype)
      return bad(i, "the buffer holds " + std::string(name(buffer.dtype)));
    const Type index = lanes ? value.with(DType::I64) : Type::scalar(DType::I64);
    if (lanes && value.rank != 1) return bad(i, "vectors are needed");
    if (operand(i, first) != index) return bad(i, "an index of " + str(index) + " is needed");
    const int count = static_cast<int>(i.operands.size());
    if (count > first + 2) return bad(i, "too many operands");
    if (count == first + 2 && operand(i, first + 1) != value.with(DType::Bool)) {
      return bad(i, "a bool for each lane is needed");
    }
    const bool stores = i.results.empty();
    if (buffer.space == ssa::Space::Memory && !(stores ? buffer.written : buffer.read)) {
      return bad(i,
                 fmt::format("buffer {} is not declared {}", i.imm, stores ? "written" : "read"));
    }
    return {};
  }

  Result<void> lane(const ssa::Inst& i) {
    const Type& vector = operand(i, 0);
    if (vector.rank != 1 || i.imm < 0 || i.imm >= vector.lanes())
      return bad(i, fmt::format("there is no lane {}", i.imm));
    const Type scalar = Type::scalar(vector.dtype);
    if (static_cast<Op>(i.op) == Op::Extract) return result(i, scalar);
    if (operand(i, 1) != scalar) return bad(i, "a scalar of " + str(scalar) + " is needed");
    return result(i, vector);
  }

  Result<void> result(const ssa::Inst& i, const Type& expected) const {
    if (f_.type(i.results[0]) == expected) return {};
    return bad(
        i, fmt::format("a result of {}, {} expected", str(f_.type(i.results[0])), str(expected)));
  }

  // What is done to tiles: nothing but these and being carried.
  Result<void> tiles(const ssa::Inst& i) {
    const Op op = static_cast<Op>(i.op);
    if (f_.threads > 1) return bad(i, "tiles are of one thread");
    if (op == Op::LoadTile || op == Op::StoreTile) {
      const Type& tile = op == Op::LoadTile ? f_.type(i.results[0]) : operand(i, 0);
      const std::size_t first = op == Op::LoadTile ? 0 : 1;
      const Type scalar = Type::scalar(DType::I64);
      if (tile.rank != 2) return bad(i, "a tile is needed");
      if (operand(i, static_cast<int>(first) + 1) != scalar) return bad(i, "a stride of i64 is needed");
      ssa::Inst one = i;  // as an access of one element
      one.operands.pop_back();
      return access(one, Type::scalar(tile.dtype), static_cast<int>(first), false);
    }
    if (op == Op::ZeroTile) return f_.type(i.results[0]).rank == 2 ? Result<void>() : bad(i, "a tile is needed");
    const DType a = operand(i, 0).dtype, b = operand(i, 1).dtype;
    const bool bytes = (a == DType::U8 || a == DType::I8) && (b == DType::U8 || b == DType::I8);
    if (!bytes && (a != DType::BF16 || b != DType::BF16)) return bad(i, "bf16 or bytes are needed");
    if (operand(i, 0) != matrix_tile(a) || operand(i, 1) != matrix_tile(b)) return bad(i, "tiles are needed");
    if (operand(i, 2) != matrix_tile(bytes ? DType::I32 : DType::F32)) return bad(i, "a sum of f32, of bytes of i32, is needed");
    return result(i, operand(i, 2));
  }

  static bool on_tiles(Op op) {
    return op == Op::ZeroTile || op == Op::LoadTile || op == Op::StoreTile || op == Op::MultiplyTiles;
  }

  Result<void> inst(const ssa::Inst& i) {
    const Op op = static_cast<Op>(i.op);
    if (on_tiles(op)) return tiles(i);
    const auto is_tile = [&](ValueId v) { return f_.type(v).rank == 2; };
    if (op != Op::For && (std::any_of(i.operands.begin(), i.operands.end(), is_tile) ||
                          std::any_of(i.results.begin(), i.results.end(), is_tile))) {
      return bad(i, "not on tiles");
    }
    if (const auto s = as_scalar(op)) return scalar(i, *s);
    switch (op) {
      case Op::Const:
        return result(i, Type::scalar(f_.type(i.results[0]).dtype));
      case Op::Size:
      case Op::ProgramId:
      case Op::ThreadId:
        return result(i, Type::scalar(DType::I64));
      case Op::Splat:
        return splat(i);
      case Op::Iota:
        return iota(i);
      case Op::Extract:
      case Op::Insert:
        return lane(i);
      case Op::Interleave:
        return interleave(i);
      case Op::Load:
        return access(i, f_.type(i.results[0]), 0, false);
      case Op::Store:
        return access(i, operand(i, 0), 1, false);
      case Op::Gather:
        return access(i, f_.type(i.results[0]), 0, true);
      case Op::Scatter:
        return access(i, operand(i, 0), 1, true);
      case Op::AtomicAdd:
      case Op::AtomicMax:
      case Op::AtomicMin:
        return atomic(i);
      case Op::Ldexp:
        return ldexp(i);
      case Op::Exp2Unit:
      case Op::Saturate:
        return operand(i, 0).dtype == DType::F32 ? result(i, operand(i, 0)) : bad(i, "f32 is needed");
      case Op::Shuffle:
        return shuffle(i);
      case Op::MultiplyMatrix:
        return multiply_matrix(i);
      case Op::LoadMatrix:
      case Op::LoadMatrixTurned:
        return load_matrix(i);
      case Op::MultiplyGroup:
        return multiply_group(i);
      case Op::FenceProducts:
      case Op::CommitProducts:
        return four_warps(i);
      case Op::WaitProducts:
        return wait_products(i);
      case Op::CopyAsync:
        return copy_async(i);
      case Op::WaitCopies:
        return i.imm >= 0 ? Result<void>() : bad(i, "a number of groups is needed");
      case Op::Words:
        return words(i);
      case Op::Dot4:
        return dot4(i);
      case Op::Dot2:
        return dot2(i);
      case Op::Check:
        return operand(i, 0).dtype == DType::Bool ? Result<void>() : bad(i, "a bool is needed");
      case Op::Barrier:
      case Op::FenceShared:
      case Op::CommitCopies:
      case Op::For:
      case Op::If:
        return {};
      default:
        return reduction(i);
    }
  }

  Result<void> splat(const ssa::Inst& i) const {
    if (operand(i, 0).rank != 0) return bad(i, "a scalar is needed");
    return result(i, Type::vector(operand(i, 0).dtype, f_.type(i.results[0]).lanes()));
  }

  Result<void> iota(const ssa::Inst& i) const {
    const Type& t = f_.type(i.results[0]);
    return t.rank == 1 && is_int(t.dtype) ? Result<void>() : bad(i, "an integer vector is needed");
  }

  Result<void> interleave(const ssa::Inst& i) const {
    const Type& t = operand(i, 0);
    if (t.rank != 1 || t.lanes() % 2 != 0 || operand(i, 1) != t) return bad(i, "two equal vectors of an even number of lanes are needed");
    if (i.imm < 0 || i.imm > 1) return bad(i, "there are two halves");
    return result(i, t);
  }

  Result<void> atomic(const ssa::Inst& i) {
    const ssa::Buffer& buffer = f_.buffers[i.imm];
    if (!buffer.written || !tile::atomic_on(buffer.dtype, *as_atomic(static_cast<Op>(i.op)))) {
      return bad(i, fmt::format("buffer {} has no such atomics", i.imm));
    }
    WEFT_TRY(access(i, operand(i, 0), 1, operand(i, 0).rank == 1));
    return result(i, operand(i, 0));
  }

  Result<void> ldexp(const ssa::Inst& i) const {
    if (!is_float(operand(i, 0).dtype)) return bad(i, "a float is needed");
    if (operand(i, 1) != operand(i, 0).with(DType::I32)) return bad(i, "an i32 exponent for each lane is needed");
    return result(i, operand(i, 0));
  }

  Result<void> shuffle(const ssa::Inst& i) const {
    if (operand(i, 0).rank != 0) return bad(i, "a scalar is needed");
    if (operand(i, 1) != Type::scalar(DType::I64)) return bad(i, "an i64 lane is needed");
    return result(i, operand(i, 0));
  }

  Result<void> words(const ssa::Inst& i) const {
    const Type& from = operand(i, 0);
    const bool narrow = (bits(from.dtype) == 8 && is_int(from.dtype)) || from.dtype == DType::BF16;
    const Type word = Type::scalar(DType::I32);
    const int steps = bits(word.dtype) / bits(from.dtype);
    if (from.rank != 1 || !narrow || from.lanes() % steps != 0) return bad(i, "bytes in fours or bf16 in pairs are needed");
    return result(i, from.lanes() == steps ? word : Type::vector(word.dtype, from.lanes() / steps));
  }

  Result<void> dot4(const ssa::Inst& i) const {
    const Type& sum = operand(i, 2);
    if (sum.dtype != DType::I32) return bad(i, "i32 is needed");
    if (operand(i, 0) != sum || operand(i, 1) != sum) return bad(i, "operands of one type are needed");
    return result(i, sum);
  }

  Result<void> dot2(const ssa::Inst& i) const {
    const Type& sum = operand(i, 2);
    if (sum.dtype != DType::F32) return bad(i, "a sum in f32 is needed");
    if (operand(i, 0) != sum.with(DType::I32) || operand(i, 1) != operand(i, 0)) return bad(i, "words for each lane are needed");
    return result(i, sum);
  }

  Result<void> wait_products(const ssa::Inst& i) const {
    if (operand(i, 0).rank != 1 || (operand(i, 0).dtype != DType::F32 && operand(i, 0).dtype != DType::I32) || i.imm < 0) return bad(i, "a sum and a number of groups are needed");
    WEFT_TRY(four_warps(i));
    return result(i, operand(i, 0));
  }

  static bool is_byte(DType t) { return t == DType::I8 || t == DType::U8; }
  static bool is_f8(DType t) { return t == DType::F8E4M3FN || t == DType::F8E5M2; }
  // Of products: of one dtype, but that bytes of either sign meet, and floats of 8 bits of either kind.
  static bool meet(DType a, DType b) { return a == b || (is_byte(a) && is_byte(b)) || (is_f8(a) && is_f8(b)); }

  Result<void> multiply_matrix(const ssa::Inst& i) {
    const DType t = operand(i, 0).dtype, other = operand(i, 1).dtype;
    const bool bytes = is_byte(t);
    if (!bytes && !is_f8(t) && t != DType::F16 && t != DType::BF16 && t != DType::F32) return bad(i, "f16, bf16, f32, f8, i8 or u8 is needed");
    const int word = word_elements(t);
    if (operand(i, 0) != Type::vector(t, 4 * word)) return bad(i, "4 words are needed");
    if (!meet(t, other) || operand(i, 1) != Type::vector(other, 2 * word)) return bad(i, "2 words alike are needed");
    if (operand(i, 2) != Type::vector(bytes ? DType::I32 : DType::F32, 4)) return bad(i, "4 sums are needed");
    return f_.warp == kMatrixWarp ? result(i, operand(i, 2)) : bad(i, "a warp of 32 is needed");
  }

  Result<void> four_warps(const ssa::Inst& i) const {
    return f_.warp == kMatrixWarp && f_.threads % kGroupThreads == 0 ? Result<void>() : bad(i, "fours of warps of 32 are needed");
  }

  Result<void> multiply_group(const ssa::Inst& i) {
    const auto blocks = ssa::BlocksImm::of(i.imm);
    const Type index = Type::scalar(DType::I64), &a = operand(i, 0), &sum = operand(i, 2);
    const DType t = f_.buffers[blocks.right.buffer].dtype, other = a == index ? f_.buffers[blocks.left.buffer].dtype : a.dtype;
    const bool narrow = is_byte(t) || is_f8(t);
    if (!narrow && t != DType::F16 && t != DType::BF16) return bad(i, "f16, bf16, f8, i8 or u8 is needed");
    if (!meet(t, other)) return bad(i, "operands alike are needed");
    const auto lies = [&](const ssa::BlockImm& b) {
      const ssa::Buffer& buffer = f_.buffers[b.buffer];
      return (!narrow || !b.turned) && buffer.space == ssa::Space::OnChip && b.row >= 5 && b.row <= 7 && b.stride >= 4 && b.stride < 18 && (!b.turned || (b.leading >= 4 && b.leading < 18));
    };
    if (a != index && a != Type::vector(other, 4 * word_elements(t))) return bad(i, "an index or 4 words are needed");
    if (operand(i, 1) != index) return bad(i, "an index of i64 is needed");
    if (!lies(blocks.right) || (a == index && !lies(blocks.left))) return bad(i, "operands on chip in rows of 32, 64 or 128 bytes are needed");
    const int columns = 2 * sum.lanes();
    if (sum.rank != 1 || sum.dtype != (is_byte(t) ? DType::I32 : DType::F32) || columns % kMatrixColumns != 0 || columns > 256) return bad(i, "a sum of 8 to 256 columns is needed");
    WEFT_TRY(four_warps(i));
    return result(i, sum);
  }

  Result<void> load_matrix(const ssa::Inst& i) {
    const ssa::Buffer& buffer = f_.buffers[i.imm];
    const Type& r = f_.type(i.results[0]);
    if (buffer.space != ssa::Space::OnChip) return bad(i, "on-chip memory is needed");
    if (r.dtype != buffer.dtype) return bad(i, "the buffer holds " + std::string(name(buffer.dtype)));
    if (operand(i, 0) != Type::scalar(DType::I64)) return bad(i, "an index of i64 is needed");
    const bool turned = static_cast<Op>(i.op) == Op::LoadMatrixTurned;
    if (is_bool(r.dtype) || (turned ? bits(r.dtype) != 16 : bits(r.dtype) > 32)) return bad(i, "not for this dtype");
    const int word = word_elements(r.dtype);
    const int lanes = r.lanes();
    if (lanes != word && lanes != 2 * word && lanes != 4 * word) return bad(i, "1, 2 or 4 matrices are needed");
    return f_.warp == kMatrixWarp ? Result<void>() : bad(i, "a warp of 32 is needed");
  }

  Result<void> copy_async(const ssa::Inst& i) {
    const auto copy = ssa::CopyImm::of(i.imm);
    const ssa::Buffer &to = f_.buffers[copy.to], &from = f_.buffers[copy.from];
    if (to.space != ssa::Space::OnChip || from.space != ssa::Space::Memory) return bad(i, "copies are from memory to on-chip memory");
    if (!from.read || from.written) return bad(i, fmt::format("buffer {} is not one that is only read", copy.from));
    if (to.dtype != from.dtype || is_bool(to.dtype)) return bad(i, "not for this dtype");
    const int bytes = copy.elements * bits(to.dtype) / 8;
    if (bytes != 4 && bytes != 8 && bytes != 16) return bad(i, "4, 8 or 16 bytes are needed");
    for (const int n : {0, 1}) {
      if (operand(i, n) != Type::scalar(DType::I64)) return bad(i, "indices of i64 are needed");
    }
    const std::size_t count = i.operands.size();
    if (count > 3 || (count == 3 && operand(i, 2) != Type::scalar(DType::Bool))) return bad(i, "one mask is needed, a bool");
    return {};
  }

  Result<void> reduction(const ssa::Inst& i) {
    const Type& t = operand(i, 0);
    const bool logical =
        static_cast<Op>(i.op) == Op::ReduceAnd || static_cast<Op>(i.op) == Op::ReduceOr;
    if (t.rank != 1) return bad(i, "a vector is needed");
    if (logical ? is_float(t.dtype) : is_float(t.dtype) && bits(t.dtype) < 32)
      return bad(i, "not for this dtype");
    return result(i, Type::scalar(t.dtype));
  }

  const Function& f_;
};

}  // namespace

Result<void> verify(const Function& function) {
  if (function.table != &op_table()) return internal_error("a function that is not Kernel IR");
  WEFT_TRY(ssa::verify_structure(function));
  return Verifier(function).run();
}

}  // namespace weft::kernel
