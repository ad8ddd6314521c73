#include "kernel/combine.h"

namespace weft::kernel {

ScalarOp combining_op(Combine combine, DType dtype) {
  switch (combine) {
    case Combine::Sum:
      return ScalarOp::Add;
    case Combine::Prod:
      return ScalarOp::Mul;
    case Combine::Max:
      return is_bool(dtype) ? ScalarOp::Or : ScalarOp::Max;
    case Combine::Min:
      return is_bool(dtype) ? ScalarOp::And : ScalarOp::Min;
    case Combine::And:
      return ScalarOp::And;
    default:
      return ScalarOp::Or;
  }
}

Combine lane_combine(Combine combine, DType dtype) {
  if (!is_bool(dtype)) return combine;
  return combine == Combine::Max ? Combine::Or : combine == Combine::Min ? Combine::And : combine;
}

ValueId combine_pairwise(Builder& b, Combine combine, std::vector<ValueId> parts) {
  const ScalarOp op = combining_op(combine, b.type(parts[0]).dtype);
  while (parts.size() > 1) {
    std::vector<ValueId> halved;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      halved.push_back(b.scalar(op, {parts[i], parts[i + 1]}));
    if (parts.size() % 2 == 1) halved.push_back(parts.back());
    parts = std::move(halved);
  }
  return parts[0];
}

}  // namespace weft::kernel
