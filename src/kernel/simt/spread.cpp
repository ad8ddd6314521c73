#include "kernel/simt/spread.h"

#include <algorithm>
#include <bit>

#include "kernel/kernel.h"
#include "kernel/simt/lower.h"

namespace weft::kernel::simt {
namespace {

constexpr int kBankedBytes = 128;     // that the banks of shared memory serve at once
constexpr int kAccessBits = 128;      // the widest access of one thread
constexpr int kProductBits = 4;       // log2 of a thread's accumulators of a product
constexpr int kMostVectorBits = 2;
constexpr int kWarpProductBits = 10;  // log2 of a warp's accumulators of a product by matrix units, at least
constexpr int kGroupWarpBits = 2;
constexpr int kLeastColumnBits = 4;   // log2 of its columns then, at least: two blocks of 8 are loaded at once

// The widest dtype in memory or in a tile; i64 and bool mostly are indices and masks.
int element_bits(const tile::Function& f) {
  int widest = 8;
  for (const ssa::Buffer& buffer : f.buffers) widest = std::max(widest, bits(buffer.dtype));
  for (const tile::Type& type : f.types) {
    if (type.rank == 2 && type.dtype != DType::I64 && type.dtype != DType::Bool) widest = std::max(widest, bits(type.dtype));
  }
  return widest;
}

// The accumulator of the largest product, or else the largest tile.
struct Main {
  tile::Type type;
  bool product = false;
  const ssa::Inst* inst = nullptr;
};

void find_main(const tile::Function& f, const ssa::Block& block, Main& found) {
  for (const ssa::Inst& inst : block.insts) {
    const bool product = static_cast<tile::Op>(inst.op) == tile::Op::Dot;
    for (const tile::ValueId v : inst.results) {
      const tile::Type& t = f.type(v);
      const bool larger = t.elements() > found.type.elements();
      if (product ? !found.product || larger : !found.product && larger) found = {t, product, product ? &inst : nullptr};
    }
    for (const ssa::Block& region : inst.regions) find_main(f, region, found);
  }
}

// What is combined along a row, or multiplied on, should be one warp's.
bool rows_stay_whole(const tile::Function& f, const ssa::Block& block, int* products = nullptr) {
  int own = 0;
  if (products == nullptr) products = &own;
  for (const ssa::Inst& inst : block.insts) {
    const auto op = static_cast<tile::Op>(inst.op);
    if (op == tile::Op::Dot && ++*products > 1) return true;
    if (tile::as_reduce(op) && inst.imm == 1 && f.type(inst.operands[0]).shape[0] > 1) return true;
    for (const ssa::Block& region : inst.regions) {
      if (rows_stay_whole(f, region, products)) return true;
    }
  }
  return false;
}

}  // namespace

int log2_ceil(std::int64_t n) { return n <= 1 ? 0 : log2_floor(n - 1) + 1; }
int log2_floor(std::int64_t n) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) - 1; }

int bank_bits(DType dtype, int vector_bits) {
  const int runs = kBankedBytes * 8 / std::max(bits(dtype), 8) >> vector_bits;
  return runs <= 1 ? 0 : log2_floor(runs);
}

// What the matrix units multiply: their tiles, or several of them.
bool for_matrix_units(const tile::Function& f, const Machine& machine, const ssa::Inst& dot) {
  if (!machine.has_matrix || machine.warp_threads != kMatrixWarp || machine.group_threads < kMatrixWarp) return false;
  const tile::Type &a = f.type(dot.operands[0]), &b = f.type(dot.operands[1]), &sum = f.type(dot.operands[2]);
  const auto whole = [](int n, int part) { return n % part == 0 && std::has_single_bit(static_cast<unsigned>(n)); };
  const auto byte = [](DType t) { return t == DType::I8 || t == DType::U8; };
  const bool halves = (a.dtype == DType::F16 || a.dtype == DType::BF16) && a.dtype == b.dtype && sum.dtype == DType::F32;
  const bool bytes = byte(a.dtype) && byte(b.dtype) && sum.dtype == DType::I32;
  const auto f8 = [](DType t) { return t == DType::F8E4M3FN || t == DType::F8E5M2; };
  const bool eighths = f8(a.dtype) && f8(b.dtype) && sum.dtype == DType::F32 && machine.has(kF8Products);
  const bool cut = machine.cuts_f32 && a.dtype == DType::F32 && b.dtype == DType::F32 && sum.dtype == DType::F32;
  return (halves || bytes || eighths || cut) && whole(sum.shape[0], kMatrixRows) && whole(sum.shape[1], kMatrixColumns) &&
         whole(a.shape[1], kMatrixWords * word_elements(a.dtype));
}

