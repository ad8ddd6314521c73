// What the families' inference functions share. Each family's function gets an input whose operand
// count, operand 0's dtype class, attribute names and types and the table's Same/Bool rules already
// hold (schema.cpp).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft::graph {

using Types = std::vector<Type>;

Result<void> check_schema(const InferInput& in);

// By families; elementwise serves unary, binary, select and cast from the table's rules.
Result<Types> infer_elementwise(const InferInput& in);
Result<Types> infer_movement(const InferInput& in);
Result<Types> infer_source(const InferInput& in);
Result<Types> infer_gather(const InferInput& in);
Result<Types> infer_scatter(const InferInput& in);
Result<Types> infer_reduce(const InferInput& in);
Result<Types> infer_scan(const InferInput& in);
Result<Types> infer_sort(const InferInput& in);
Result<Types> infer_dot(const InferInput& in);
Result<Types> infer_conv(const InferInput& in);
Result<Types> infer_window(const InferInput& in);
Result<Types> infer_control(const InferInput& in);
Result<Types> infer_host(const InferInput& in);

// Errors of the user's kind whose message starts with the op's name.
Error infer_error(const InferInput& in, const char* code, const std::string& message);
Error shape_error(const InferInput& in, const std::string& what, const std::string& expected,
                  const std::string& found);

// Sizes that no binding of the symbols can make equal.
bool known_different(const DimFacts& facts, const Dim& a, const Dim& b);
bool known_equal(const DimFacts& facts, const Shape& a, const Shape& b);
bool same_type(const DimFacts& facts, const Type& a, const Type& b);
inline bool known_negative(const DimFacts& facts, const Dim& d) { return facts.known_less(d, 0); }

// Checks that name the op, and `what` they look at.
Result<void> expect_equal(const InferInput& in, const std::string& what, const Dim& expected,
                          const Dim& found);
Result<void> expect_rank(const InferInput& in, int operand, int rank);
Result<void> expect_dtype(const InferInput& in, int operand, DType dtype);
Result<void> expect_int(const InferInput& in, int operand);
Result<void> expect_scalar(const InferInput& in, int operand, DType dtype);
Result<void> expect_count(const InferInput& in, Attr attr, std::size_t found, std::size_t expected);
Result<std::int64_t> axis_attr(const InferInput& in, int rank);  // attribute axis, in 0..rank-1
Result<void> expect_axes(const InferInput& in, const std::vector<std::int64_t>& axes,
                         int rank);  // in range, once each
Result<void> expect_increasing(const InferInput& in, const std::vector<std::int64_t>& axes,
                               int rank);
Result<void> expect_positive(const InferInput& in, Attr attr);  // of an Ints attribute
Result<std::string> bare_symbol(const InferInput& in, const Dim& d);
// Dot and conv: operand dtypes equal, or both integers; the result of the same kind.
Result<void> check_product_dtypes(const InferInput& in, DType result);

// Output size of a window that slides over `size`, padded: floordiv(size + lo + hi - reach, stride)
// + 1, at least 0, where reach = (kernel - 1) * dilation + 1.
Dim window_output(const DimFacts& facts, const Dim& size, const Dim& lo, const Dim& hi,
                  const Dim& kernel, std::int64_t dilation, std::int64_t stride);

}  // namespace weft::graph
