#include <fmt/format.h>

#include "ssa/function.h"

namespace weft::ssa {
namespace {

class Verifier {
 public:
  explicit Verifier(const Function& f) : f_(f), state_(f.types.size(), Undefined) {}

  Result<void> run() {
    bool on_chip = false;
    for (const Buffer& b : f_.buffers) {
      if (b.space == Space::Memory && on_chip) return bad("a memory buffer after an on-chip one");
      on_chip = on_chip || b.space == Space::OnChip;
      if (b.space == Space::OnChip && b.elements < 0)
        return bad("an on-chip buffer of negative size");
    }
    if (f_.threads < 1 || f_.warp < 1 || f_.threads % f_.warp != 0) return bad("threads that are no whole warps");
    if (!f_.body.args.empty() || !f_.body.yields.empty())
      return bad("a body with arguments or yields");
    return block(f_.body, 0);
  }

 private:
  enum State : char { Undefined, Visible, Gone };

  Error bad(std::string what) const {
    return user_error("bad-function", std::move(what)).at(fmt::format("@{}", f_.name));
  }
  Error bad(const Inst& inst, std::string what) const {
    return user_error("bad-function", fmt::format("{}: {}", f_.info(inst).name, what))
        .at(fmt::format("@{}", f_.name));
  }

  Result<void> define(ValueId v, std::vector<ValueId>& scope) {
    if (v < 0 || v >= static_cast<ValueId>(state_.size()))
      return bad("a value number out of range");
    if (state_[v] != Undefined) return bad(fmt::format("value {} is defined twice", v));
    state_[v] = Visible;
    scope.push_back(v);
    return {};
  }

  bool visible(ValueId v) const {
    return v >= 0 && v < static_cast<ValueId>(state_.size()) && state_[v] == Visible;
  }

  Result<void> immediate(const Inst& inst) const {
    const auto within = [&](std::int64_t count, const char* what) -> Result<void> {
      if (inst.imm >= 0 && inst.imm < count) return {};
      return bad(inst, fmt::format("there is no {} {}", what, inst.imm));
    };
    switch (f_.info(inst).imm) {
      case Imm::Copy: {
        const auto count = static_cast<int>(f_.buffers.size());
        const CopyImm copy = CopyImm::of(inst.imm);
        if (inst.imm >= 0 && copy.to < count && copy.from < count) return {};
        return bad(inst, fmt::format("there is no buffer {} or {}", copy.to, copy.from));
      }
      case Imm::Blocks: {
        const auto count = static_cast<int>(f_.buffers.size());
        const BlocksImm blocks = BlocksImm::of(inst.imm);
        if (inst.imm >= 0 && blocks.left.buffer < count && blocks.right.buffer < count) return {};
        return bad(inst, fmt::format("there is no buffer {} or {}", blocks.left.buffer, blocks.right.buffer));
      }
      case Imm::Buffer:
        return within(static_cast<std::int64_t>(f_.buffers.size()), "buffer");
      case Imm::Size:
        return within(f_.sizes, "size");
      case Imm::Axis:
        return within(2, "axis");
      default:
        return {};
    }
  }

  Result<void> same_types(const Inst& inst, std::span<const ValueId> a, std::span<const ValueId> b,
                          const char* what) {
    if (a.size() != b.size())
      return bad(inst, fmt::format("{} {}, {} expected", a.size(), what, b.size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (f_.type(a[i]) == f_.type(b[i])) continue;
      return bad(inst, fmt::format("{} {}: {} against {}", what, i, str(f_.type(a[i])),
                                   str(f_.type(b[i]))));
    }
    return {};
  }

  Result<void> loop(const Inst& inst) {
    const Block& body = inst.regions[0];
    const std::span inits = std::span(inst.operands).subspan(3);
    const Type index = Type::scalar(DType::I64);
    for (int i = 0; i < 3; ++i) {
      if (f_.type(inst.operands[i]) != index) return bad(inst, "a bound that is no i64 scalar");
    }
    if (body.args.empty() || f_.type(body.args[0]) != index)
      return bad(inst, "no i64 induction variable");
    WEFT_TRY(same_types(inst, std::span(body.args).subspan(1), inits, "carried values"));
    WEFT_TRY(same_types(inst, body.yields, inits, "yields"));
    return same_types(inst, inst.results, inits, "results");
  }

  Result<void> branch(const Inst& inst) {
    const Type& condition = f_.type(inst.operands[0]);
    if (condition.dtype != DType::Bool || condition.elements() != 1) return bad(inst, "the condition is not one bool");
    for (const Block& region : inst.regions) {
      if (!region.args.empty()) return bad(inst, "a region with arguments");
      WEFT_TRY(same_types(inst, region.yields, inst.results, "yields"));
    }
    return {};
  }

  Result<void> inst(const Inst& i, int depth, std::vector<ValueId>& scope) {
    if (i.op >= f_.table->ops.size()) return bad("an op number out of range");
    const OpInfo& op = f_.info(i);
    const int operands = static_cast<int>(i.operands.size());
    if (operands < op.operands || (operands > op.operands && !op.variadic)) {
      return bad(i, fmt::format("{} operands, {} expected", operands, op.operands));
    }
    if (op.results >= 0 && static_cast<int>(i.results.size()) != op.results)
      return bad(i, "wrong number of results");
    if (static_cast<int>(i.regions.size()) != op.regions) return bad(i, "wrong number of regions");
    for (ValueId v : i.operands) {
      if (!visible(v)) return bad(i, fmt::format("operand {} is not defined here", v));
    }
    WEFT_TRY(immediate(i));
    for (const Block& region : i.regions) WEFT_TRY(block(region, depth + 1));
    for (ValueId v : i.results) WEFT_TRY(define(v, scope));
    if (op.regions == 1) return loop(i);
    if (op.regions == 2) return branch(i);
    return {};
  }

  Result<void> block(const Block& b, int depth) {
    if (depth > kMaxDepth) return bad(fmt::format("nested deeper than {} levels", kMaxDepth));
    std::vector<ValueId> scope;
    for (ValueId v : b.args) WEFT_TRY(define(v, scope));
    for (const Inst& i : b.insts) WEFT_TRY(inst(i, depth, scope));
    for (ValueId v : b.yields) {
      if (!visible(v)) return bad(fmt::format("yielded value {} is not defined here", v));
    }
    for (ValueId v : scope) state_[v] = Gone;
    return {};
  }

  const Function& f_;
  std::vector<State> state_;
};

}  // namespace

Result<void> verify_structure(const Function& function) {
  if (function.table == nullptr) return internal_error("a function without an op table");
  return Verifier(function).run();
}

}  // namespace weft::ssa
