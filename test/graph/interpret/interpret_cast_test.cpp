#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

Result<Tensors> cast(const Tensor& x, DType to, bool saturate = false) {
  Attrs a = attrs({{Attr::DType, type(to)}});
  if (saturate) a.set(Attr::Saturate, flag(true));
  return run(Op::Cast, {x}, a);
}

TEST(InterpretCast, FloatToIntegerTruncatesAndClamps) {
  expect_results(cast(f32({1.9, -1.9, 300, -300, kNan, kInf, -kInf}), DType::I8),
                 {ints(DType::I8, {7}, {1, -1, 127, -128, 0, 127, -128})});
  expect_results(cast(f32({-1, 300, 3.5}), DType::U8), {ints(DType::U8, {3}, {0, 255, 3})});
  expect_results(cast(vec(DType::F64, {1e30, -1e30}), DType::I64), {ints(DType::I64, {2}, {INT64_MAX, INT64_MIN})});
  expect_results(cast(vec(DType::F64, {1e30, 1e19, -1}), DType::U64),
                 {ints(DType::U64, {3}, {-1, static_cast<std::int64_t>(10000000000000000000u), 0})});
  expect_results(cast(f32({7.9, -9, 100}), DType::I4), {ints(DType::I4, {3}, {7, -8, 7})});
}

TEST(InterpretCast, IntegersWrap) {
  expect_results(cast(i64({300, -1, 128}), DType::I8), {ints(DType::I8, {3}, {44, -1, -128})});
  expect_results(cast(i64({-1}), DType::U64), {ints(DType::U64, {1}, {-1})});
  expect_results(cast(i64({17, -1, 8}), DType::U4), {ints(DType::U4, {3}, {1, 15, 8})});
  expect_results(cast(ints(DType::I2, {5}, {1, -2, -1, 0, 1}), DType::I32), {i32({1, -2, -1, 0, 1})});
}

TEST(InterpretCast, Bool) {
  expect_results(cast(f32({0, -0.0, 0.5, kNan}), DType::Bool), {b8({0, 0, 1, 1})});
  expect_results(cast(i64({0, 256}), DType::Bool), {b8({0, 1})});
  expect_results(cast(b8({0, 1}), DType::F16), {vec(DType::F16, {0, 1})});
}

