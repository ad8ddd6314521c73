// Quantisation by what the values are: one scale and zero point for a whole tensor of floats.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

struct Quantized {
  ValueId values;      // u8, of x's shape
  ValueId scale;       // of x's dtype, a scalar
  ValueId zero_point;  // u8, a scalar
};
// The range always holds 0; rounds to nearest, ties to even. x = (values - zero_point) * scale.
Quantized quantize_dynamically(Builder& b, ValueId x);

// round(x) + zero_point, held within `to`; x is a float, zero_point of dtype `to`, or < 0 for none.
ValueId to_integers(Builder& b, ValueId x, ValueId zero_point, DType to);

}  // namespace weft::ops
