// i * x for a loop's counter i and an x from outside starts at lo * x and grows by step * x. An address that a loop forms so
// costs an addition for each iteration, not a multiplication in 64 bits. A constant x is left: that is a shift.
#include "kernel/simt/carry.h"

#include <set>
#include <utility>

namespace weft::kernel::simt {
namespace {

using ssa::Block;
using ssa::Inst;

void collect_defined(const Block& block, std::set<ValueId>& values) {
  values.insert(block.args.begin(), block.args.end());
  for (const Inst& inst : block.insts) {
    values.insert(inst.results.begin(), inst.results.end());
    for (const Block& region : inst.regions) collect_defined(region, values);
  }
}

class Carrier {
 public:
  explicit Carrier(Function& f) : f_(f), constant_(f.types.size()) {}

  void block(Block& block) {
    std::vector<Inst> insts;
    for (Inst& inst : block.insts) {
      if (static_cast<Op>(inst.op) == Op::Const) constant_[static_cast<std::size_t>(inst.results[0])] = true;
      for (Block& region : inst.regions) this->block(region);
      if (static_cast<Op>(inst.op) == Op::For) loop(inst, insts);
      insts.push_back(std::move(inst));
    }
    block.insts = std::move(insts);
  }

 private:
  ValueId value() {
    f_.types.push_back(Type::scalar(DType::I64));
    constant_.push_back(false);
    return static_cast<ValueId>(f_.types.size() - 1);
  }
  ValueId append(std::vector<Inst>& insts, Op op, ValueId a, ValueId b) {
    Inst inst;
    inst.op = static_cast<std::uint16_t>(op);
    inst.operands = {a, b};
    inst.results = {value()};
    insts.push_back(std::move(inst));
    return insts.back().results[0];
  }

  // `before` is what precedes the loop.
  void loop(Inst& loop, std::vector<Inst>& before) {
    Block& body = loop.regions[0];
    const ValueId counter = body.args[0], lo = loop.operands[0], step = loop.operands[2];
    std::set<ValueId> inside;
    collect_defined(body, inside);
    std::vector<Inst> kept;
    std::vector<std::pair<ValueId, ValueId>> carried;  // by what they grow
    for (Inst& inst : body.insts) {
      const bool product = static_cast<Op>(inst.op) == Op::Mul && f_.type(inst.results[0]) == Type::scalar(DType::I64);
      const ValueId other = !product ? -1 : inst.operands[0] == counter ? inst.operands[1] : inst.operands[1] == counter ? inst.operands[0] : -1;
      if (other < 0 || inside.contains(other) || constant_[static_cast<std::size_t>(other)]) {
        kept.push_back(std::move(inst));
        continue;
      }
      loop.operands.push_back(append(before, Op::Mul, lo, other));
      const ValueId by = append(before, Op::Mul, step, other), now = inst.results[0];
      body.args.push_back(now);
      loop.results.push_back(value());
      carried.emplace_back(now, by);
    }
    body.insts = std::move(kept);
    for (const auto& [now, by] : carried) body.yields.push_back(append(body.insts, Op::Add, now, by));
  }

  Function& f_;
  std::vector<bool> constant_;  // by value
};

}  // namespace

void carry_products(Function& function) { Carrier(function).block(function.body); }

}  // namespace weft::kernel::simt
