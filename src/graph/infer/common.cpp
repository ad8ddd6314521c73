#include <fmt/format.h>

#include "graph/infer/infer.h"

namespace weft::graph {
namespace {

std::string operand_name(int operand) { return fmt::format("operand {}", operand); }

}  // namespace

Error infer_error(const InferInput& in, const char* code, const std::string& message) {
  return user_error(code, fmt::format("{}: {}", info(in.op).name, message));
}

Error shape_error(const InferInput& in, const std::string& what, const std::string& expected,
                  const std::string& found) {
  return infer_error(in, "shape-mismatch", what).expected(expected).found(found);
}

bool known_different(const DimFacts& facts, const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return a.value() != b.value();
  if (facts.known_less(a, b) || facts.known_less(b, a)) return true;
  // A constant that a known divisor of the other side does not divide.
  const auto refutes = [&](const Dim& c, const Dim& d) {
    if (!c.is_const()) return false;
    const std::int64_t divisor = facts.range(d).multiple_of;
    return divisor > 1 && c.value() % divisor != 0;
  };
  return refutes(a, b) || refutes(b, a);
}

bool known_equal(const DimFacts& facts, const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!facts.known_equal(a[i], b[i])) return false;
  }
  return true;
}

bool same_type(const DimFacts& facts, const Type& a, const Type& b) {
  return a.dtype == b.dtype && known_equal(facts, a.shape, b.shape);
}

Result<void> expect_equal(const InferInput& in, const std::string& what, const Dim& expected,
                          const Dim& found) {
  if (in.facts.known_equal(expected, found)) return {};
  Error e = shape_error(in, what, expected.str(), found.str());
  if (!known_different(in.facts, expected, found)) {
    e.suggest(
        "the sizes may be equal, but it is not known: name them by the same symbol or fix them");
  }
  return e;
}

Result<void> expect_rank(const InferInput& in, int operand, int rank) {
  const Type& t = in.operands[operand];
  if (t.rank() == rank) return {};
  return infer_error(in, "rank-mismatch",
                     operand_name(operand) + " has another rank than it must have")
      .expected(fmt::format("rank {}", rank))
      .found(str(t));
}

Result<void> expect_dtype(const InferInput& in, int operand, DType dtype) {
  const Type& t = in.operands[operand];
  if (t.dtype == dtype) return {};
  return infer_error(in, "dtype-mismatch",
                     operand_name(operand) + " has another dtype than it must have")
      .expected(name(dtype))
      .found(name(t.dtype));
}

Result<void> expect_int(const InferInput& in, int operand) {
  const Type& t = in.operands[operand];
  if (is_int(t.dtype)) return {};
  return infer_error(in, "dtype-mismatch", operand_name(operand) + " must hold integers")
      .expected("an integer dtype")
      .found(name(t.dtype));
}

Result<void> expect_scalar(const InferInput& in, int operand, DType dtype) {
  WEFT_TRY(expect_dtype(in, operand, dtype));
  return expect_rank(in, operand, 0);
}

Result<void> expect_count(const InferInput& in, Attr attr, std::size_t found,
                          std::size_t expected) {
  if (found == expected) return {};
  return infer_error(
             in, "bad-attribute",
             fmt::format("attribute '{}' has another length than it must have", info(attr).name))
      .expected(std::to_string(expected))
      .found(std::to_string(found));
}

Result<std::int64_t> axis_attr(const InferInput& in, int rank) {
  const std::int64_t axis = in.attrs.integer(Attr::Axis);
  if (axis >= 0 && axis < rank) return axis;
  return infer_error(in, "bad-axis", "the axis is out of range")
      .expected(fmt::format("0 <= axis < {}", rank))
      .found(std::to_string(axis));
}

Result<void> expect_axes(const InferInput& in, const std::vector<std::int64_t>& axes, int rank) {
  std::set<std::int64_t> seen;
  for (std::int64_t axis : axes) {
    if (axis < 0 || axis >= rank) {
      return infer_error(in, "bad-axis", "an axis is out of range")
          .expected(fmt::format("0 <= axis < {}", rank))
          .found(std::to_string(axis));
    }
    if (!seen.insert(axis).second)
      return infer_error(in, "bad-axis", fmt::format("axis {} is named twice", axis));
  }
  return {};
}

Result<void> expect_increasing(const InferInput& in, const std::vector<std::int64_t>& axes,
                               int rank) {
  WEFT_TRY(expect_axes(in, axes, rank));
  for (std::size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] < axes[i - 1]) return infer_error(in, "bad-axis", "the axes must increase");
  }
  return {};
}

Result<void> expect_positive(const InferInput& in, Attr attr) {
  for (std::int64_t v : in.attrs.ints(attr)) {
    if (v < 1 || v > INT32_MAX) {
      return infer_error(in, "bad-attribute",
                         fmt::format("entries of '{}' must be positive", info(attr).name))
          .found(std::to_string(v));
    }
  }
  return {};
}

Result<std::string> bare_symbol(const InferInput& in, const Dim& d) {
  if (auto symbol = d.as_symbol()) return *symbol;
  return infer_error(in, "bad-attribute", "a size that the op binds must be one symbol")
      .found(d.str());
}

Result<void> check_product_dtypes(const InferInput& in, DType result) {
  const DType a = in.operands[0].dtype, b = in.operands[1].dtype;
  if (!(is_int(a) && is_int(b))) WEFT_TRY(expect_dtype(in, 1, a));
  if (is_int(a) == is_int(result) && (is_int(result) || is_float(result))) return {};
  return infer_error(in, "dtype-mismatch",
                     "the result's dtype is of another kind than the operands'")
      .expected(is_int(a) ? "an integer dtype" : "a float dtype")
      .found(name(result));
}

Dim window_output(const DimFacts& facts, const Dim& size, const Dim& lo, const Dim& hi,
                  const Dim& kernel, std::int64_t dilation, std::int64_t stride) {
  const Dim reach = (kernel - 1) * dilation + 1;
  return facts.simplify(max(floor_div(size + lo + hi - reach, stride) + 1, 0));
}

}  // namespace weft::graph
