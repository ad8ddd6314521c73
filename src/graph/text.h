// Graph IR as text:
//
//   graph @main(%0 "x": f32[n, 768], %1: bool[]) -> (f32[n, 4]) where n in 1..512, m in 0..
//   multiple 8 {
//     %2 = constant {data=f32[2](0.5, -1)} : f32[2]
//     %3 "prob" = if %1, %0 : f32[n, 4] regions {
//       graph @then(%0: f32[n, 768]) -> (f32[n, 4]) { ... }
//       graph @else(%0: f32[n, 768]) -> (f32[n, 4]) { ... }
//     }  # node "/head/If" op "If"
//     return %3
//   }
//
// Values are numbered by order, inputs first. Symbols whose range is the default do not appear
// under `where`; regions know what the graph around them knows. Bits of numbers survive: an element
// that no decimal gives back prints as 0x and its bits; a large constant prints as its content
// hash.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace weft {
class Lexer;
}

namespace weft::graph {

constexpr int kMaxRegionDepth = 64;
constexpr std::int64_t kMaxPrintedElements = 16;

// Elements of a tensor, comma-separated (a complex one is two: real, imaginary), and one element
// read back.
std::string print_elements(const Tensor& t);
Result<Tensor> parse_elements(Lexer& lexer, DType dtype,
                              std::vector<std::int64_t> shape);  // up to the ')'

Result<Type> parse_type(Lexer& lexer);

}  // namespace weft::graph
