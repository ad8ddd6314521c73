// Activations that are more than one prim.
#pragma once

#include "ops/composite.h"

namespace weft::ops {

ValueId relu(Builder& b, ValueId x);                               // max(x, 0); NaN stays NaN
ValueId leaky_relu(Builder& b, ValueId x, double slope);           // x < 0 ? slope * x : x
ValueId clip(Builder& b, ValueId x, ValueId lo, ValueId hi);       // min(max(x, lo), hi); an id < 0: no bound
ValueId hard_sigmoid(Builder& b, ValueId x, double alpha, double beta);  // max(0, min(1, alpha x + beta))
ValueId gelu(Builder& b, ValueId x, bool tanh_form);
ValueId silu(Builder& b, ValueId x);                               // x * sigmoid(x)
ValueId softplus(Builder& b, ValueId x);                           // log(1 + exp(x)), without overflow
ValueId elu(Builder& b, ValueId x, double alpha);                  // x < 0 ? alpha (exp(x) - 1) : x

}  // namespace weft::ops