bool for_groups(const tile::Function& f, const Machine& machine, const ssa::Inst& dot) {
  if (machine.group_matrix_rate == 0 || machine.group_threads < kGroupThreads || !for_matrix_units(f, machine, dot)) return false;
  return bits(f.type(dot.operands[0]).dtype) <= 16 && f.type(dot.operands[2]).shape[0] >= kGroupRows;
}

Spread choose_spread(const tile::Function& function, const Machine& machine) {
  Main main;
  main.type = tile::Type::scalar(DType::F32);
  find_main(function, function.body, main);
  const int rows = log2_ceil(main.type.shape[0]), columns = log2_ceil(main.type.shape[1]), elements = rows + columns;
  Spread s;
  if (elements == 0) return s;
  const int warp = log2_floor(machine.warp_threads);
  const int most = log2_floor(machine.group_threads);
  const int vector = std::min(kMostVectorBits, log2_floor(kAccessBits / element_bits(function)));
  if (main.inst != nullptr && for_matrix_units(function, machine, *main.inst)) {
    s.matrix = true;
    s.vector = 1, s.columns = 2, s.warp = warp;
    s.groups = for_groups(function, machine, *main.inst);
    const int fewest = s.groups ? kGroupWarpBits : 0;  // warps below each other
    const int row_warps = rows - log2_floor(kMatrixRows);  // at most: two rows of each thread
    if (rows_stay_whole(function, function.body)) {
      s.threads = std::min(most, warp + row_warps);
    } else {
      // Warps side by side read less of the operands than warps below each other.
      s.threads = std::min(most, std::max(warp + row_warps, warp + elements - kWarpProductBits));
      const int warps = s.threads - warp;
      const auto sides = [&](int high) {
        const int parts = s.groups ? rows - log2_floor(kGroupRows) - (warps - fewest - high) : 0;  // each reads all of its columns
        return (1 << (rows - warps + high + fewest)) + (1 << (columns - high + parts));
      };
      for (int high = 0; high <= std::min(warps - fewest, columns - kLeastColumnBits); ++high) {
        if (warps - high <= row_warps && (warps - s.high_columns > row_warps || sides(high) < sides(s.high_columns))) s.high_columns = high;
      }
      s.threads = std::min(s.threads, warp + row_warps + s.high_columns);
    }
    s.rows = s.threads - s.columns - s.high_columns;
    return s;
  }
  s.vector = std::min({vector, columns, std::max(0, elements - warp)});
  s.threads = std::clamp(elements - (main.product ? kProductBits : s.vector), std::min(warp, most), most);
  s.columns = std::min(s.threads, columns - s.vector);
  s.rows = std::min(s.threads - s.columns, rows);
  s.warp = std::min(warp, s.threads);
  return s;
}

Share share_of(const Spread& spread, const tile::Type& type) {
  const int columns = log2_ceil(type.shape[1]), vector = std::min(spread.vector, columns);
  Share s;
  s.lanes = 1 << vector;
  s.column_bits = std::min(spread.columns, columns - vector);
  s.row_bits = std::min(spread.rows, log2_ceil(type.shape[0]));
  s.high_bits = std::min(spread.high_columns, columns - vector - s.column_bits);
  s.column_step = s.lanes << (s.column_bits + s.high_bits);
  s.row_step = 1 << s.row_bits;
  s.count = (type.shape[1] + s.column_step - 1) / s.column_step;
  s.rows = (type.shape[0] + s.row_step - 1) / s.row_step;
  s.padded_columns = type.shape[1] % s.column_step != 0;
  s.padded_rows = type.shape[0] % s.row_step != 0;
  return s;
}

Layout layout_of(const Spread& spread, const tile::Type& type) {
  const Share share = share_of(spread, type);
  const int rows = log2_ceil(type.shape[0]), columns = log2_ceil(type.shape[1]);
  const int vector = log2_floor(share.lanes);
  std::array<std::vector<Bits>, 3> bases;
  const auto column = [](int bit) { return Bits{1} << bit; };
  const auto row = [&](int bit) { return Bits{1} << (columns + bit); };
  auto& registers = bases[static_cast<std::size_t>(Part::Register)];
  for (int i = 0; i < vector; ++i) registers.push_back(column(i));
  for (int i = vector + share.column_bits + share.high_bits; i < columns; ++i) registers.push_back(column(i));
  for (int i = share.row_bits; i < rows; ++i) registers.push_back(row(i));
  for (int i = 0; i < spread.threads; ++i) {
    const int r = i - spread.columns, high = r - spread.rows;
    Bits basis = 0;
    if (r < 0) basis = i < share.column_bits ? column(vector + i) : 0;
    else if (high < 0) basis = r < share.row_bits ? row(r) : 0;
    else if (high < share.high_bits) basis = column(vector + share.column_bits + high);
    bases[static_cast<std::size_t>(i < spread.warp ? Part::Lane : Part::Warp)].push_back(basis);
  }
  return {{rows, columns}, std::move(bases)};
}

}  // namespace weft::kernel::simt
