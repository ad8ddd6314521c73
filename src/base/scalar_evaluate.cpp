// Plain evaluation of one scalar op: floats in double (f32 fma in f32), one rounding to the
// result's dtype.
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/scalar.h"
#include "base/wide.h"

namespace weft {
namespace {

using U = std::uint64_t;
using I = std::int64_t;

double round_to(DType t, double v) {
  if (t == DType::F64) return v;
  if (t == DType::F32) return static_cast<float>(v);
  return decode_float(t, encode_float(t, v));
}

I wrap_to(DType t, I v) {
  if (is_bool(t)) return v != 0;
  const int unused = 64 - bits(t);
  if (is_signed_int(t)) return static_cast<I>(static_cast<U>(v) << unused) >> unused;
  return static_cast<I>((static_cast<U>(v) << unused) >> unused);
}

[[noreturn]] void bad(ScalarOp op, DType t) {
  check_failed("the op takes the dtype", __FILE__, __LINE__,
               std::string(info(op).name) + " of " + name(t));
}

double float_sign(double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a; }

double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

double float_max(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return a > b ? a : b;
}

double float_unary(ScalarOp op, DType t, double a) {
  switch (op) {
    case ScalarOp::Neg:
      return -a;
    case ScalarOp::Abs:
      return std::fabs(a);
    case ScalarOp::Sign:
      return float_sign(a);
    case ScalarOp::Ceil:
      return std::ceil(a);
    case ScalarOp::Floor:
      return std::floor(a);
    case ScalarOp::Round:
      return std::nearbyint(a);
    case ScalarOp::Trunc:
      return std::trunc(a);
    case ScalarOp::Exp:
      return std::exp(a);
    case ScalarOp::Expm1:
      return std::expm1(a);
    case ScalarOp::Log:
      return std::log(a);
    case ScalarOp::Log1p:
      return std::log1p(a);
    case ScalarOp::Sqrt:
      return std::sqrt(a);
    case ScalarOp::Rsqrt:
      return 1 / std::sqrt(a);
    case ScalarOp::Reciprocal:
      return 1 / a;
    case ScalarOp::Sin:
      return std::sin(a);
    case ScalarOp::Cos:
      return std::cos(a);
    case ScalarOp::Tan:
      return std::tan(a);
    case ScalarOp::Asin:
      return std::asin(a);
    case ScalarOp::Acos:
      return std::acos(a);
    case ScalarOp::Atan:
      return std::atan(a);
    case ScalarOp::Sinh:
      return std::sinh(a);
    case ScalarOp::Cosh:
      return std::cosh(a);
    case ScalarOp::Tanh:
      return std::tanh(a);
    case ScalarOp::Asinh:
      return std::asinh(a);
    case ScalarOp::Acosh:
      return std::acosh(a);
    case ScalarOp::Atanh:
      return std::atanh(a);
    case ScalarOp::Erf:
      return std::erf(a);
    case ScalarOp::Sigmoid:
      return 1 / (1 + std::exp(-a));
    default:
      bad(op, t);
  }
}

double float_binary(ScalarOp op, DType t, double a, double b) {
  switch (op) {
    case ScalarOp::Add:
      return a + b;
    case ScalarOp::Sub:
      return a - b;
    case ScalarOp::Mul:
      return a * b;
    case ScalarOp::Div:
      return a / b;
    case ScalarOp::FloorDiv:
      return std::floor(round_to(t, a / b));
    case ScalarOp::Fmod:
      return std::fmod(a, b);
    case ScalarOp::Mod:
      return float_mod(a, b);
    case ScalarOp::Pow:
      return std::pow(a, b);
    case ScalarOp::Max:
      return float_max(a, b);
    case ScalarOp::Min:
      return -float_max(-a, -b);
    case ScalarOp::Atan2:
      return std::atan2(a, b);
    default:
      bad(op, t);
  }
}

template <class T>
bool compare(ScalarOp op, DType t, T a, T b) {
  switch (op) {
    case ScalarOp::Eq:
      return a == b;
    case ScalarOp::Ne:
      return a != b;
    case ScalarOp::Lt:
      return a < b;
    case ScalarOp::Le:
      return a <= b;
    case ScalarOp::Gt:
      return a > b;
    case ScalarOp::Ge:
      return a >= b;
    default:
      bad(op, t);
  }
}

I integer_unary(ScalarOp op, DType t, I a) {
  switch (op) {
    case ScalarOp::Neg:
      return static_cast<I>(-static_cast<U>(a));
    case ScalarOp::Abs:
      return is_signed_int(t) && a < 0 ? static_cast<I>(-static_cast<U>(a)) : a;
    case ScalarOp::Sign:
      return is_signed_int(t) ? (a > 0) - (a < 0) : a != 0;
    case ScalarOp::Not:
      return is_bool(t) ? !a : ~a;
    default:
      bad(op, t);
  }
}

struct Division {
  I quotient, remainder;  // truncated; 0 and 0 when dividing by 0
};

Division divide(DType t, I a, I b) {
  if (b == 0) return {0, 0};
  if (!is_signed_int(t))
    return {static_cast<I>(static_cast<U>(a) / static_cast<U>(b)),
            static_cast<I>(static_cast<U>(a) % static_cast<U>(b))};
  if (b == -1) return {static_cast<I>(-static_cast<U>(a)), 0};
  return {a / b, a % b};
}

bool signs_differ(DType t, I a, I b) { return is_signed_int(t) && (a < 0) != (b < 0); }

I integer_pow(DType t, I base, I exponent) {
  if (is_signed_int(t) && exponent < 0) {  // 1 / base^n, truncated
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  U result = 1;
  U square = static_cast<U>(base);
  for (U n = static_cast<U>(exponent); n != 0; n >>= 1) {
    if (n & 1) result *= square;
    square *= square;
  }
  return static_cast<I>(result);
}

I shift(ScalarOp op, DType t, I a, I b) {
  const U n = static_cast<U>(b);
  const U width = static_cast<U>(bits(t));
  if (op == ScalarOp::Shl) return n >= width ? 0 : static_cast<I>(static_cast<U>(a) << n);
  if (is_signed_int(t)) return a >> (n >= width ? 63 : n);
  return n >= width ? 0 : static_cast<I>(static_cast<U>(a) >> n);
}

bool integer_less(DType t, I a, I b) {
  return is_signed_int(t) ? a < b : static_cast<U>(a) < static_cast<U>(b);
}

I integer_binary(ScalarOp op, DType t, I a, I b) {
  switch (op) {
    case ScalarOp::Add:
      return static_cast<I>(static_cast<U>(a) + static_cast<U>(b));
    case ScalarOp::Sub:
      return static_cast<I>(static_cast<U>(a) - static_cast<U>(b));
    case ScalarOp::Mul:
      return static_cast<I>(static_cast<U>(a) * static_cast<U>(b));
    case ScalarOp::Div:
      return divide(t, a, b).quotient;
    case ScalarOp::FloorDiv: {
      const Division d = divide(t, a, b);
      return d.remainder != 0 && signs_differ(t, a, b) ? d.quotient - 1 : d.quotient;
    }
    case ScalarOp::Fmod:
      return divide(t, a, b).remainder;
    case ScalarOp::Mod: {
      const I r = divide(t, a, b).remainder;
      return r != 0 && signs_differ(t, r, b) ? r + b : r;
    }
    case ScalarOp::Pow:
      return integer_pow(t, a, b);
    case ScalarOp::Max:
      return integer_less(t, a, b) ? b : a;
    case ScalarOp::Min:
      return integer_less(t, b, a) ? b : a;
    case ScalarOp::And:
      return a & b;
    case ScalarOp::Or:
      return a | b;
    case ScalarOp::Xor:
      return a ^ b;
    case ScalarOp::Shl:
    case ScalarOp::Shr:
      return shift(op, t, a, b);
    default:
      bad(op, t);
  }
}

Scalar cast(DType from, DType to, Scalar x) {
  if (is_float(from)) {
    if (is_float(to)) return {round_to(to, x.f), 0};
    if (is_bool(to)) return {0, x.f != 0};
    return {0, clamp_to_int(to, x.f)};
  }
  if (!is_float(to)) return {0, wrap_to(to, x.i)};
  return {int_to_float(to, x.i, from == DType::U64), 0};
}

Scalar bitcast(DType from, DType to, Scalar x) {
  const U raw = is_float(from) ? encode_float(from, x.f) : static_cast<U>(x.i);
  if (!is_float(to)) return {0, wrap_to(to, static_cast<I>(raw))};
  const int unused = 64 - bits(to);
  return {decode_float(to, (raw << unused) >> unused), 0};
}

double fused(DType t, double a, double b, double c) {
  if (t == DType::F32)
    return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  return std::fma(a, b, c);
}

Scalar predicate(ScalarOp op, DType from, std::span<const Scalar> x) {
  if (op == ScalarOp::IsNan) return {0, std::isnan(x[0].f)};
  if (op == ScalarOp::IsInf) return {0, std::isinf(x[0].f)};
  if (is_float(from)) return {0, compare(op, from, x[0].f, x[1].f)};
  if (is_signed_int(from)) return {0, compare(op, from, x[0].i, x[1].i)};
  return {0, compare(op, from, static_cast<U>(x[0].i), static_cast<U>(x[1].i))};
}

}  // namespace

Scalar evaluate(ScalarOp op, DType from, DType to, std::span<const Scalar> x) {
  switch (info(op).result) {
    case ScalarResult::Bool:
      return predicate(op, from, x);
    case ScalarResult::Select:
      return x[0].i != 0 ? x[1] : x[2];
    case ScalarResult::Cast:
      return op == ScalarOp::Cast ? cast(from, to, x[0]) : bitcast(from, to, x[0]);
    case ScalarResult::Same:
      break;
  }
  const int arity = info(op).operands;
  if (is_float(from)) {
    if (arity == 3) return {round_to(to, fused(from, x[0].f, x[1].f, x[2].f)), 0};
    const double r =
        arity == 1 ? float_unary(op, from, x[0].f) : float_binary(op, from, x[0].f, x[1].f);
    return {round_to(to, r), 0};
  }
  if (arity == 3) {
    const U r = static_cast<U>(x[0].i) * static_cast<U>(x[1].i) + static_cast<U>(x[2].i);
    return {0, wrap_to(to, static_cast<I>(r))};
  }
  const I r =
      arity == 1 ? integer_unary(op, from, x[0].i) : integer_binary(op, from, x[0].i, x[1].i);
  return {0, wrap_to(to, r)};
}

}  // namespace weft
