// Tile IR -> Kernel IR for one core: every tile is spread over vector registers and all of it is
// unrolled; loops stay.
//
// A tile [R, C] becomes R rows of C / W vectors of W lanes; [R, 1] becomes R scalars, [1, C] one
// row of vectors that all rows share, a scalar a scalar. W is the machine's vector width in
// elements of the widest dtype in use (i64 that only index does not count). Where C is neither a
// multiple of W nor a divisor, the largest power of two that divides C is the width.
//
// Index arithmetic is never spread over lanes unless something else than an access needs it: an i64
// tile stays rowbase[r] + coefficient * lane. An access with coefficient 1 is a vector access, with
// 0 a scalar access whose value is splat, with anything else a gather or scatter. Masks that hold
// for whole rows stay scalars beside the lanes' part. A scalar access under a mask is a kernel
// `if`, so that no emitter needs a masked scalar access.
#pragma once

#include "base/machine.h"
#include "kernel/kernel.h"
#include "tile/tile.h"

namespace weft::kernel {

Result<Function> lower_simd(const tile::Function& function, const Machine& machine);

// The on-chip buffers that it may add to those of the function: what passes between vectors and a matrix unit.
std::vector<ssa::Buffer> added_buffers(const tile::Function& function, const Machine& machine);

}  // namespace weft::kernel
