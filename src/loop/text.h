// What the printer and the parser of groups agree on. Private to loop/.
#pragma once

#include "loop/group.h"

namespace weft::loop {

inline constexpr const char* kRoleNames[] = {"input", "output", "inout", "onchip"};
inline constexpr const char* kLoopNames[] = {"parallel", "reduce", "serial"};
inline constexpr int kInlineDepth = 24;  // deeper expressions are printed as numbered lets
inline constexpr int kParseDepth = 64;   // the parser refuses deeper nesting

// Infix arithmetic: 1 for sums, 2 for products, 0 for what is written as a call.
inline int infix_level(Op op) {
  return op == Op::Add || op == Op::Sub ? 1 : op == Op::Mul || op == Op::Div ? 2 : 0;
}
inline char infix_symbol(Op op) {
  return op == Op::Add ? '+' : op == Op::Sub ? '-' : op == Op::Mul ? '*' : '/';
}

}  // namespace weft::loop
