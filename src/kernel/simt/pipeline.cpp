// Loops whose products read blocks that were copied from memory to shared memory some iterations before. A block has a slot;
// an iteration waits for its own, lets all threads arrive (who are then done with the slot before), asks for a later one
// into that slot, and works. Where all its work is a product of four warps that adds to what the loop carries, it waits for
// the product of the iteration before only, whose slot is then free one iteration later.
//
// Such a copy passes no register, so how it is spread over the threads is its own: runs as wide as the machine copies.
// What its index is made of is lowered once more in that spread, for the iteration that is asked for.
#include <algorithm>
#include <bit>
#include <numeric>

#include "cost/pipeline.h"
#include "kernel/simt/lowering.h"

namespace weft::kernel::simt {
namespace {

constexpr int kMostCopies = 32;    // of a thread for one tile
constexpr int kScratch = 16;       // numbers of the buffers, from
constexpr int kLeastCopyBits = 32;

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

bool in_list(const ssa::Block& block, const ssa::Inst* inst) {
  return inst != nullptr && std::any_of(block.insts.begin(), block.insts.end(), [&](const ssa::Inst& i) { return &i == inst; });
}

void collect_defined(const ssa::Block& block, std::set<ValueId>& values) {
  values.insert(block.args.begin(), block.args.end());
  for (const ssa::Inst& inst : block.insts) {
    values.insert(inst.results.begin(), inst.results.end());
    for (const ssa::Block& region : inst.regions) collect_defined(region, values);
  }
}

Spread copying_spread(const Spread& spread, const tile::Type& type, int vector) {
  Spread s;
  s.vector = vector, s.threads = spread.threads, s.warp = spread.warp;
  s.columns = std::min(s.threads, log2_floor(type.shape[1]) - vector);
  s.rows = std::min(s.threads - s.columns, log2_floor(type.shape[0]));
  return s;
}

}  // namespace

// What `v` is made of besides the loop's counter and scalars from outside, in order. False: not of index arithmetic alone.
bool Lowering::slice(ValueId v, const std::set<ValueId>& inside, ValueId counter, std::vector<const Inst*>& into) const {
  if (v == counter) return true;
  const Inst* inst = defining_[v];
  if (!inside.contains(v) && type(v).elements() == 1) return true;
  if (inst == nullptr || !f_.info(*inst).pure) return false;
  if (std::find(into.begin(), into.end(), inst) != into.end()) return true;
  const auto op = static_cast<tile::Op>(inst->op);
  const bool simple = tile::as_scalar(op) || op == tile::Op::Const || op == tile::Op::Size || op == tile::Op::ProgramId ||
                      op == tile::Op::Iota || op == tile::Op::Broadcast;
  if (!simple) return false;
  for (const ValueId operand : inst->operands) {
    if (!slice(operand, inside, counter, into)) return false;
  }
  into.push_back(inst);
  return true;
}

// The load that fills an operand of a product of the loop's own list, if nobody else uses it and what it reads stays.
const ssa::Inst* Lowering::load_to_copy(const ssa::Block& body, const Reading& r) const {
  const Inst* load = defining_[r.source];
  if (!in_list(body, load) || static_cast<tile::Op>(load->op) != tile::Op::Load || users_[r.source].size() != 1) return nullptr;
  if (r.turned && users_[users_[r.source][0]->results[0]].size() != 1) return nullptr;
  const ssa::Buffer& buffer = f_.buffers[load->imm];
  const tile::Type& t = type(r.source);
  const bool fits = is_power_of_two(t.shape[0]) && is_power_of_two(t.shape[1]) && !is_bool(t.dtype) && !r.lies_turned;
  return fits && buffer.space == ssa::Space::Memory && buffer.read && !buffer.written ? load : nullptr;
}

// In the copy's spread, with its index and mask at the iteration.
void Lowering::at_iteration(const Copy& copy, ValueId counter, const Sum& iteration, const std::function<void()>& then) {
  const Spread spread = std::exchange(spread_, copy.spread);
  std::map<ValueId, Value> kept;
  const auto keep = [&](ValueId v) { kept.emplace(v, values_[v]); };
  keep(counter);
  for (const Inst* inst : copy.made_of) keep(inst->results[0]);
  values_[counter] = index_value(type(counter), {{iteration}, {}});
  for (const Inst* inst : copy.made_of) this->inst(*inst);
  then();
  for (auto& [v, value] : kept) values_[v] = std::move(value);
  spread_ = spread;
}

// Calls visit(row, index, from, mask) for what this thread copies; false: some of it is no run of the machine's.
bool Lowering::each_run(const Copy& copy, const Value* runs, const std::function<void(int row, int i, ValueId from, ValueId mask)>& visit) {
  const tile::Type shape = type(copy.load->results[0]);
  Value index = in(*copy.load, 0);
  index.type = shape.with(DType::I64);
  std::optional<Value> mask;
  if (copy.load->operands.size() > 1) mask = in(*copy.load, 1);
  if (runs != nullptr) {
    std::vector<Value> operands{mask.value_or(*runs), *runs};
    for (Value& v : operands) v.type = shape.with(DType::Bool);
    mask = mask ? elementwise(ScalarOp::And, operands, shape.with(DType::Bool)) : *runs;
  }
  if (mask) mask->type = shape.with(DType::Bool);
  const Share s = share(shape);
  for (int row = 0; row < s.rows; ++row) {
    for (int i = 0; i < s.count; ++i) {
      if (s.lanes > 1 && !aligned(index, row, i)) return false;
      const ValueId asked = mask ? at(*mask, row, i) : -1, whole = asked < 0 ? -1 : splat_scalar(asked);
      if (asked >= 0 && whole < 0) return false;
      visit(row, i, s.lanes > 1 ? math_.value(first_index(index, row, i)) : at(index, row, i), whole);
    }
  }
  return true;
}

// The widest runs that the index allows, tried on a counter of which only the facts are known.
bool Lowering::choose_runs(Copy& copy, const Inst& loop, const Reading& r) {
  const tile::Type& t = type(r.source);
  const Facts from = math_.facts(in(loop, 0).rows[0]), by = math_.facts(in(loop, 2).rows[0]);
  const ValueId unknown = b_.append(Op::ThreadId, {}, {Type::scalar(DType::I64)}, 1 + loop.regions[0].args[0])[0];
  const Sum counter = math_.term(unknown, {std::gcd(from.divisor, by.divisor), b_.depth(), from.counted && by.counted, from.natural && by.natural});
  for (int run = std::min(log2_floor(machine_.copy_bytes * 8 / bits(t.dtype)), log2_floor(t.shape[1])); run >= 0; --run) {
    if (bits(t.dtype) << run < kLeastCopyBits) return false;
    copy.spread = copying_spread(spread_, t, run);
    if (share_of(copy.spread, t).registers() > kMostCopies) return false;
    bool all = false;
    at_iteration(copy, loop.regions[0].args[0], counter, [&] { all = each_run(copy, nullptr, [](int, int, ValueId, ValueId) {}); });
    if (!all) continue;
    copy.layout = layout_of(copy.spread, t);
    copy.lying.offsets = lying_offsets(r, copy.layout, run);
    return true;
  }
  return false;
}

std::optional<Lowering::Pipeline> Lowering::plan_pipeline(const Inst& loop) {
  if (machine_.copy_bytes == 0 || spread_.threads == 0 || most_stages_ < 2) return std::nullopt;
  const ssa::Block& body = loop.regions[0];
  std::set<ValueId> inside;
  collect_defined(body, inside);
  Pipeline p;
  double cycles = 0, bytes = 0;
  for (const Inst& dot : body.insts) {
    if (static_cast<tile::Op>(dot.op) != tile::Op::Dot || type(dot.operands[0]).shape[1] == 1) continue;
    const double products = static_cast<double>(type(dot.results[0]).elements()) * type(dot.operands[0]).shape[1];
    const double of_units = (suits_groups(dot) ? machine_.group_matrix_rate : machine_.matrix_rate) * 16 / bits(type(dot.operands[0]).dtype);
    cycles += products / (suits_groups(dot) || suits_matrix_units(dot) ? of_units : machine_.group_lanes);
    for (const int side : {0, 1}) {
      const Reading r = reading(dot, side);
      Copy copy;
      copy.load = load_to_copy(body, r);
      if (copy.load == nullptr) continue;
      const bool known = std::all_of(copy.load->operands.begin(), copy.load->operands.end(),
                                     [&](ValueId v) { return slice(v, inside, body.args[0], copy.made_of); });
      if (!known || !choose_runs(copy, loop, r)) continue;
      bytes += static_cast<double>(type(r.source).elements()) * bits(type(r.source).dtype) / 8;
      p.fenced = p.fenced || r.how == Reading::How::Blocks;
      p.copies.push_back(std::move(copy));
    }
  }
  const auto room = static_cast<double>(machine_.shared_bytes);
  p.stages = std::min(most_stages_, cost::copy_stages(machine_, bytes, cycles, room));
  const int one_more = std::min({most_stages_, p.stages + 1, static_cast<int>(room / std::max(bytes, 1.0))});
  if (one_more > 2 && choose_flying(p, loop)) p.stages = one_more;
  if (p.stages < 2) return std::nullopt;
  for (std::size_t i = 0; i < p.copies.size(); ++i) {
    Copy& copy = p.copies[i];
    const DType t = type(copy.load->results[0]).dtype;
    copy.elements = std::int64_t{1} << copy.lying.offsets.outputs();
    copy.lying.buffer = scratch(t, kScratch + static_cast<int>(i), copy.elements * p.stages);
  }
  return p;
}

// The only product of the loop's own list, if it reads nothing but copies, adds to a value that the loop carries, and nobody
// else uses either.
bool Lowering::choose_flying(Pipeline& p, const Inst& loop) const {
  const ssa::Block& body = loop.regions[0];
  const Inst* only = nullptr;
  for (const Inst& inst : body.insts) {
    if (!inst.regions.empty()) return false;
    if (static_cast<tile::Op>(inst.op) != tile::Op::Dot) continue;
    if (only != nullptr) return false;
    only = &inst;
  }
  if (only == nullptr || p.copies.size() != 2 || !suits_groups(*only)) return false;
  const ValueId sum = only->operands[2], result = only->results[0];
  const auto carried = std::find(body.args.begin() + 1, body.args.end(), sum);
  if (carried == body.args.end() || users_[sum].size() != 1 || users_[result].size() != 1) return false;
  const auto number = static_cast<std::size_t>(carried - body.args.begin() - 1);
  if (body.yields[number] != result) return false;
  p.flying = only, p.sum = number;
  return true;
}

std::vector<ValueId> Lowering::expand_carried(const std::optional<Pipeline>& p, const std::vector<ValueId>& values, const std::vector<ValueId>& sums) {
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::vector<ValueId> part = p && p->flying != nullptr && p->sum == i ? sums : expand({values[i]});
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<ValueId> Lowering::define_carried(const std::optional<Pipeline>& p, const std::vector<ValueId>& values, const std::vector<ValueId>& registers) {
  std::vector<ValueId> sums;
  auto next = registers.begin();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool flies = p && p->flying != nullptr && p->sum == i;
    const Share s = share(type(values[i]));
    const auto end = next + (flies ? s.rows / 2 : s.registers());
    if (flies) sums.assign(next, end);
    else define_expanded({values[i]}, {next, end});
    next = end;
  }
  return sums;
}

// Asks for the blocks of an iteration, if it runs.
void Lowering::ask(const Pipeline& p, const Inst& loop, const Sum& iteration, ValueId slot) {
  const tile::Type one = tile::Type::scalar(DType::I64);
  std::vector<Value> ends{index_value(one, {{iteration}, {}}), in(loop, 1)};
  const Value runs = elementwise(ScalarOp::Lt, ends, one.with(DType::Bool));
  for (const Copy& copy : p.copies) {
    at_iteration(copy, loop.regions[0].args[0], iteration, [&] {
      const Share s = share(type(copy.load->results[0]));
      Lying lying = copy.lying;
      lying.slot = b_.mul(slot, b_.constant_i64(copy.elements));
      const auto to = offsets_of(lying, copy.layout);
      const ssa::CopyImm imm{lying.buffer, static_cast<int>(copy.load->imm), s.lanes};
      const int count = std::bit_ceil(static_cast<unsigned>(s.count));
      const ValueId mine = owner(s);
      if (mine >= 0) b_.begin_if(mine, {});
      each_run(copy, &runs, [&](int row, int i, ValueId from, ValueId mask) {
        b_.copy_async(imm, to(static_cast<Bits>((row * count + i) * s.lanes)), from, mask);
      });
      if (mine >= 0) b_.begin_else({}), b_.end_if({});
    });
  }
  b_.commit_copies();
}

void Lowering::begin_pipeline(const Pipeline& p, const Inst& loop) {
  for (const Copy& copy : p.copies) before_write(copy.lying.buffer, false);
  Sum iteration = in(loop, 0).rows[0];
  for (int slot = 0; slot + 1 + p.behind() < p.stages; ++slot) {
    ask(p, loop, iteration, b_.constant_i64(slot));
    iteration = math_.add(iteration, in(loop, 2).rows[0]);
  }
}

// At the start of an iteration, whose blocks are in `slot`; nobody reads those in `free` any more.
void Lowering::advance_pipeline(const Pipeline& p, const Inst& loop, ValueId slot, ValueId free) {
  b_.wait_copies(p.stages - 2 - p.behind());
  if (p.fenced) b_.fence_shared();
  barrier();
  const Sum ahead = math_.scale(in(loop, 2).rows[0], p.stages - 1 - p.behind());
  ask(p, loop, math_.add(values_[loop.regions[0].args[0]].rows[0], ahead), b_.cast(free, DType::I64));
  for (const Copy& copy : p.copies) {
    Lying lying = copy.lying;
    lying.slot = b_.mul(b_.cast(slot, DType::I64), b_.constant_i64(copy.elements));
    lying_[copy.load->results[0]] = std::move(lying);
  }
}

ValueId Lowering::slot_after(const Pipeline& p, ValueId slot) {
  const auto number = [&](int n) { return b_.constant_i64(n, DType::I32); };
  const ValueId next = b_.add(slot, number(1));
  if (is_power_of_two(p.stages)) return b_.scalar(ScalarOp::And, {next, number(p.stages - 1)});
  return b_.select(b_.scalar(ScalarOp::Ge, {next, number(p.stages)}), number(0), next);
}

void Lowering::end_pipeline(const Pipeline& p) {
  b_.wait_copies(0);
  for (const Copy& copy : p.copies) {
    hazards_.written(copy.lying.buffer, place_);
    lying_.erase(copy.load->results[0]);
  }
}

}  // namespace weft::kernel::simt
