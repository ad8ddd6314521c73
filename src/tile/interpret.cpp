#include <fmt/format.h>

#include <memory>

#include "tile/tile.h"

namespace weft::tile {
namespace {

using ssa::Block;
using ssa::Inst;

using Tile = std::vector<Scalar>;  // row-major

Scalar multiply_add(DType t, Scalar x, Scalar y, Scalar acc) {
  const Scalar fused[] = {x, y, acc};
  if (is_float(t)) return evaluate(ScalarOp::Fma, t, t, fused);
  const Scalar sum[] = {evaluate(ScalarOp::Mul, t, t, {fused, 2}), acc};
  return evaluate(ScalarOp::Add, t, t, sum);
}

}  // namespace

class Stepper::Program {
 public:
  Program(const Function& f, std::span<const BufferView> buffers,
          std::span<const std::int64_t> sizes, std::int64_t id, Watch& watch)
      : f_(f), buffers_(buffers.begin(), buffers.end()), sizes_(sizes), values_(f.types.size()), id_(id), watch_(watch) {
    for (std::size_t i = buffers_.size(); i < f.buffers.size(); ++i) {
      const auto bytes = storage_bytes(f.buffers[i].dtype, f.buffers[i].elements).value_or(0);
      on_chip_.emplace_back(bytes, std::byte{0xcd});
      buffers_.push_back({on_chip_.back().data(), bytes == 0 ? 0 : f.buffers[i].elements});
    }
  }

  Result<void> block(const Block& block) {
    for (const Inst& inst : block.insts) WEFT_TRY(run(inst));
    return {};
  }

  Result<void> run(const Inst& inst) {
    values_.resize(f_.types.size());
    return step(inst);
  }

  const Tile& value(ValueId v) const { return values_[v]; }

 private:
  Error fail(const Inst& inst, std::string what) const {
    return user_error("tile-run",
                      fmt::format("{} in program {}: {}", f_.info(inst).name, id_, what))
        .at(f_.name);
  }
  const Tile& in(const Inst& inst, int i) const { return values_[inst.operands[i]]; }
  const Type& in_type(const Inst& inst, int i) const { return f_.type(inst.operands[i]); }
  Tile& out(const Inst& inst) {
    Tile& tile = values_[inst.results[0]];
    tile.assign(f_.type(inst.results[0]).elements(), Scalar());
    return tile;
  }
  const Type& out_type(const Inst& inst) const { return f_.type(inst.results[0]); }

  Result<void> step(const Inst& inst) {
    const Op op = static_cast<Op>(inst.op);
    if (const auto scalar = as_scalar(op)) return elementwise(inst, *scalar), Result<void>();
    if (const auto combine = as_reduce(op)) return reduce(inst, *combine), Result<void>();
    if (const auto combine = as_scan(op)) return scan(inst, *combine), Result<void>();
    if (const auto combine = as_atomic(op)) return atomic(inst, *combine);
    switch (op) {
      case Op::Const:
        out(inst)[0] = {inst.fimm, inst.imm};
        return {};
      case Op::Size:
        out(inst)[0].i = sizes_[inst.imm];
        return {};
      case Op::ProgramId:
        out(inst)[0].i = id_;
        return {};
      case Op::Iota:
        return iota(inst), Result<void>();
      case Op::Broadcast:
        return broadcast(inst), Result<void>();
      case Op::Load:
        return load(inst);
      case Op::Store:
        return store(inst);
      case Op::Dot:
        return dot(inst), Result<void>();
      case Op::Transpose:
        return transpose(inst), Result<void>();
      case Op::Check:
        for (const Scalar& ok : in(inst, 0)) {
          if (ok.i == 0) return fail(inst, fmt::format("failed with code {}", inst.imm));
        }
        return {};
      case Op::For:
        return run_for(inst);
      case Op::If:
        return run_if(inst);
      default:
        return fail(inst, "has no meaning to the interpreter");
    }
  }

  void elementwise(const Inst& inst, ScalarOp op) {
    Tile result(out_type(inst).elements());
    std::array<Scalar, 3> operands;
    const std::size_t arity = inst.operands.size();
    for (std::size_t e = 0; e < result.size(); ++e) {
      for (std::size_t i = 0; i < arity; ++i) operands[i] = in(inst, static_cast<int>(i))[e];
      const DType from = in_type(inst, static_cast<int>(arity) - 1).dtype;
      result[e] = evaluate(op, from, out_type(inst).dtype, {operands.data(), arity});
    }
    values_[inst.results[0]] = std::move(result);
  }

  void iota(const Inst& inst) {
    const int cols = out_type(inst).shape[1];
    Tile& result = out(inst);
    for (std::size_t e = 0; e < result.size(); ++e) {
      result[e].i = static_cast<std::int64_t>(inst.imm == 0 ? e / cols : e % cols);
    }
  }

