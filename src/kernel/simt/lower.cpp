#include "kernel/simt/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernel/simt/carry.h"
#include "kernel/simt/lowering.h"

namespace weft::kernel {
namespace simt {
namespace {

constexpr int kMaxRegisters = 1024;  // vectors of one tile in a thread; more would not end compiling

const char* without_lowering(const tile::Function& f, const ssa::Block& block) {
  for (const ssa::Inst& inst : block.insts) {
    if (tile::as_scan(static_cast<tile::Op>(inst.op))) return f.info(inst).name;
    for (const ssa::Block& region : inst.regions) {
      if (const char* name = without_lowering(f, region)) return name;
    }
  }
  return nullptr;
}

}  // namespace

// Where values are defined and used. Yields are no users, but use.
void Lowering::look_over(const ssa::Block& block) {
  for (const ssa::Inst& inst : block.insts) {
    for (const ValueId v : inst.operands) used_[v] = true, users_[v].push_back(&inst);
    for (const ValueId v : inst.results) defining_[v] = &inst;
    for (const ssa::Block& region : inst.regions) look_over(region);
  }
  for (const ValueId v : block.yields) used_[v] = true, users_[v].push_back(nullptr);
}

// The units read operands either way round.
void Lowering::defer_transposes() {
  for (std::size_t v = 0; v < defining_.size(); ++v) {
    const Inst* inst = defining_[v];
    if (inst == nullptr || static_cast<tile::Op>(inst->op) != tile::Op::Transpose) continue;
    const auto id = static_cast<ValueId>(v);
    const bool all = !users_[v].empty() && std::all_of(users_[v].begin(), users_[v].end(), [&](const Inst* user) {
      return user != nullptr && static_cast<tile::Op>(user->op) == tile::Op::Dot && user->operands[2] != id && suits_matrix_units(*user);
    });
    if (all) deferred_.insert(id);
  }
}

Lowering::Lowering(const tile::Function& function, const Machine& machine, int most_stages)
    : f_(function),
      machine_(machine),
      most_stages_(most_stages),
      spread_(choose_spread(function, machine)),
      b_(function.name),
      math_(b_),
      hazards_(function),
      values_(function.types.size()),
      used_(function.types.size()),
      defining_(function.types.size()),
      users_(function.types.size()) {
  look_over(f_.body);
  defer_transposes();
  for (const ssa::Buffer& buffer : f_.buffers) b_.add_buffer(buffer);
  for (int i = 0; i < f_.sizes; ++i) b_.add_size();
}

Result<Function> Lowering::run() {
  if (const char* op = without_lowering(f_, f_.body)) return unsupported("op", fmt::format("{} by a group of threads", op)).at(f_.name);
  for (const tile::Type& t : f_.types) {
    if (share(t).registers() <= kMaxRegisters) continue;
    return unsupported("tile-too-large", fmt::format("a tile of {} takes {} registers of a thread", str(t), share(t).registers()))
        .at(f_.name)
        .expected(fmt::format("at most {}", kMaxRegisters));
  }
  block(f_.body);
  Function kernel = b_.finish();
  kernel.threads = 1 << spread_.threads;
  kernel.warp = 1 << spread_.warp;
  eliminate_dead(kernel);
  carry_products(kernel);
  WEFT_TRY(fits(kernel));
  return kernel;
}

Result<void> Lowering::fits(const Function& kernel) const {
  std::uint64_t bytes = 0;
  for (const ssa::Buffer& b : kernel.buffers) {
    if (b.space != ssa::Space::OnChip) continue;
    const std::uint64_t align = spread_.groups ? kGroupAlign : 1;
    bytes += (storage_bytes(b.dtype, b.elements).value_or(UINT32_MAX) + align - 1) / align * align;
  }
  if (kernel.threads == 1 || bytes <= static_cast<std::uint64_t>(machine_.shared_bytes)) return {};
  return unsupported("shared-memory", fmt::format("a group of threads would share {} bytes", bytes))
      .at(f_.name)
      .expected(fmt::format("at most {} on {}", machine_.shared_bytes, machine_.name));
}

void Lowering::block(const ssa::Block& block) {
  const ssa::Block* outer = std::exchange(place_, &block);
  for (const Inst& inst : block.insts) this->inst(inst);
  place_ = outer;
}

void Lowering::inst(const Inst& inst) {
  const tile::Op op = static_cast<tile::Op>(inst.op);
  const auto define = [&](Value v) { values_[inst.results[0]] = std::move(v); };
  const auto define_index = [&](Lines lines) { define(index_value(type(inst.results[0]), std::move(lines))); };
  if (const auto scalar = tile::as_scalar(op)) return define(elementwise(inst, *scalar));
  if (const auto combine = tile::as_reduce(op)) return define(reduce(inst, *combine));
  if (const auto combine = tile::as_atomic(op)) return define(atomic(inst, *combine));
  switch (op) {
    case tile::Op::Const: {
      const tile::Type& t = type(inst.results[0]);
      if (t.dtype == DType::I64) return define_index({{math_.constant(inst.imm)}, {}});
      return define(registers_value(t, 1, true, {is_float(t.dtype) ? b_.constant(t.dtype, inst.fimm) : b_.constant_i64(inst.imm, t.dtype)}));
    }
    case tile::Op::Size:
      return define_index({{math_.term(b_.size(static_cast<int>(inst.imm)), {1, 0, true})}, {}});
    case tile::Op::ProgramId:
      return define_index({{math_.term(b_.program_id(), {1, 0, true, true})}, {}});
    case tile::Op::Iota: {
      const tile::Type& t = type(inst.results[0]);
      if (inst.imm == 0) return define_index(rows_of(t));
      return define_index({{math_.constant(0)}, math_.constant(t.shape[1] > 1 ? 1 : 0)});
    }
    case tile::Op::Broadcast: {
      Value v = in(inst, 0);
      v.type = type(inst.results[0]);
      return define(std::move(v));
    }
    case tile::Op::Load:
      if (lying_.contains(inst.results[0])) return;
      return define(load(inst));
    case tile::Op::Store:
      return store(inst);
    case tile::Op::Dot:
      return define(dot(inst));
    case tile::Op::Transpose:
      if (deferred_.contains(inst.results[0])) return;
      return define(transpose(inst));
    case tile::Op::Check:
      return check(inst);
    case tile::Op::For:
      return lower_for(inst);
    case tile::Op::If:
      return lower_if(inst);
    default:
      WEFT_CHECK(false, "a tile op without a lowering");
  }
}

void Lowering::check(const Inst& inst) {
  Value ok = in(inst, 0);
  if (ok.uniform()) ok.type.shape[1] = 1;
  if (ok.one_row) ok.type.shape[0] = 1;
  const Share s = share(ok.type);
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) {
      ValueId passes = at(ok, row, i);
      const ValueId real = inside(ok.type, row, i);
      if (real >= 0) passes = b_.scalar(ScalarOp::Or, {passes, b_.scalar(ScalarOp::Not, {real})});
      b_.check(passes, static_cast<int>(inst.imm));
    }
  }
}

