// Random numbers from the counter-based bits of the prim: the same key gives the same numbers on every target.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

ValueId random_key(Builder& b, std::uint64_t seed, std::uint64_t stream);  // u64[2]
ValueId random_uniform(Builder& b, ValueId key, Shape shape);       // f32 in [0, 1), 24 bits
ValueId random_normal(Builder& b, ValueId key, Shape shape);        // f32, mean 0, deviation 1

}  // namespace weft::ops
