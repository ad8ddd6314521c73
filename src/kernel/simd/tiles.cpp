// Dots on the processor's matrix unit. Sums stay in its tiles over the loops that carry them; they pass through on-chip
// memory to whatever else uses them. Operands come straight from memory where their rows lie evenly, else through on-chip
// memory as well.
#include "kernel/simd/tiles.h"

#include <functional>
#include <set>

#include "kernel/simd/lowering.h"

namespace weft::kernel {
namespace simd {
namespace {

using tile::Op;

int bytes_of(DType t) { return bits(t) / 8; }
int steps_of(DType t) { return kTileRowBytes / bytes_of(t); }
int side_of(DType t) { return 4 / bytes_of(t); }  // steps of a column that lie side by side
bool is_byte(DType t) { return t == DType::U8 || t == DType::I8; }

void walk(const ssa::Block& block, const std::function<void(const ssa::Inst&)>& before) {
  for (const ssa::Inst& inst : block.insts) {
    before(inst);
    for (const ssa::Block& region : inst.regions) walk(region, before);
  }
}

ssa::Buffer tile_buffer(DType t) { return {t, ssa::Space::OnChip, true, true, kTileRegisters * matrix_tile(t).elements()}; }

// Back along loops, until nothing more is found.
void mark_carried(const tile::Function& f, std::vector<bool>& sums) {
  bool more = true;
  while (more) {
    more = false;
    const auto add = [&](ssa::ValueId v) {
      more = more || !sums[v];
      sums[v] = true;
    };
    walk(f.body, [&](const ssa::Inst& inst) {
      if (static_cast<Op>(inst.op) != Op::For) return;
      for (std::size_t k = 0; k < inst.results.size(); ++k) {
        const ssa::ValueId arg = inst.regions[0].args[k + 1];
        if (!sums[arg]) continue;
        for (const ssa::ValueId v : {inst.operands[k + 3], inst.regions[0].yields[k], inst.results[k]}) add(v);
      }
    });
  }
}

}  // namespace

bool is_tile_dot(const tile::Function& f, const ssa::Inst& inst, const Machine& machine) {
  if (static_cast<Op>(inst.op) != Op::Dot) return false;
  const tile::Type &a = f.type(inst.operands[0]), &b = f.type(inst.operands[1]), &sum = f.type(inst.operands[2]);
  const bool halves = machine.has_amx_bf16 && a.dtype == DType::BF16 && b.dtype == DType::BF16 && sum.dtype == DType::F32;
  const bool bytes = machine.has_amx_int8 && is_byte(a.dtype) && is_byte(b.dtype) && sum.dtype == DType::I32;
  if (!(halves || bytes) || a.shape[1] != steps_of(a.dtype)) return false;
  const int rows = sum.shape[0] / kTileRows, columns = sum.shape[1] / kTileRows;
  return sum.shape[0] % kTileRows == 0 && sum.shape[1] % kTileRows == 0 && rows * columns + rows + columns <= kTileRegisters;
}

TileUses tile_uses(const tile::Function& f, const Machine& machine) {
  const std::size_t n = f.types.size();
  TileUses uses{std::vector<bool>(n), std::vector<bool>(n), std::vector<bool>(n), std::vector<bool>(n)};
  if (!machine.has_amx_bf16 && !machine.has_amx_int8) return uses;
  std::vector<bool> other(n), loaded(n);
  const auto mark = [](const std::vector<ssa::ValueId>& values, std::vector<bool>& marks) {
    for (const ssa::ValueId v : values) marks[v] = true;
  };
  walk(f.body, [&](const ssa::Inst& inst) {
    const Op op = static_cast<Op>(inst.op);
    for (const ssa::Block& region : inst.regions) mark(region.yields, other);
    if (op == Op::Const && inst.imm == 0 && inst.fimm == 0) uses.zero[inst.results[0]] = true;
    if (op == Op::Broadcast) uses.zero[inst.results[0]] = uses.zero[inst.operands[0]];
    if (op == Op::Load) loaded[inst.results[0]] = true;
    if (!is_tile_dot(f, inst, machine)) return mark(inst.operands, other);
    uses.left[inst.operands[0]] = uses.right[inst.operands[1]] = true;
    uses.sums[inst.operands[2]] = uses.sums[inst.results[0]] = true;
    other[inst.operands[2]] = true;
  });
  for (std::size_t v = 0; v < n; ++v) {
    const bool one = loaded[v] && !other[v] && uses.left[v] != uses.right[v];
    uses.left[v] = uses.left[v] && one;
    uses.right[v] = uses.right[v] && one;
  }
  mark_carried(f, uses.sums);
  return uses;
}

}  // namespace simd

std::vector<ssa::Buffer> added_buffers(const tile::Function& function, const Machine& machine) {
  std::set<DType> passing;
  simd::walk(function.body, [&](const ssa::Inst& inst) {
    if (!simd::is_tile_dot(function, inst, machine)) return;
    for (const ssa::ValueId v : inst.operands) passing.insert(function.type(v).dtype);
  });
  std::vector<ssa::Buffer> buffers;
  for (const DType t : passing) buffers.push_back(simd::tile_buffer(t));
  return buffers;
}

namespace simd {

// The step from each of the rows to the next one, where it is the same for all.
std::optional<Sum> Lowering::even_step(const std::vector<Sum>& rows, int every) {
  const std::size_t n = static_cast<std::size_t>(every);
  if (rows.size() <= n) return std::nullopt;
  const Sum step = math_.sub(rows[n], rows[0]);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (r >= n && !(rows[r] == math_.add(rows[r - n], step))) return std::nullopt;
    if (r % n != 0 && !(rows[r] == math_.add(rows[r / n * n], math_.constant(static_cast<std::int64_t>(r % n))))) return std::nullopt;
  }
  return step;
}

std::optional<Value> Lowering::load_tiles(const Access& access, const tile::Type& type, bool right) {
  const int every = right ? side_of(type.dtype) : 1, lines = right ? type.shape[1] / kTileRows : type.shape[0] / kTileRows;
  const Lines& index = access.index;
  if (access.mask || access.index.form != Value::Form::Index || !index.lane.is(every)) return std::nullopt;
  if (static_cast<int>(index.rows.size()) != type.shape[0]) return std::nullopt;
  const auto step = even_step(index.rows, every);
  if (!step) return right ? std::nullopt : std::optional(load_uneven(access, type));
  std::vector<ValueId> starts;
  for (int n = 0; n < lines; ++n) {
    const Sum first = right ? math_.add(index.rows[0], math_.constant(std::int64_t{n} * kTileRows * every)) : index.rows[n * kTileRows];
    starts.push_back(math_.value(first));
  }
  return later(access, type, [this, buffer = access.buffer, starts = std::move(starts), stride = math_.value(*step)] {
    std::vector<ValueId> tiles;
    for (const ValueId start : starts) tiles.push_back(b_.load_tile(buffer, start, stride));
    return tiles;
  });
}

// Operands are loaded when a dot needs them and the one before did not: sums leave few registers, and a tile that several
// dots use is sooner loaded again than kept. What kernels write is read where the program reads it.
Value Lowering::later(const Access& access, const tile::Type& type, std::function<std::vector<ValueId>()> load) {
  if (f_.buffers[access.buffer].written) return tiles_value(type, load());
  Value v = tiles_value(type, {});
  v.operand = static_cast<int>(operands_.size());
  operands_.push_back(std::move(load));
  return v;
}

std::vector<ValueId> Lowering::operand_tiles(const Value& v) {
  if (v.operand < 0) return v.registers;
  if (const auto found = loaded_.find(v.operand); found != loaded_.end() && v.depth == b_.depth()) return found->second;
  return operands_[v.operand]();
}

// Whole rows, wherever each lies.
Value Lowering::load_uneven(const Access& access, const tile::Type& type) {
  std::vector<ValueId> at;
  for (const Sum& row : access.index.rows) at.push_back(math_.value(row));
  return later(access, type, [this, buffer = access.buffer, type, at = std::move(at)] {
    std::vector<ValueId> rows;
    for (const ValueId row : at) rows.push_back(b_.load(buffer, row, type.shape[1]));
    return through_scratch(type.dtype, rows, type.shape[1], row_starts(type));
  });
}

std::vector<int> Lowering::row_starts(const tile::Type& type) {
  std::vector<int> starts;
  for (int r = 0; r < type.shape[0]; r += kTileRows) starts.push_back(r * type.shape[1]);
  return starts;
}

Value Lowering::tiles_value(const tile::Type& type, std::vector<ValueId> tiles) {
  Value v;
  v.form = Value::Form::Tiles;
  v.type = type;
  v.registers = std::move(tiles);
  v.depth = b_.depth();
  return v;
}

int Lowering::tile_scratch(DType dtype) {
  const auto [found, fresh] = scratch_.try_emplace(dtype, -1);
  if (fresh) found->second = b_.add_buffer(tile_buffer(dtype));
  return found->second;
}

// Registers row after row, read again by `lines` tiles whose rows are `stride` elements apart.
std::vector<ValueId> Lowering::through_scratch(DType dtype, const std::vector<ValueId>& registers, int stride,
                                               const std::vector<int>& starts) {
  const int buffer = tile_scratch(dtype);
  std::int64_t at = 0;
  for (const ValueId v : registers) {
    b_.store(buffer, v, b_.constant_i64(at));
    at += b_.type(v).lanes();
  }
  std::vector<ValueId> tiles;
  for (const int start : starts) tiles.push_back(b_.load_tile(buffer, b_.constant_i64(start), b_.constant_i64(stride)));
  return tiles;
}

std::vector<ValueId> Lowering::sum_tiles(ValueId v) {
  const Value& sum = values_[v];
  if (sum.form == Value::Form::Tiles) return sum.registers;
  const tile::Type& t = type(v);
  const int rows = t.shape[0] / kTileRows, columns = t.shape[1] / kTileRows;
  std::vector<ValueId> tiles;
  if (tiles_.zero[v]) {
    for (int n = 0; n < rows * columns; ++n) tiles.push_back(b_.zero_tile(t.dtype));
    return tiles;
  }
  std::vector<int> starts;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) starts.push_back(r * kTileRows * t.shape[1] + c * kTileRows);
  }
  return through_scratch(t.dtype, expand({v}), t.shape[1], starts);
}