std::vector<ValueId> Lowering::expand(const std::vector<ValueId>& values) {
  std::vector<ValueId> registers;
  for (const ValueId v : values) {
    const Share s = share(type(v));
    for (int row = 0; row < s.rows; ++row) {
      for (int i = 0; i < s.count; ++i) registers.push_back(at(values_[v], row, i));
    }
  }
  return registers;
}

void Lowering::define_expanded(const std::vector<ValueId>& values, const std::vector<ValueId>& registers) {
  auto next = registers.begin();
  for (const ValueId v : values) {
    const Share s = share(type(v));
    values_[v] = registers_value(type(v), s.rows, type(v).shape[1] == 1, {next, next + s.registers()});
    next += s.registers();
  }
}

void Lowering::lower_for(const Inst& inst) {
  const ssa::Block& body = inst.regions[0];
  const Sum lo = in(inst, 0).rows[0], step = in(inst, 2).rows[0];
  const std::vector<ValueId> inits(inst.operands.begin() + 3, inst.operands.end());
  const std::vector<ValueId> carried(body.args.begin() + 1, body.args.end());
  const Hazards::State before = hazards_.state();
  const std::optional<Pipeline> pipeline = plan_pipeline(inst);
  const bool flies = pipeline && pipeline->flying != nullptr;
  std::vector<ValueId> first = expand_carried(pipeline, inits, flies ? group_sums(values_[inits[pipeline->sum]]) : std::vector<ValueId>());
  if (pipeline) {
    begin_pipeline(*pipeline, inst);
    for (const int slot : {0, pipeline->stages - 1 - pipeline->behind()}) first.push_back(b_.constant_i64(slot, DType::I32));
  }
  const auto loop = b_.begin_for(math_.value(lo), scalar_of(in(inst, 1)), math_.value(step), std::move(first));
  hazards_.enter_loop(body);
  ++loops_;

  const Facts from = math_.facts(lo), by = math_.facts(step);
  const Facts known{std::gcd(from.divisor, by.divisor), b_.depth(), from.counted && by.counted, from.natural && by.natural};
  values_[body.args[0]] = index_value(type(body.args[0]), {{math_.term(loop.iv, known)}, {}});
  std::vector<ValueId> sums = define_carried(pipeline, carried, loop.carried);
  if (flies) flying_[pipeline->flying] = std::move(sums);
  if (pipeline) advance_pipeline(*pipeline, inst, loop.carried[loop.carried.size() - 2], loop.carried.back());
  block(body);
  std::vector<ValueId> next = expand_carried(pipeline, body.yields, flies ? flying_[pipeline->flying] : std::vector<ValueId>());
  if (pipeline) {
    const ValueId slot = loop.carried[loop.carried.size() - 2], free = loop.carried.back();
    next.insert(next.end(), {slot_after(*pipeline, slot), flies ? slot_after(*pipeline, free) : slot});
  }
  sums = define_carried(pipeline, inst.results, b_.end_for(std::move(next)));
  for (ValueId& sum : sums) sum = b_.wait_products(sum, 0);
  if (flies) values_[inst.results[pipeline->sum]] = from_group_sums(type(inst.results[pipeline->sum]), sums);
  --loops_;
  if (pipeline) end_pipeline(*pipeline);
  hazards_.meet(before);
}

