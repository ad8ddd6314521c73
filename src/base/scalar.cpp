#include "base/scalar.h"

#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "base/wide.h"

namespace weft {
namespace {

constexpr ScalarOpInfo kOps[] = {
#define SCALAR(id, name, operands, result) {name, operands, ScalarResult::result},
#include "base/scalar_ops.def"
#undef SCALAR
};

constexpr std::array<const char*, 7> kCombines = {"none", "sum", "prod", "max", "min", "and", "or"};

std::int64_t greatest(DType t) {
  if (is_bool(t)) return 1;
  const int width = bits(t) - (is_signed_int(t) ? 1 : 0);
  return width >= 64 ? -1 : static_cast<std::int64_t>((std::uint64_t{1} << width) - 1);
}
std::int64_t least(DType t) { return is_signed_int(t) ? -greatest(t) - 1 : 0; }

ScalarOp op_of(Combine c) {
  switch (c) {
    case Combine::Sum:
      return ScalarOp::Add;
    case Combine::Prod:
      return ScalarOp::Mul;
    case Combine::Max:
      return ScalarOp::Max;
    case Combine::Min:
      return ScalarOp::Min;
    case Combine::And:
      return ScalarOp::And;
    case Combine::Or:
      return ScalarOp::Or;
    case Combine::None:
      break;
  }
  check_failed("c != Combine::None", __FILE__, __LINE__, "a combine of nothing");
}

Scalar integer_identity(Combine c, DType t) {
  switch (c) {
    case Combine::Prod:
      return {0, 1};
    case Combine::Max:
      return {0, least(t)};
    case Combine::Min:
      return {0, greatest(t)};
    case Combine::And:
      return {0, is_signed_int(t) ? -1 : greatest(t)};
    default:
      return {0, 0};
  }
}

}  // namespace

int scalar_op_count() { return static_cast<int>(std::size(kOps)); }
const ScalarOpInfo& info(ScalarOp op) { return kOps[static_cast<int>(op)]; }

std::optional<ScalarOp> parse_scalar_op(std::string_view name) {
  for (int i = 0; i < scalar_op_count(); ++i) {
    if (name == kOps[i].name) return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

bool accepts(ScalarOp op, DType t) {
  if (is_complex(t) || is_string(t)) return false;
  if (op >= ScalarOp::Add && op <= ScalarOp::FloorDiv) return !is_bool(t);
  switch (op) {
    case ScalarOp::Select:
    case ScalarOp::Cast:
    case ScalarOp::Bitcast:
    case ScalarOp::Max:
    case ScalarOp::Min:
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le:
    case ScalarOp::Gt:
    case ScalarOp::Ge:
      return true;
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::Sign:
    case ScalarOp::Fmod:
    case ScalarOp::Mod:
    case ScalarOp::Pow:
    case ScalarOp::Fma:
      return !is_bool(t);
    case ScalarOp::Not:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
      return !is_float(t);
    case ScalarOp::Shl:
    case ScalarOp::Shr:
      return is_int(t);
    default:
      return is_float(t);
  }
}

Scalar load_scalar(DType t, const void* data, std::int64_t index) {
  if (is_float(t)) return {load_f64(t, data, index), 0};
  return {0, load_i64(t, data, index)};
}

void store_scalar(DType t, void* data, std::int64_t index, Scalar value) {
  if (is_float(t)) return store_f64(t, data, index, value.f);
  store_i64(t, data, index, value.i);
}

const char* name(Combine c) { return kCombines[static_cast<std::size_t>(c)]; }

std::optional<Combine> parse_combine(std::string_view name) {
  for (std::size_t i = 0; i < kCombines.size(); ++i) {
    if (name == kCombines[i]) return static_cast<Combine>(i);
  }
  return std::nullopt;
}

Scalar identity(Combine c, DType t) {
  if (!is_float(t)) return integer_identity(c, t);
  switch (c) {
    case Combine::Prod:
      return {1, 0};
    case Combine::Max:
      return {least<double>(t), 0};
    case Combine::Min:
      return {largest<double>(t), 0};
    default:
      return {0, 0};
  }
}

Scalar combine(Combine c, DType t, Scalar a, Scalar b) {
  const std::array<Scalar, 2> both = {a, b};
  // A sum of bools counts as "any": bool has no addition of its own.
  if (is_bool(t) && c == Combine::Sum) c = Combine::Or;
  if (is_bool(t) && c == Combine::Prod) c = Combine::And;
  return evaluate(op_of(c), t, t, both);
}

}  // namespace weft