std::vector<ValueId> Lowering::left_tiles(ValueId v) {
  if (values_[v].form == Value::Form::Tiles) return operand_tiles(values_[v]);
  return through_scratch(type(v).dtype, expand({v}), type(v).shape[1], row_starts(type(v)));
}

// The steps of a column that a word holds, from so many rows.
std::vector<ValueId> Lowering::right_tiles(ValueId v) {
  if (values_[v].form == Value::Form::Tiles) return operand_tiles(values_[v]);
  const tile::Type& t = type(v);
  const int side = side_of(t.dtype);
  const Layout to = natural_layout(t);
  std::vector<ValueId> registers;
  for (int r = 0; r < t.shape[0]; r += side) {
    for (int i = 0; i < to.count; ++i) {
      std::vector<ValueId> rows;
      for (int k = 0; k < side; ++k) rows.push_back(at(values_[v], r + k, i, to));
      for (int done = 1; done < side; done *= 2) rows = interleaved(rows);
      registers.insert(registers.end(), rows.begin(), rows.end());
    }
  }
  std::vector<int> starts;
  for (int c = 0; c < t.shape[1]; c += kTileRows) starts.push_back(c * side);
  return through_scratch(t.dtype, registers, t.shape[1] * side, starts);
}

Value Lowering::dot_in_tiles(const Inst& inst) {
  const std::vector<ValueId> a = left_tiles(inst.operands[0]), b = right_tiles(inst.operands[1]);
  std::vector<ValueId> sums = sum_tiles(inst.operands[2]);
  loaded_.clear();
  for (const auto& [v, tiles] : {std::pair(inst.operands[0], &a), {inst.operands[1], &b}}) {
    if (values_[v].operand >= 0) loaded_[values_[v].operand] = *tiles;
  }
  for (std::size_t r = 0; r < a.size(); ++r) {
    for (std::size_t c = 0; c < b.size(); ++c) {
      ValueId& sum = sums[r * b.size() + c];
      sum = b_.multiply_tiles(a[r], b[c], sum);
    }
  }
  return tiles_value(type(inst.results[0]), std::move(sums));
}

