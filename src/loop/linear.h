// Index expressions as linear forms over atoms.
#pragma once

#include "loop/group.h"

namespace weft::loop {

// An i64 expression as constant + sum of coefficient * atom, where atoms are expressions that are
// not sums themselves.
struct Linear {
  Dim constant;
  std::vector<std::pair<ExprId, Dim>> terms;  // sorted by atom, no zero coefficients
};
Linear linear(const Group& group, ExprId e);

// The element address of an access as an expression, panels included (whose parts are divisions
// where they don't fold).
ExprId address_expr(Group& group, ParamId param, const std::vector<ExprId>& coordinates);

}  // namespace weft::loop
