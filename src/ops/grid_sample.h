// Sampling at arbitrary positions: the grid's coordinates run from -1 to 1 over each spatial axis.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

struct GridSampleMode {
  enum class Interpolation : std::uint8_t { Nearest, Linear, Cubic };
  enum class Padding : std::uint8_t { Zeros, Border, Reflection };
  Interpolation interpolation = Interpolation::Linear;
  Padding padding = Padding::Zeros;
  bool align_corners = false;  // -1 and 1 are the centres of the outermost cells, not their edges
};

// x [N, C, d...], grid [N, o..., k] with the last spatial axis first; gives [N, C, o...]. Positions that are not
// numbers, or lie far outside, never read outside of x.
ValueId grid_sample(Builder& b, ValueId x, ValueId grid, const GridSampleMode& mode);

}  // namespace weft::ops
