#include <fmt/format.h>

#include "tile/tile.h"

namespace weft::tile {
namespace {

using ssa::Block;
using ssa::Inst;

constexpr std::int64_t kMaxElements =
    std::int64_t{1} << 20;  // of one tile: all of it lives in registers or on chip

class Verifier {
 public:
  explicit Verifier(const Function& f) : f_(f) {}

  Result<void> run() {
    for (std::size_t v = 0; v < f_.types.size(); ++v) {
      const Type& t = f_.types[v];
      const bool shaped =
          t.rank == 2 && t.shape[0] >= 1 && t.shape[1] >= 1 && t.elements() <= kMaxElements;
      if (t.rank != 0 && !shaped)
        return fail(fmt::format("a value of type {} is not a scalar or a tile", str(t)));
      if (is_complex(t.dtype) || is_string(t.dtype))
        return fail(fmt::format("tiles cannot hold {}", weft::name(t.dtype)));
    }
    return block(f_.body);
  }

 private:
  Error fail(std::string message) const {
    return user_error("invalid-tile", std::move(message)).at(f_.name);
  }
  Error fail(const Inst& inst, std::string_view what) const {
    std::string types;
    for (const ValueId v : inst.operands) types += (types.empty() ? "" : ", ") + str(f_.type(v));
    return fail(fmt::format("{}: {}", f_.info(inst).name, what))
        .found(fmt::format("operands ({})", types));
  }

  Result<void> block(const Block& block) {
    for (const Inst& inst : block.insts) {
      WEFT_TRY(check(inst));
      for (const Block& region : inst.regions) WEFT_TRY(this->block(region));
    }
    return {};
  }

  const Type& in(const Inst& inst, int i) const { return f_.type(inst.operands[i]); }
  const Type& out(const Inst& inst) const { return f_.type(inst.results[0]); }

  Result<void> check(const Inst& inst) const {
    const Op op = static_cast<Op>(inst.op);
    if (const auto scalar = as_scalar(op)) return check_scalar(inst, *scalar);
    if (as_reduce(op)) return check_reduce(inst);
    if (as_scan(op)) {
      const bool fits = in(inst, 0).rank == 2 && is_axis(inst.imm) && out(inst) == in(inst, 0);
      return fits ? Result<void>() : fail(inst, "is along axis 0 or 1 of a tile, which keeps its type");
    }
    if (const auto combine = as_atomic(op)) {
      const ssa::Buffer& buffer = f_.buffers[inst.imm];
      if (!atomic_on(buffer.dtype, *combine))
        return fail(inst, fmt::format("there is none on {}", weft::name(buffer.dtype)));
      if (!buffer.read || out(inst) != in(inst, 0)) return fail(inst, "gives what it reads");
      return check_access(inst, 1, in(inst, 0));
    }
    const Type index = Type::scalar(DType::I64);
    switch (op) {
      case Op::Const:
        return out(inst).rank == 0 ? Result<void>() : fail(inst, "is a scalar");
      case Op::Size:
      case Op::ProgramId:
        return out(inst) == index ? Result<void>() : fail(inst, "is an i64 scalar");
      case Op::Iota:
        if (out(inst).rank == 2 && out(inst).dtype == DType::I64 && is_axis(inst.imm)) return {};
        return fail(inst, "is an i64 tile over axis 0 or 1");
      case Op::Broadcast:
        return check_broadcast(inst);
      case Op::Load:
        return check_access(inst, 0, out(inst));
      case Op::Store:
        return check_access(inst, 1, in(inst, 0));
      case Op::Dot:
        return check_dot(inst);
      case Op::Transpose:
        if (in(inst, 0).rank == 2 &&
            out(inst) == Type::tile(in(inst, 0).dtype, in(inst, 0).shape[1], in(inst, 0).shape[0]))
          return {};
        return fail(inst, "exchanges the axes of a tile");
      case Op::Check:
        return in(inst, 0).dtype == DType::Bool ? Result<void>() : fail(inst, "takes a bool");
      case Op::For:
        for (int i = 0; i < 3; ++i) {
          if (in(inst, i) != index) return fail(inst, "bounds and step are i64 scalars");
        }
        return {};
      case Op::If:
        return in(inst, 0).dtype == DType::Bool && in(inst, 0).elements() == 1 ? Result<void>() : fail(inst, "takes one bool");
      default:
        return fail(inst, "has no rule in the verifier");
    }
  }

