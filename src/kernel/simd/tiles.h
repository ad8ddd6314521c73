// Which products run on the processor's matrix unit, and which values therefore stay in its tiles.
#pragma once

#include <vector>

#include "base/machine.h"
#include "tile/tile.h"

namespace weft::kernel::simd {

// A dot of bf16 into f32, or of bytes into i32, of the steps that a row of a tile holds, over whole tiles of which all
// find a register.
bool is_tile_dot(const tile::Function& function, const ssa::Inst& inst, const Machine& machine);

struct TileUses {  // by value id
  std::vector<bool> sums;         // what a loop carries to a dot's sum, and what dots give
  std::vector<bool> left, right;  // loads that are nothing but such operands of dots
  std::vector<bool> zero;         // constants, for sums to start with
};
TileUses tile_uses(const tile::Function& function, const Machine& machine);

}  // namespace weft::kernel::simd
