// Tile IR -> Kernel IR for a group of threads. All that is known of the machine is in the capability struct: threads in
// a group and in a warp, shared bytes, whether lanes shuffle.
//
// Rows and columns of a tile are spread apart from each other (spread.h): a run of neighbouring columns in a vector
// register, then the columns over threads, then the rows over threads, the rest over registers. A tile with fewer rows or
// columns than there are threads for is held by several threads alike, so a broadcast costs nothing and a value that is
// reduced over an axis stays where it is. Extents that are no powers of two are padded: padding is never accessed,
// stored, checked or reduced.
//
// Index arithmetic is not spread (index.h): an access whose lanes are neighbours and whose index is known to be a
// multiple of the vector is a vector access. Of threads that hold the same element, one stores it. Reductions combine
// registers, then lanes (shuffles where the machine has them), then warps (shared memory). `dot` over more than one step
// and a transpose that the algebra of layouts cannot do in registers go through shared memory, swizzled; operands that a
// loop loads for it are copied there some iterations ahead, where the machine has copies that run beside a thread
// (pipeline.cpp). On-chip buffers are shared memory. A barrier stands where a thread may access what another one wrote, or write what it read.
#pragma once

#include "base/machine.h"
#include "kernel/kernel.h"
#include "tile/tile.h"

namespace weft::kernel {

// Among a machine's features: its matrix units multiply floats of 8 bits. Not one of LLVM's.
constexpr const char* kF8Products = "f8-products";

// Unsupported: what does not fit the machine's shared memory or registers.
Result<Function> lower_simt(const tile::Function& function, const Machine& machine);

}  // namespace weft::kernel