  void broadcast(const Inst& inst) {
    const Type &from = in_type(inst, 0), &to = out_type(inst);
    Tile& result = out(inst);
    for (int r = 0; r < to.shape[0]; ++r) {
      for (int c = 0; c < to.shape[1]; ++c) {
        const int row = from.shape[0] == 1 ? 0 : r, col = from.shape[1] == 1 ? 0 : c;
        result[r * to.shape[1] + c] = in(inst, 0)[row * from.shape[1] + col];
      }
    }
  }

  // False where a mask says so; an error outside the buffer, or where programs meet.
  Result<bool> accesses(const Inst& inst, int index_at, std::size_t element, Watch::Access how) const {
    const bool masked = static_cast<int>(inst.operands.size()) > index_at + 1;
    if (masked && in(inst, index_at + 1)[element].i == 0) return false;
    const std::int64_t index = in(inst, index_at)[element].i, size = buffers_[inst.imm].elements;
    if (index < 0 || index >= size)
      return fail(inst, fmt::format("index {} of buffer {} of {} elements", index, inst.imm, size));
    if (f_.buffers[inst.imm].space == ssa::Space::OnChip) return true;
    const std::int64_t bytes = (bits(f_.buffers[inst.imm].dtype) + 7) / 8;
    if (how != Watch::Access::Store) watch_.bytes_loaded += bytes;
    if (how != Watch::Access::Load) watch_.bytes_stored += bytes;
    const char* race = watch_.touch(static_cast<int>(inst.imm), index, id_, how);
    if (race == nullptr) return true;
    return fail(inst, fmt::format("index {} of buffer {}: {}", index, inst.imm, race));
  }

  Result<void> load(const Inst& inst) {
    Tile& result = out(inst);
    for (std::size_t e = 0; e < result.size(); ++e) {
      if (!WEFT_TRY(accesses(inst, 0, e, Watch::Access::Load))) continue;
      result[e] =
          load_scalar(f_.buffers[inst.imm].dtype, buffers_[inst.imm].data, in(inst, 0)[e].i);
    }
    return {};
  }

  Result<void> store(const Inst& inst) {
    for (std::size_t e = 0; e < in(inst, 0).size(); ++e) {
      if (!WEFT_TRY(accesses(inst, 1, e, Watch::Access::Store))) continue;
      store_scalar(f_.buffers[inst.imm].dtype, buffers_[inst.imm].data, in(inst, 1)[e].i,
                   in(inst, 0)[e]);
    }
    return {};
  }

  void reduce(const Inst& inst, Combine how) {
    const Type& from = in_type(inst, 0);
    Tile& result = out(inst);
    for (int r = 0; r < from.shape[0]; ++r) {
      for (int c = 0; c < from.shape[1]; ++c) {
        Scalar& into = result[inst.imm == 0 ? c : r];
        const Scalar& x = in(inst, 0)[r * from.shape[1] + c];
        const bool first = (inst.imm == 0 ? r : c) == 0;
        into = first ? x : combine(how, from.dtype, into, x);
      }
    }
  }

  void scan(const Inst& inst, Combine how) {
    const Type& t = out_type(inst);
    const int step = inst.imm == 0 ? t.shape[1] : 1;
    Tile result = in(inst, 0);
    for (std::size_t e = 0; e < result.size(); ++e) {
      const std::size_t place = inst.imm == 0 ? e / t.shape[1] : e % t.shape[1];
      if (place > 0) result[e] = combine(how, t.dtype, result[e - step], result[e]);
    }
    values_[inst.results[0]] = std::move(result);
  }

  Result<void> atomic(const Inst& inst, Combine how) {
    const DType t = f_.buffers[inst.imm].dtype;
    Tile& result = out(inst);
    for (std::size_t e = 0; e < result.size(); ++e) {
      if (!WEFT_TRY(accesses(inst, 1, e, Watch::Access::Atomic))) continue;
      const std::int64_t at = in(inst, 1)[e].i;
      result[e] = load_scalar(t, buffers_[inst.imm].data, at);
      store_scalar(t, buffers_[inst.imm].data, at, combine(how, t, result[e], in(inst, 0)[e]));
    }
    return {};
  }

  void dot(const Inst& inst) {
    const Type &a = in_type(inst, 0), &b = in_type(inst, 1);
    const DType t = out_type(inst).dtype;
    const int depth = a.shape[1], cols = b.shape[1];
    Tile result = in(inst, 2);
    for (std::size_t e = 0; e < result.size(); ++e) {
      for (int k = 0; k < depth; ++k) {
        const Scalar x = in(inst, 0)[e / cols * depth + k], y = in(inst, 1)[k * cols + e % cols];
        const Scalar x_wide = evaluate(ScalarOp::Cast, a.dtype, t, {&x, 1});
        const Scalar y_wide = evaluate(ScalarOp::Cast, b.dtype, t, {&y, 1});
        result[e] = multiply_add(t, x_wide, y_wide, result[e]);
      }
    }
    values_[inst.results[0]] = std::move(result);
  }

