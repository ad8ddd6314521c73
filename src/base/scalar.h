// Scalar arithmetic by name: the table, and one plain evaluation that the interpreters of Loop, Tile and Kernel IR
// share. Values travel as Scalar: floats as double (rounded to the dtype after each operation), integers and bool as
// int64 (wrapped to the dtype; u64 as its bits).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace weft {

enum class ScalarOp : std::uint8_t {
#define SCALAR(id, name, operands, result) id,
#include "base/scalar_ops.def"
#undef SCALAR
};
enum class ScalarResult : std::uint8_t { Same, Bool, Select, Cast };

struct ScalarOpInfo {
  const char* name;
  int operands;
  ScalarResult result;
};
int scalar_op_count();
const ScalarOpInfo& info(ScalarOp op);
std::optional<ScalarOp> parse_scalar_op(std::string_view name);
bool accepts(ScalarOp op, DType operand);  // whether `evaluate` takes the dtype (of operand 1 for Select)

struct Scalar {
  double f = 0;
  std::int64_t i = 0;
};

// `from` is the operands' dtype (of operand 1 for Select), `to` the result's. Float results are rounded to `to`.
Scalar evaluate(ScalarOp op, DType from, DType to, std::span<const Scalar> operands);
Scalar load_scalar(DType t, const void* data, std::int64_t index);
void store_scalar(DType t, void* data, std::int64_t index, Scalar value);

// How partial results of a reduction meet. ArgMax and ArgMin work on (value, i64 index) pairs.
enum class Combine : std::uint8_t { None, Sum, Prod, Max, Min, And, Or };
const char* name(Combine c);
std::optional<Combine> parse_combine(std::string_view name);
Scalar identity(Combine c, DType t);  // the neutral element: 0, 1, -inf / least, +inf / greatest, all ones, 0
Scalar combine(Combine c, DType t, Scalar a, Scalar b);

}  // namespace weft
