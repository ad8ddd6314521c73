#include "base/scalar.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/support.h"

namespace weft {
namespace {

std::int64_t ints(ScalarOp op, DType t, std::int64_t a, std::int64_t b = 0) {
  const Scalar x[] = {{0, a}, {0, b}};
  return evaluate(op, t, t, std::span(x, info(op).operands)).i;
}
double floats(ScalarOp op, DType t, double a, double b = 0) {
  const Scalar x[] = {{a, 0}, {b, 0}};
  return evaluate(op, t, t, std::span(x, info(op).operands)).f;
}
Scalar cast(DType from, DType to, Scalar x) { return evaluate(ScalarOp::Cast, from, to, {&x, 1}); }

TEST(Scalar, NamesParseBack) {
  for (int i = 0; i < scalar_op_count(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    EXPECT_EQ(parse_scalar_op(info(op).name), op);
  }
  EXPECT_EQ(parse_scalar_op("nothing"), std::nullopt);
}

TEST(Scalar, IntegersWrapAndDivideByZeroGivesZero) {
  EXPECT_EQ(ints(ScalarOp::Add, DType::I8, 127, 1), -128);
  EXPECT_EQ(ints(ScalarOp::Sub, DType::U8, 0, 1), 255);
  EXPECT_EQ(ints(ScalarOp::Neg, DType::I64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(ints(ScalarOp::Div, DType::I32, 7, 0), 0);
  EXPECT_EQ(ints(ScalarOp::Fmod, DType::I32, 7, 0), 0);
  EXPECT_EQ(ints(ScalarOp::Div, DType::I64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(ints(ScalarOp::Div, DType::U64, -1, 2), INT64_MAX);
}

TEST(Scalar, RemaindersTakeTheSignOfTheirOperand) {
  EXPECT_EQ(ints(ScalarOp::Fmod, DType::I32, -7, 3), -1);
  EXPECT_EQ(ints(ScalarOp::Mod, DType::I32, -7, 3), 2);
  EXPECT_EQ(ints(ScalarOp::Mod, DType::I32, 7, -3), -2);
  EXPECT_EQ(ints(ScalarOp::FloorDiv, DType::I32, -7, 3), -3);
  EXPECT_EQ(floats(ScalarOp::Fmod, DType::F32, -7, 3), -1);
  EXPECT_EQ(floats(ScalarOp::Mod, DType::F32, -7, 3), 2);
}

TEST(Scalar, ShiftsByTheWidth) {
  EXPECT_EQ(ints(ScalarOp::Shl, DType::I32, 1, 32), 0);
  EXPECT_EQ(ints(ScalarOp::Shr, DType::I32, -8, 40), -1);
  EXPECT_EQ(ints(ScalarOp::Shr, DType::U32, 0xffffffff, 32), 0);
  EXPECT_EQ(ints(ScalarOp::Shr, DType::U8, 0x80, 7), 1);
}

TEST(Scalar, IntegerPower) {
  EXPECT_EQ(ints(ScalarOp::Pow, DType::I32, 3, 4), 81);
  EXPECT_EQ(ints(ScalarOp::Pow, DType::I32, -1, -3), -1);
  EXPECT_EQ(ints(ScalarOp::Pow, DType::I32, 2, -1), 0);
  EXPECT_EQ(ints(ScalarOp::Pow, DType::I32, 0, -1), 0);
  EXPECT_EQ(ints(ScalarOp::Pow, DType::U8, 2, 9), 0);
}

TEST(Scalar, MaxAndMinPropagateNan) {
  EXPECT_TRUE(std::isnan(floats(ScalarOp::Max, DType::F32, kNan, 1)));
  EXPECT_TRUE(std::isnan(floats(ScalarOp::Min, DType::F32, 1, kNan)));
  EXPECT_EQ(floats(ScalarOp::Max, DType::F32, -kInf, 1), 1);
  EXPECT_EQ(ints(ScalarOp::Max, DType::U64, -1, 1), -1);
  EXPECT_TRUE(std::isnan(floats(ScalarOp::Sign, DType::F32, kNan)));
}

TEST(Scalar, CastsClampAndRound) {
  EXPECT_EQ(cast(DType::F32, DType::I8, {300, 0}).i, 127);
  EXPECT_EQ(cast(DType::F32, DType::U8, {-3, 0}).i, 0);
  EXPECT_EQ(cast(DType::F32, DType::I32, {kNan, 0}).i, 0);
  EXPECT_EQ(cast(DType::F32, DType::I64, {kInf, 0}).i, INT64_MAX);
  EXPECT_EQ(cast(DType::F64, DType::U64, {1e30, 0}).i, -1);
  EXPECT_EQ(cast(DType::F32, DType::I32, {-2.7, 0}).i, -2);
  EXPECT_EQ(cast(DType::I32, DType::I8, {0, 511}).i, -1);
  EXPECT_EQ(cast(DType::F32, DType::Bool, {0.5, 0}).i, 1);
  EXPECT_EQ(cast(DType::F32, DType::BF16, {1.0 + 1.0 / 512, 0}).f, 1.0);
  EXPECT_EQ(cast(DType::U64, DType::F32, {0, -1}).f, 18446744073709551616.0);
}

TEST(Scalar, BitcastKeepsBits) {
  const Scalar one = {1.0, 0};
  EXPECT_EQ(evaluate(ScalarOp::Bitcast, DType::F32, DType::I32, {&one, 1}).i, 0x3f800000);
  const Scalar raw = {0, -1082130432};
  EXPECT_EQ(evaluate(ScalarOp::Bitcast, DType::I32, DType::F32, {&raw, 1}).f, -1.0);
}

TEST(Scalar, FmaRoundsOnce) {
  const double a = 1 + std::ldexp(1.0, -12);
  const Scalar x[] = {{a, 0}, {a, 0}, {-(1 + std::ldexp(1.0, -11)), 0}};
  EXPECT_EQ(evaluate(ScalarOp::Fma, DType::F32, DType::F32, x).f, std::ldexp(1.0, -24));
}

TEST(Combine, IdentitiesAreNeutral) {
  for (DType t :
       {DType::Bool, DType::I8, DType::U16, DType::I64, DType::U64, DType::F32, DType::BF16}) {
    for (Combine c :
         {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min, Combine::And, Combine::Or}) {
      if (is_float(t) && (c == Combine::And || c == Combine::Or)) continue;
      for (int v : {0, 1}) {
        const Scalar x = {static_cast<double>(v), v};
        const Scalar y = combine(c, t, identity(c, t), x);
        EXPECT_EQ(is_float(t) ? y.f : static_cast<double>(y.i), v) << name(c) << " of " << name(t);
      }
    }
  }
  EXPECT_EQ(parse_combine("max"), Combine::Max);
}

}  // namespace
}  // namespace weft