  void transpose(const Inst& inst) {
    const int rows = in_type(inst, 0).shape[0], cols = in_type(inst, 0).shape[1];
    Tile& result = out(inst);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; ++c) result[c * rows + r] = in(inst, 0)[r * cols + c];
    }
  }

  void assign(const std::vector<ValueId>& to, const std::vector<ValueId>& from,
              std::size_t skip = 0) {
    std::vector<Tile> moved;
    for (std::size_t i = 0; i < from.size(); ++i) moved.push_back(values_[from[i]]);
    for (std::size_t i = 0; i < from.size(); ++i) values_[to[i + skip]] = std::move(moved[i]);
  }

  Result<void> run_for(const Inst& inst) {
    const Block& body = inst.regions[0];
    const std::int64_t lo = in(inst, 0)[0].i, hi = in(inst, 1)[0].i, step = in(inst, 2)[0].i;
    if (step <= 0) return fail(inst, fmt::format("step {}", step));
    std::vector<ValueId> carried(inst.operands.begin() + 3, inst.operands.end());
    for (std::int64_t i = lo; i < hi;) {
      values_[body.args[0]] = {Scalar{0, i}};
      assign(body.args, carried, 1);
      WEFT_TRY(block(body));
      carried = body.yields;
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    assign(inst.results, carried);
    return {};
  }

  Result<void> run_if(const Inst& inst) {
    const Block& taken = inst.regions[in(inst, 0)[0].i != 0 ? 0 : 1];
    WEFT_TRY(block(taken));
    assign(inst.results, taken.yields);
    return {};
  }

  const Function& f_;
  std::vector<std::vector<std::byte>> on_chip_;
  std::vector<BufferView> buffers_;
  std::span<const std::int64_t> sizes_;
  std::vector<Tile> values_;
  std::int64_t id_ = 0;
  Watch& watch_;
};

Stepper::Stepper(const Function& function, std::span<const BufferView> buffers, std::span<const std::int64_t> sizes,
                 std::int64_t program, Watch& watch)
    : program_(std::make_unique<Program>(function, buffers, sizes, program, watch)) {}
Stepper::~Stepper() = default;
Result<void> Stepper::run(const ssa::Inst& inst) { return program_->run(inst); }
const std::vector<Scalar>& Stepper::value(ValueId v) const { return program_->value(v); }

Watch::Watch(std::span<const BufferView> buffers) : elements_(buffers.size()) {
  for (const BufferView& buffer : buffers) sizes_.push_back(buffer.elements);
}

const char* Watch::touch(int buffer, std::int64_t element, std::int64_t program, Access access) {
  std::vector<Element>& all = elements_[buffer];
  if (all.empty()) all.resize(static_cast<std::size_t>(sizes_[buffer]));
  Element& e = all[static_cast<std::size_t>(element)];
  const bool atomic = access == Access::Atomic, first = e.writer == kNobody;
  if (!first && e.writer != program && !(atomic && e.atomic)) return "another program writes it";
  if (access == Access::Load) {
    e.reader = e.reader == kNobody || e.reader == program ? program : kSeveral;
    return nullptr;
  }
  if (e.reader != kNobody && e.reader != program) return "another program reads it";
  e.atomic = atomic && (first || e.atomic);
  e.writer = first || e.writer == program ? program : kSeveral;
  return nullptr;
}

Result<void> interpret(const Function& function, std::span<const BufferView> buffers,
                       std::span<const std::int64_t> sizes, std::int64_t grid, Watch* watch) {
  std::size_t in_memory = 0;
  for (const ssa::Buffer& buffer : function.buffers)
    in_memory += buffer.space == ssa::Space::Memory ? 1 : 0;
  if (buffers.size() != in_memory || sizes.size() != static_cast<std::size_t>(function.sizes)) {
    return user_error("tile-run", fmt::format("{} buffers and {} sizes were given", buffers.size(),
                                              sizes.size()))
        .at(function.name)
        .expected(fmt::format("{} and {}", in_memory, function.sizes));
  }
  std::optional<Watch> own;
  if (watch == nullptr) watch = &own.emplace(buffers);
  for (std::int64_t id = 0; id < grid; ++id) {
    Stepper stepper(function, buffers, sizes, id, *watch);
    for (const Inst& inst : function.body.insts) WEFT_TRY(stepper.run(inst));
  }
  return {};
}

}  // namespace weft::tile
