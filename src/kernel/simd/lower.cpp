#include "kernel/simd/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernel/simd/lowering.h"
#include "loop/words.h"

namespace weft::kernel {
namespace simd {
namespace {

constexpr std::int64_t kMaxRegisters =
    4096;  // of one tile; a schedule that asks for more would never end compiling

void visit(const ssa::Block& block, const std::function<void(const ssa::Inst&)>& before) {
  for (auto inst = block.insts.rbegin(); inst != block.insts.rend(); ++inst) {
    before(*inst);
    for (const ssa::Block& region : inst->regions) visit(region, before);
  }
}

void mark(const std::vector<ValueId>& values, std::vector<bool>& marks) {
  for (const ValueId v : values) marks[v] = true;
}

}  // namespace

std::vector<bool> used_by_element(const tile::Function& function, const Machine& machine) {
  std::vector<bool> whole(function.types.size()), single(function.types.size());
  mark(function.body.yields, whole);
  // Last instruction first: what becomes of a result is known before its operands are looked at.
  visit(function.body, [&](const ssa::Inst& inst) {
    for (const ssa::Block& region : inst.regions)
      mark(region.args, whole), mark(region.yields, whole);
    const tile::Op op = static_cast<tile::Op>(inst.op);
    if (op == tile::Op::Dot && steps_in_word(function, inst, machine) == 0 && !is_tile_dot(function, inst, machine)) {
      single[inst.operands[0]] = true;
      whole[inst.operands[1]] = whole[inst.operands[2]] = true;
      return;
    }
    const bool passes = tile::as_scalar(op) || op == tile::Op::Broadcast || op == tile::Op::Load;
    if (passes && single[inst.results[0]] && !whole[inst.results[0]]) {
      mark(inst.operands, single);
    } else {
      mark(inst.operands, whole);
      mark(inst.results, whole);
    }
  });
  for (std::size_t v = 0; v < single.size(); ++v) single[v] = single[v] && !whole[v];
  return single;
}

int steps_in_word(const tile::Function& function, const ssa::Inst& inst, const Machine& machine) {
  if (static_cast<tile::Op>(inst.op) != tile::Op::Dot) return 0;
  const tile::Type& a = function.type(inst.operands[0]);
  const int steps = loop::steps_in_word(a.dtype, function.type(inst.operands[1]).dtype, function.type(inst.operands[2]).dtype);
  return steps == 0 || a.shape[1] % steps != 0 || (steps == 2 && machine.dot2s() == 0) ? 0 : steps;
}

std::vector<int> used_as_words(const tile::Function& function, const Machine& machine) {
  std::vector<int> loaded(function.types.size()), words(function.types.size());
  std::vector<bool> other(function.types.size());
  mark(function.body.yields, other);
  visit(function.body, [&](const ssa::Inst& inst) {
    for (const ssa::Block& region : inst.regions) mark(region.yields, other);
    const int steps = is_tile_dot(function, inst, machine) ? 0 : steps_in_word(function, inst, machine);
    for (std::size_t i = 0; i < inst.operands.size(); ++i) {
      if (steps > 0 && i == 1) {
        words[inst.operands[i]] = steps;
      } else {
        other[inst.operands[i]] = true;
      }
    }
    if (static_cast<tile::Op>(inst.op) == tile::Op::Load && !other[inst.results[0]]) loaded[inst.results[0]] = words[inst.results[0]];
  });
  return loaded;
}

Lowering::Lowering(const tile::Function& function, const Machine& machine)
    : f_(function),
      machine_(machine),
      tiles_(tile_uses(function, machine)),
      b_(function.name),
      math_(b_),
      by_element_(used_by_element(function, machine)),
      words_(used_as_words(function, machine)),
      values_(function.types.size()) {
  for (const ssa::Buffer& buffer : f_.buffers) b_.add_buffer(buffer);
  for (int i = 0; i < f_.sizes; ++i) b_.add_size();
  choose_width(machine);
}

// The widest dtype among buffers and tiles decides; i64 and bool only when memory holds them, as
// they mostly are indices and masks.
void Lowering::choose_width(const Machine& machine) {
  int widest = 8;
  for (const ssa::Buffer& buffer : f_.buffers) widest = std::max(widest, bits(buffer.dtype));
  for (const tile::Type& type : f_.types) {
    if (type.rank == 2 && type.dtype != DType::I64 && type.dtype != DType::Bool)
      widest = std::max(widest, bits(type.dtype));
  }
  element_bits_ = widest;
  width_ = std::max(1, machine.lanes(widest));
  has_fma_ = machine.has_fma;
}

Result<Function> Lowering::run() {
  for (std::size_t v = 0; v < f_.types.size(); ++v) {
    const Layout l = layout(static_cast<ValueId>(v));
    const std::int64_t registers = std::int64_t{f_.types[v].shape[0]} * l.count;
    if (registers > kMaxRegisters) {
      return unsupported("tile-too-large", fmt::format("a tile of {} takes {} registers",
                                                       str(f_.types[v]), registers))
          .at(f_.name)
          .expected(fmt::format("at most {}", kMaxRegisters));
    }
  }
  block(f_.body);
  Function kernel = b_.finish();
  eliminate_dead(kernel);
  return kernel;
}

void Lowering::block(const ssa::Block& block) {
  for (const Inst& inst : block.insts) this->inst(inst);
}

void Lowering::inst(const Inst& inst) {
  const tile::Op op = static_cast<tile::Op>(inst.op);
  const auto define = [&](Value v) { values_[inst.results[0]] = std::move(v); };
  const auto define_index = [&](std::vector<Sum> rows, Sum lane = {}) {
    Value v;
    v.form = Value::Form::Index;
    v.type = type(inst.results[0]);
    v.rows = std::move(rows);
    v.lane = std::move(lane);
    define(std::move(v));
  };
  if (const auto scalar = tile::as_scalar(op)) return define(elementwise(inst, *scalar));
  if (const auto combine = tile::as_reduce(op)) return define(reduce(inst, *combine));
  if (const auto combine = tile::as_scan(op)) return define(scan(inst, *combine));
  if (const auto combine = tile::as_atomic(op)) return define(atomic(inst, *combine));
  switch (op) {
    case tile::Op::Const: {
      const tile::Type& t = type(inst.results[0]);
      if (t.dtype == DType::I64) return define_index({math_.constant(inst.imm)});
      return define(uniform_value(t, {is_float(t.dtype) ? b_.constant(t.dtype, inst.fimm)
                                                        : b_.constant_i64(inst.imm, t.dtype)}));
    }
    case tile::Op::Size:
      return define_index({math_.term(b_.size(static_cast<int>(inst.imm)), {1, 0, true})});
    case tile::Op::ProgramId:
      return define_index({math_.term(b_.program_id(), {1, 0, true})});
    case tile::Op::Iota: {
      const int extent = type(inst.results[0]).shape[inst.imm];
      if (inst.imm == 1)
        return define_index({math_.constant(0)}, math_.constant(extent > 1 ? 1 : 0));
      std::vector<Sum> rows;
      for (int row = 0; row < extent; ++row) rows.push_back(math_.constant(row));
      return define_index(std::move(rows));
    }
    case tile::Op::Broadcast: {
      Value v = in(inst, 0);
      v.type = type(inst.results[0]);
      return define(std::move(v));
    }
    case tile::Op::Load:
      return define(load(inst));
    case tile::Op::Store:
      return store(inst);
    case tile::Op::Dot:
      return define(dot(inst));
    case tile::Op::Transpose:
      return define(transpose(inst));
    case tile::Op::Check:
      for (const ValueId ok : expand({inst.operands[0]})) b_.check(ok, static_cast<int>(inst.imm));
      return;
    case tile::Op::For:
      return lower_for(inst);
    case tile::Op::If:
      return lower_if(inst);
    default:
      WEFT_CHECK(false, "a tile op without a lowering");
  }
}

std::vector<ValueId> Lowering::expand(const std::vector<ValueId>& values) {
  std::vector<ValueId> registers;
  for (const ValueId v : values) {
    const Layout to = natural_layout(type(v));
    const Value& value = in_vectors(v);
    for (int row = 0; row < type(v).shape[0]; ++row) {
      for (int i = 0; i < to.count; ++i) registers.push_back(at(value, row, i, to));
    }
  }
  return registers;
}

std::vector<ValueId> Lowering::carried(const std::vector<ValueId>& values, const std::vector<ValueId>& as) {
  std::vector<ValueId> registers;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::vector<ValueId> one = tiles_.sums[as[k]] ? sum_tiles(values[k]) : expand({values[k]});
    registers.insert(registers.end(), one.begin(), one.end());
  }
  return registers;
}

void Lowering::define_expanded(const std::vector<ValueId>& values, std::vector<ValueId> registers, bool carried) {
  std::size_t next = 0;
  for (const ValueId v : values) {
    const Layout from = natural_layout(type(v));
    const bool tiles = carried && tiles_.sums[v];
    const std::size_t count = tiles ? type(v).elements() / (kTileRows * kTileRows) : static_cast<std::size_t>(type(v).shape[0]) * from.count;
    const auto first = registers.begin() + static_cast<std::ptrdiff_t>(next);
    std::vector<ValueId> own(first, first + static_cast<std::ptrdiff_t>(count));
    values_[v] = tiles ? tiles_value(type(v), std::move(own)) : registers_value(type(v), type(v).shape[0], from, std::move(own));
    next += count;
  }
}

void Lowering::lower_for(const Inst& inst) {
  const ssa::Block& body = inst.regions[0];
  const Sum lo = values_[inst.operands[0]].rows[0], step = values_[inst.operands[2]].rows[0];
  const std::vector<ValueId> inits(inst.operands.begin() + 3, inst.operands.end());
  const std::vector<ValueId> args(body.args.begin() + 1, body.args.end());
  std::vector<ValueId> first = carried(inits, args);
  auto loop = b_.begin_for(math_.value(lo), scalar_of(in(inst, 1)), math_.value(step), std::move(first));

  Value counter;
  counter.form = Value::Form::Index;
  counter.type = type(body.args[0]);
  const Facts from = math_.facts(lo), by = math_.facts(step);
  counter.rows = {math_.term(
      loop.iv, {std::gcd(from.divisor, by.divisor), b_.depth(), from.counted && by.counted})};
  values_[body.args[0]] = std::move(counter);
  define_expanded(args, std::move(loop.carried), true);
  block(body);
  std::vector<ValueId> next = carried(body.yields, args);
  define_expanded(inst.results, b_.end_for(std::move(next)), true);
}

void Lowering::lower_if(const Inst& inst) {
  std::vector<tile::Type> results;
  for (const ValueId v : inst.results) {
    const Layout to = natural_layout(type(v));
    const DType t = type(v).dtype;
    const tile::Type one = to.lanes == 0 ? tile::Type::scalar(t) : tile::Type::vector(t, to.lanes);
    results.insert(results.end(), static_cast<std::size_t>(type(v).shape[0]) * to.count, one);
  }
  b_.begin_if(scalar_of(in(inst, 0)), std::move(results));
  block(inst.regions[0]);
  b_.begin_else(expand(inst.regions[0].yields));
  block(inst.regions[1]);
  define_expanded(inst.results, b_.end_if(expand(inst.regions[1].yields)));
}

}  // namespace simd

Result<Function> lower_simd(const tile::Function& function, const Machine& machine) {
  WEFT_TRY(tile::verify(function));
  Function kernel = WEFT_TRY(simd::Lowering(function, machine).run());
  if (tile_registers(kernel)) return kernel;
  Machine other = machine;  // more sums than the matrix unit has room for
  other.has_amx_bf16 = other.has_amx_int8 = false;
  return simd::Lowering(function, other).run();
}

}  // namespace weft::kernel
