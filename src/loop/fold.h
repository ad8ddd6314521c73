// Folding of expressions when they are added to a group: only what holds for all values. Private to
// loop/.
#pragma once

#include "loop/group.h"
#include "loop/linear.h"

namespace weft::loop {

// The expression that `e` equals, or nothing; may rewrite `e` into its canonical form (constants on
// the right).
std::optional<ExprId> fold(Group& group, Expr& e);

ExprId emit(Group& group, const Linear& form);
std::optional<Dim> as_dim(const Group& group, ExprId e);  // of i64 constants and sizes
// The greatest value of e, when it is known to be at least 0 and to have one.
std::optional<Dim> upper_bound(const Group& group, ExprId e);

// a = quotient * b + remainder with the remainder in [0, b), for b > 0; nothing where it is not
// known statically.
struct Divided {
  ExprId quotient = -1;
  ExprId remainder = -1;
};
std::optional<Divided> divide(Group& group, ExprId a, const Dim& b);

}  // namespace weft::loop
