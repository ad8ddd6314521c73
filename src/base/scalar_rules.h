// What folding asks of scalar ops, whichever IR it folds.
#pragma once

#include "base/scalar.h"

namespace weft {

constexpr bool is_commutative(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Mul:
    case ScalarOp::Max:
    case ScalarOp::Min:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Eq:
    case ScalarOp::Ne: return true;
    default: return false;
  }
}

}  // namespace weft