void Lowering::lower_if(const Inst& inst) {
  std::vector<tile::Type> results;
  for (const ValueId v : inst.results) {
    const Share s = share(type(v));
    const DType t = type(v).dtype;
    results.insert(results.end(), static_cast<std::size_t>(s.registers()),
                   s.lanes == 1 ? tile::Type::scalar(t) : tile::Type::vector(t, s.lanes));
  }
  b_.begin_if(scalar_of(in(inst, 0)), std::move(results));
  Hazards::State before = hazards_.state();
  block(inst.regions[0]);
  b_.begin_else(expand(inst.regions[0].yields));
  Hazards::State after_then = hazards_.state();
  before.resize(after_then.size());  // scratch that came meanwhile
  hazards_.restore(std::move(before));
  block(inst.regions[1]);
  hazards_.meet(after_then);
  define_expanded(inst.results, b_.end_if(expand(inst.regions[1].yields)));
}

}  // namespace simt

Result<Function> lower_simt(const tile::Function& function, const Machine& machine) {
  WEFT_TRY(tile::verify(function));
  constexpr int kMostStages = 4;
  auto kernel = simt::Lowering(function, machine, kMostStages).run();
  // What is copied ahead may leave too little for the rest.
  for (int stages = kMostStages - 1; stages >= 1 && !kernel.ok() && kernel.error().code() == "shared-memory"; --stages) {
    kernel = simt::Lowering(function, machine, stages).run();
  }
  return kernel;
}

}  // namespace weft::kernel
