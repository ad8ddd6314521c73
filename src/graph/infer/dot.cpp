#include <fmt/format.h>

#include <algorithm>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

using Axes = std::vector<std::int64_t>;

// Batch and contracted axes of one side: each in range, none twice.
Result<void> check_side(const InferInput& in, int operand, const Axes& batch,
                        const Axes& contract) {
  Axes all = batch;
  all.insert(all.end(), contract.begin(), contract.end());
  return expect_axes(in, all, in.operands[operand].rank());
}

Result<void> check_pairs(const InferInput& in, const char* what, const Axes& lhs, const Axes& rhs) {
  if (lhs.size() != rhs.size()) {
    return infer_error(in, "bad-attribute",
                       fmt::format("the sides have different numbers of {} axes", what))
        .expected(std::to_string(lhs.size()))
        .found(std::to_string(rhs.size()));
  }
  for (std::size_t i = 0; i < lhs.size(); ++i) {
    WEFT_TRY(expect_equal(in,
                          fmt::format("{} axes {} of {} and {} of {} differ in size", what, lhs[i],
                                      str(in.operands[0].shape), rhs[i], str(in.operands[1].shape)),
                          in.operands[0].shape[lhs[i]], in.operands[1].shape[rhs[i]]));
  }
  return {};
}

void append_free(const Type& x, const Axes& batch, const Axes& contract, Shape& into) {
  const auto in_list = [](const Axes& axes, int i) {
    return std::find(axes.begin(), axes.end(), i) != axes.end();
  };
  for (int i = 0; i < x.rank(); ++i) {
    if (!in_list(batch, i) && !in_list(contract, i)) into.push_back(x.shape[i]);
  }
}

}  // namespace

Result<Types> infer_dot(const InferInput& in) {
  const Type& a = in.operands[0];
  const Type& b = in.operands[1];
  const auto& lhs_batch = in.attrs.ints(Attr::LhsBatch);
  const auto& rhs_batch = in.attrs.ints(Attr::RhsBatch);
  const auto& lhs_contract = in.attrs.ints(Attr::LhsContract);
  const auto& rhs_contract = in.attrs.ints(Attr::RhsContract);
  Type result{in.attrs.dtype(Attr::DType), {}};
  WEFT_TRY(check_product_dtypes(in, result.dtype));
  WEFT_TRY(check_side(in, 0, lhs_batch, lhs_contract));
  WEFT_TRY(check_side(in, 1, rhs_batch, rhs_contract));
  WEFT_TRY(check_pairs(in, "batch", lhs_batch, rhs_batch));
  WEFT_TRY(check_pairs(in, "contracted", lhs_contract, rhs_contract));
  for (std::int64_t axis : lhs_batch) result.shape.push_back(a.shape[axis]);
  append_free(a, lhs_batch, lhs_contract, result.shape);
  append_free(b, rhs_batch, rhs_contract, result.shape);
  return Types{result};
}

}  // namespace weft::graph