// Sums in vectors. Where they were made they are so for all that follows.
const Value& Lowering::spread(ValueId v) {
  const Value& tiles = values_[v];
  if (const auto found = spread_.find(v); found != spread_.end() && b_.depth() == found->second.depth) return found->second;
  const tile::Type& t = tiles.type;
  const int buffer = tile_scratch(t.dtype), columns = t.shape[1] / kTileRows;
  for (std::size_t n = 0; n < tiles.registers.size(); ++n) {
    const std::int64_t first = static_cast<std::int64_t>(n) / columns * kTileRows * t.shape[1] + static_cast<std::int64_t>(n) % columns * kTileRows;
    b_.store_tile(buffer, tiles.registers[n], b_.constant_i64(first), b_.constant_i64(t.shape[1]));
  }
  const Layout to = natural_layout(t);
  std::vector<ValueId> registers;
  for (int n = 0; n < t.shape[0] * to.count; ++n) registers.push_back(b_.load(buffer, b_.constant_i64(std::int64_t{n} * to.lanes), to.lanes));
  Value v_in_vectors = registers_value(t, t.shape[0], to, std::move(registers));
  v_in_vectors.depth = tiles.depth == b_.depth() ? tiles.depth : -1;
  return spread_[v] = std::move(v_in_vectors);
}

// Tiles go to memory as they are, where their rows lie evenly.
bool Lowering::store_tiles(const Inst& inst) {
  const Value &value = values_[inst.operands[0]], &index = in(inst, 1);
  const int buffer = static_cast<int>(inst.imm);
  if (value.form != Value::Form::Tiles || inst.operands.size() > 2 || f_.buffers[buffer].dtype != value.type.dtype) return false;
  if (index.form != Value::Form::Index || !index.lane.is(1) || static_cast<int>(index.rows.size()) != value.type.shape[0]) return false;
  const auto step = even_step(index.rows, 1);
  if (!step) return false;
  const int columns = value.type.shape[1] / kTileRows;
  for (std::size_t n = 0; n < value.registers.size(); ++n) {
    const std::size_t row = n / columns * kTileRows;
    const Sum first = math_.add(index.rows[row], math_.constant(static_cast<std::int64_t>(n % columns * kTileRows)));
    b_.store_tile(buffer, value.registers[n], math_.value(first), math_.value(*step));
  }
  return true;
}

}  // namespace simd
}  // namespace weft::kernel