  static bool is_axis(std::int64_t axis) { return axis == 0 || axis == 1; }

  Result<void> check_scalar(const Inst& inst, ScalarOp op) const {
    const ScalarResult rule = info(op).result;
    const Type& last = in(inst, static_cast<int>(inst.operands.size()) - 1);
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      const bool condition = rule == ScalarResult::Select && i == 0;
      if (in(inst, i) != (condition ? last.with(DType::Bool) : last))
        return fail(inst, "operand types differ");
    }
    const DType result = rule == ScalarResult::Cast   ? out(inst).dtype
                         : rule == ScalarResult::Bool ? DType::Bool
                                                      : last.dtype;
    if (out(inst) != last.with(result))
      return fail(inst, "the result's type does not follow from the operands'");
    if (op == ScalarOp::Bitcast && bits(last.dtype) != bits(result))
      return fail(inst, "the sizes differ");
    return {};
  }

  Result<void> check_reduce(const Inst& inst) const {
    if (in(inst, 0).rank != 2 || !is_axis(inst.imm))
      return fail(inst, "is over axis 0 or 1 of a tile");
    Type expected = in(inst, 0);
    expected.shape[inst.imm] = 1;
    return out(inst) == expected ? Result<void>() : fail(inst, "gives size 1 along the axis");
  }

  Result<void> check_broadcast(const Inst& inst) const {
    const Type &from = in(inst, 0), &to = out(inst);
    bool fits = to.rank == 2 && from.dtype == to.dtype;
    for (int axis = 0; axis < 2 && from.rank == 2; ++axis) {
      fits = fits && (from.shape[axis] == 1 || from.shape[axis] == to.shape[axis]);
    }
    return fits ? Result<void>() : fail(inst, "stretches a scalar or sizes of 1 to a tile");
  }

  // Operand `at` is the index, a mask may follow.
  Result<void> check_access(const Inst& inst, int at, const Type& value) const {
    const ssa::Buffer& buffer = f_.buffers[inst.imm];
    const Type& index = in(inst, at);
    const bool masked = static_cast<int>(inst.operands.size()) > at + 1;
    if (index.dtype != DType::I64) return fail(inst, "the index is i64");
    if (value != index.with(buffer.dtype))
      return fail(inst, "the value has the index's shape and the buffer's dtype");
    if (masked && in(inst, at + 1) != index.with(DType::Bool))
      return fail(inst, "the mask is bool of the index's shape");
    if (static_cast<int>(inst.operands.size()) > at + 2) return fail(inst, "too many operands");
    if (!(at == 0 ? buffer.read : buffer.written))
      return fail(inst, "the buffer is not declared so");
    return {};
  }

  Result<void> check_dot(const Inst& inst) const {
    const Type &a = in(inst, 0), &b = in(inst, 1), &acc = in(inst, 2);
    const bool shapes = a.rank == 2 && b.rank == 2 && acc.rank == 2 && a.shape[1] == b.shape[0] &&
                        a.shape[0] == acc.shape[0] && b.shape[1] == acc.shape[1];
    if (!shapes) return fail(inst, "shapes are [r,k], [k,c], [r,c]");
    const bool narrower = bits(a.dtype) <= bits(acc.dtype) && bits(b.dtype) <= bits(acc.dtype);
    const bool kinds =
        is_float(a.dtype) == is_float(acc.dtype) && is_float(b.dtype) == is_float(acc.dtype);
    if (!narrower || !kinds)
      return fail(inst, "a and b are of the accumulator's kind and no wider");
    return out(inst) == acc ? Result<void>() : fail(inst, "the result is like the accumulator");
  }

  const Function& f_;
};

}  // namespace

Result<void> verify(const Function& function) {
  WEFT_TRY(verify_structure(function));
  return Verifier(function).run();
}

}  // namespace weft::tile
