// How a program's tiles are spread over a group of threads: one decision per program, one layout per shape.
#pragma once

#include "base/machine.h"
#include "kernel/simt/layout.h"
#include "tile/tile.h"

namespace weft::kernel::simt {

// All as numbers of bits. A thread's number is, from the lowest bit: column bits, row bits, high column bits, and bits that say
// nothing.
struct Spread {
  int vector = 0;   // neighbouring columns in one register
  int columns = 0;  // of the thread's number, for columns
  int rows = 0;     // ... for rows
  int high_columns = 0;  // ... for columns again, above the rows' bits: of warps that have other columns of the same rows
  int threads = 0;
  int warp = 0;
  bool groups = false;  // ... and of four warps together: of their numbers, two bits at least are rows'
  bool matrix = false;  // products are the warps' matrix units': pairs of columns, 4 lanes to 8 of them, then rows
};

// Whether the warps' matrix units can multiply what the dot does.
bool for_matrix_units(const tile::Function& function, const Machine& machine, const ssa::Inst& dot);

// Whether four warps together can: their part of a sum is 64 rows by 8 to 256 columns.
bool for_groups(const tile::Function& function, const Machine& machine, const ssa::Inst& dot);

Spread choose_spread(const tile::Function& function, const Machine& machine);

// What a thread holds of a tile: `rows` x `count` registers of `lanes` columns. Row register j is row
// own_row + j * row_step, register i begins at column own_column + i * column_step.
struct Share {
  int rows = 1, count = 1, lanes = 1;
  int row_step = 1, column_step = 1;
  int row_bits = 0, column_bits = 0;  // of the thread's number that choose among rows and columns
  int high_bits = 0;                  // the same among columns, above the rows'
  bool padded_rows = false, padded_columns = false;
  int registers() const { return rows * count; }
};
Share share_of(const Spread& spread, const tile::Type& type);

// The same as a linear layout of the padded tile. Register bits are, from the lowest: lane of the vector, register of
// the row, row.
Layout layout_of(const Spread& spread, const tile::Type& type);

// Bits that tell runs of 2^vector_bits elements apart within one access of all banks of shared memory.
int bank_bits(DType dtype, int vector_bits);

int log2_ceil(std::int64_t n);
int log2_floor(std::int64_t n);

}  // namespace weft::kernel::simt
