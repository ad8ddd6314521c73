// Algebra on scalar arithmetic that holds for every value, shared by the builders of Tile and
// Kernel IR.
#pragma once

#include <optional>
#include <span>

#include "base/scalar.h"
#include "ssa/function.h"

namespace weft::ssa {

// A scalar op among a builder's values, as far as folding looks.
struct ScalarDef {
  ScalarOp op;
  std::span<const ValueId> operands;
};

// What folding asks of a builder.
class Folding {
 public:
  virtual ~Folding() = default;
  virtual Type type_of(ValueId v) const = 0;
  virtual std::optional<Scalar> constant_of(
      ValueId v) const = 0;  // also of a constant spread over a shape
  virtual std::optional<ScalarDef> definition_of(ValueId v) const = 0;  // none: not a scalar op
  virtual ValueId make_constant(const Type& type,
                                Scalar value) = 0;  // spread over the type's shape
  virtual ValueId make(ScalarOp op, std::vector<ValueId> operands) = 0;  // folds in turn
};

// A value equal to op(operands), found or made from simpler ones; -1 when there is none. Operands
// have equal shapes and the result has `type`. Puts the operands into a canonical order (constants
// last) where the op commutes.
ValueId fold(Folding& builder, ScalarOp op, std::vector<ValueId>& operands, const Type& type);

}  // namespace weft::ssa
