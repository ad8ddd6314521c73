// Softmax and the norms, over given axes (counted from the front). Means and variances of floats narrower than f32 are
// taken in f32.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

ValueId softmax(Builder& b, ValueId x, std::vector<std::int64_t> axes);
ValueId log_softmax(Builder& b, ValueId x, std::vector<std::int64_t> axes);

struct Normalized {
  ValueId y, mean, inverse_deviation;  // the last two keep the reduced axes with size 1
};
// (x - mean) / sqrt(variance + epsilon), computed in `compute`; y has x's dtype before scale and bias.
Normalized normalize(Builder& b, ValueId x, std::vector<std::int64_t> axes, double epsilon, DType compute);

// x / sqrt(mean(x^2) + epsilon), in `compute`.
ValueId rms_normalize(Builder& b, ValueId x, std::vector<std::int64_t> axes, double epsilon, DType compute);

ValueId mean(Builder& b, ValueId x, std::vector<std::int64_t> axes, bool keepdims);

}  // namespace weft::ops
