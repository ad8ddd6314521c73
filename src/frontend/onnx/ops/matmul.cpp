// Matrix products.
#include "frontend/onnx/import/node_context.h"
#include "frontend/onnx/reader/validate.h"

namespace weft::onnx {

namespace {

using graph::Op;

Result<void> matmul(NodeContext& c) {
  c.out(0, c.b.matmul(c.in(0), c.in(1)));
  return {};
}

// alpha * A' B' + beta * C
Result<void> gemm(NodeContext& c) {
  if (c.rank(0) != 2 || c.rank(1) != 2) return c.bad("A and B must be matrices");
  DType t = c.dtype(0);
  bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
  ValueId y = c.b.dot(c.in(0), c.in(1), {}, {}, {ta ? 0 : 1}, {tb ? 1 : 0}, t);
  double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (alpha != 1) y = c.b.binary(Op::Mul, y, c.b.scalar(t, alpha));
  if (c.has(2)) {
    ValueId bias = c.in(2);
    if (beta != 1) bias = c.b.binary(Op::Mul, bias, c.b.scalar(t, beta));
    y = c.b.binary(Op::Add, y, c.b.broadcast_to(bias, c.b.shape(y)));
  }
  c.out(0, y);
  return {};
}

constexpr OpEntry kMatmulOps[] = {
    {"MatMul", 1, kOpsetMax, 2, 2, "", matmul},
    {"Gemm", 1, 6, 3, 3, "alpha beta broadcast transA transB", gemm},
    {"Gemm", 7, kOpsetMax, 2, 3, "alpha beta transA transB", gemm},
};

}  // namespace

OpTable matmul_ops() { return {kMatmulOps, std::size(kMatmulOps)}; }

}  // namespace weft::onnx
