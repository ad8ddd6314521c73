// What a warp's matrix units do, on the values of its lanes. Which lane holds what: kernel.h.
#pragma once

#include <functional>

#include "base/scalar.h"

namespace weft::kernel {

// multiply_matrix: of `t` and `b_type`, words of `word` elements. Operands and sums are seen lane by lane.
struct MatrixOperands {
  std::function<const Scalar*(int lane)> a, b, sum;
  std::function<Scalar*(int lane)> result;
  DType dtype = DType::F16;
  int word = 2;
};
void multiply_matrix(const MatrixOperands& m);

// load_matrix: of element `k` of the words of a lane, the row of all matrices whose start it lies behind (the number of the
// lane that says where), and how far.
struct MatrixElement {
  int row = 0, offset = 0;
};
MatrixElement matrix_element(int lane, int k, int word, bool turned);

}  // namespace weft::kernel
