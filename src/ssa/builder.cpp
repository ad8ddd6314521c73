#include "ssa/function.h"

namespace weft::ssa {

FunctionBuilder::FunctionBuilder(const OpTable& table, std::string name) {
  f_.table = &table;
  f_.name = std::move(name);
}

int FunctionBuilder::add_buffer(Buffer buffer) {
  WEFT_CHECK(buffer.space == Space::OnChip || f_.buffers.empty() ||
                 f_.buffers.back().space == Space::Memory,
             "memory buffers come first");
  f_.buffers.push_back(buffer);
  return static_cast<int>(f_.buffers.size()) - 1;
}

int FunctionBuilder::add_size() { return f_.sizes++; }

Block& FunctionBuilder::block_at(int depth) {
  if (depth == 0) return f_.body;
  Open& open = open_[depth - 1];
  return open.inst.regions[open.region];
}

ValueId FunctionBuilder::new_value(Type type) {
  f_.types.push_back(type);
  return static_cast<ValueId>(f_.types.size()) - 1;
}

std::vector<ValueId> FunctionBuilder::append(std::uint16_t op, std::vector<ValueId> operands,
                                             std::vector<Type> results, std::int64_t imm,
                                             double fimm) {
  Inst inst;
  inst.op = op;
  inst.operands = std::move(operands);
  for (const Type& t : results) inst.results.push_back(new_value(t));
  inst.imm = imm;
  inst.fimm = fimm;
  std::vector<ValueId> values = inst.results;
  block().insts.push_back(std::move(inst));
  return values;
}

ValueId FunctionBuilder::append1(std::uint16_t op, std::vector<ValueId> operands, Type result,
                                 std::int64_t imm, double fimm) {
  return append(op, std::move(operands), {result}, imm, fimm)[0];
}

FunctionBuilder::Loop FunctionBuilder::begin_for(std::uint16_t op, ValueId lo, ValueId hi,
                                                 ValueId step, std::vector<ValueId> inits) {
  Loop loop;
  loop.iv = new_value(Type::scalar(DType::I64));
  for (ValueId v : inits) loop.carried.push_back(new_value(type(v)));
  Open open;
  open.inst.op = op;
  open.inst.operands = {lo, hi, step};
  open.inst.operands.insert(open.inst.operands.end(), inits.begin(), inits.end());
  open.inst.regions.resize(1);
  open.inst.regions[0].args = {loop.iv};
  open.inst.regions[0].args.insert(open.inst.regions[0].args.end(), loop.carried.begin(),
                                   loop.carried.end());
  open_.push_back(std::move(open));
  return loop;
}

std::vector<ValueId> FunctionBuilder::end_for(std::vector<ValueId> next) {
  WEFT_CHECK(!open_.empty() && open_.back().inst.regions.size() == 1, "end_for without begin_for");
  Inst inst = std::move(open_.back().inst);
  open_.pop_back();
  WEFT_CHECK(next.size() + 3 == inst.operands.size(),
             "a loop yields one value for each carried one");
  for (std::size_t i = 0; i < next.size(); ++i) {
    WEFT_CHECK(type(next[i]) == type(inst.operands[i + 3]),
               "a loop yields the types that it carries");
    inst.results.push_back(new_value(type(next[i])));
  }
  inst.regions[0].yields = std::move(next);
  std::vector<ValueId> results = inst.results;
  block().insts.push_back(std::move(inst));
  return results;
}

void FunctionBuilder::begin_if(std::uint16_t op, ValueId cond, std::vector<Type> results) {
  Open open;
  open.inst.op = op;
  open.inst.operands = {cond};
  open.inst.regions.resize(2);
  for (const Type& t : results) open.inst.results.push_back(new_value(t));
  open_.push_back(std::move(open));
}

void FunctionBuilder::begin_else(std::vector<ValueId> yields) {
  WEFT_CHECK(!open_.empty() && open_.back().inst.regions.size() == 2 && open_.back().region == 0,
             "begin_else without begin_if");
  block().yields = std::move(yields);
  open_.back().region = 1;
}

std::vector<ValueId> FunctionBuilder::end_if(std::vector<ValueId> yields) {
  WEFT_CHECK(!open_.empty() && open_.back().inst.regions.size() == 2, "end_if without begin_if");
  if (open_.back().region == 0) begin_else({});  // no else: allowed without results
  Inst inst = std::move(open_.back().inst);
  open_.pop_back();
  inst.regions[1].yields = std::move(yields);
  for (const Block& region : inst.regions) {
    WEFT_CHECK(region.yields.size() == inst.results.size(),
               "each region yields one value for each result");
    for (std::size_t i = 0; i < inst.results.size(); ++i) {
      WEFT_CHECK(type(region.yields[i]) == type(inst.results[i]),
                 "a region yields the types of the results");
    }
  }
  std::vector<ValueId> results = inst.results;
  block().insts.push_back(std::move(inst));
  return results;
}

Function FunctionBuilder::finish() {
  WEFT_CHECK(open_.empty(), "a loop or branch is still open");
  return std::move(f_);
}

}  // namespace weft::ssa