TEST(InterpretCast, RoundsOnceToNearestEven) {
  // By way of f32 the f64 just above half a step would round down.
  expect_results(cast(vec(DType::F64, {1 + std::ldexp(1, -11) + std::ldexp(1, -40)}), DType::F16),
                 {vec(DType::F16, {1 + std::ldexp(1, -10)})});
  expect_results(cast(f32({1 + std::ldexp(1, -8), 1 + 3 * std::ldexp(1, -8)}), DType::BF16),
                 {vec(DType::BF16, {1, 1 + std::ldexp(1, -6)})});
  // 2^60 + 2^36 + 1: by way of f64 the tie would round to even.
  expect_results(cast(ints(DType::I64, {1}, {(std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1}), DType::F32),
                 {f32({std::ldexp(1, 60) + std::ldexp(1, 37)})});
  expect_results(cast(ints(DType::U64, {1}, {-1}), DType::F32), {f32({std::ldexp(1, 64)})});
  expect_results(cast(ints(DType::I64, {1}, {70000}), DType::F16), {vec(DType::F16, {kInf})});
}

TEST(InterpretCast, SaturationOfNarrowFloats) {
  const Tensor x = f32({500, -500, kInf, kNan});
  expect_results(cast(x, DType::F8E4M3FN, true), {vec(DType::F8E4M3FN, {448, -448, 448, kNan})});
  expect_results(cast(x, DType::F8E4M3FN), {vec(DType::F8E4M3FN, {kNan, kNan, kNan, kNan})});
  const Tensor big = f32({1e6, -kInf, kNan});
  expect_results(cast(big, DType::F8E5M2, true), {vec(DType::F8E5M2, {57344, -57344, kNan})});
  expect_results(cast(big, DType::F8E5M2), {vec(DType::F8E5M2, {kInf, -kInf, kNan})});
  expect_results(cast(f32({100, -kInf}), DType::F4E2M1), {vec(DType::F4E2M1, {6, -6})});
  expect_results(cast(i64({1000}), DType::F8E4M3FN, true), {vec(DType::F8E4M3FN, {448})});
}

TEST(InterpretCast, SaturationLeavesWiderFloatsAlone) {
  expect_results(cast(f32({1e6, kInf}), DType::F16, true), {vec(DType::F16, {kInf, kInf})});
  expect_results(cast(vec(DType::F64, {1e300}), DType::F32, true), {f32({kInf})});
}

TEST(InterpretCast, NumbersToStrings) {
  expect_results(cast(f32({1, 0.1, -2.5, 1e-5, 1e16, 123456, kNan, kInf, -kInf, -0.0, 0.47892547}), DType::Str),
                 {strs({"1.0", "0.1", "-2.5", "1e-05", "1e+16", "123456.0", "nan", "inf", "-inf", "-0.0", "0.47892547"})});
  expect_results(cast(vec(DType::F64, {0.1, 1.0 / 3, 1e100, 1e15}), DType::Str),
                 {strs({"0.1", "0.3333333333333333", "1e+100", "1000000000000000.0"})});
  expect_results(cast(vec(DType::F16, {0.1, 65504}), DType::Str), {strs({"0.1", "65500.0"})});
  expect_results(cast(ints(DType::U64, {1}, {-1}), DType::Str), {strs({"18446744073709551615"})});
  expect_results(cast(ints(DType::I8, {1}, {-128}), DType::Str), {strs({"-128"})});
  expect_results(cast(b8({1, 0}), DType::Str), {strs({"True", "False"})});
}

TEST(InterpretCast, StringsToNumbers) {
  expect_results(cast(strs({"0.1", "1e-5", "1E8", "+INF", "inf", "-Inf", "NaN", " 3 ", "1e400", "1e-400"}), DType::F32),
                 {f32({0.1f, 1e-5f, 1e8, kInf, kInf, -kInf, kNan, 3, kInf, 0})});
  expect_results(cast(strs({"12", "-7", "100.5", "300"}), DType::I8), {ints(DType::I8, {4}, {12, -7, 100, 44})});
  expect_results(cast(strs({"18446744073709551615"}), DType::U64), {ints(DType::U64, {1}, {-1})});
  expect_results(cast(strs({"True", "false", "1", "0"}), DType::Bool), {b8({1, 0, 1, 0})});
  expect_results(cast(strs({"1000"}), DType::F8E4M3FN, true), {vec(DType::F8E4M3FN, {448})});
  expect_error(cast(strs({"1", "hello"}), DType::F32), "not-a-number", "element 1");
  expect_error(cast(strs({""}), DType::I32), "not-a-number");
}

TEST(InterpretCast, Complex) {
  const Tensor z = narrow(DType::C64, {2}, std::vector<WideComplex>{{1.5, 2}, {0, 0}}).value();
  expect_results(cast(z, DType::C128), {narrow(DType::C128, {2}, std::vector<WideComplex>{{1.5, 2}, {0, 0}}).value()});
  expect_error(cast(z, DType::F32), "dtype-mismatch");
  expect_results(cast(f32({1.5, 0}), DType::C128),
                 {narrow(DType::C128, {2}, std::vector<WideComplex>{{1.5, 0}, {0, 0}}).value()});
}

TEST(InterpretCast, Bitcast) {
  const auto bitcast = [](const Tensor& x, DType to) { return run(Op::Bitcast, {x}, attrs({{Attr::DType, type(to)}})); };
  expect_results(bitcast(ints(DType::U4, {3}, {15, 8, 7}), DType::I4), {ints(DType::I4, {3}, {-1, -8, 7})});
  expect_results(bitcast(ints(DType::U16, {1}, {0x3c00}), DType::F16), {vec(DType::F16, {1})});
  expect_results(bitcast(ints(DType::U8, {2}, {2, 0}), DType::Bool), {b8({1, 0})});
}

}  // namespace
}  // namespace weft::graph
