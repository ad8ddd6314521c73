#include "support.h"

namespace weft::graph {
namespace {

using namespace testing;

Attrs dot_attrs(Sizes lb, Sizes rb, Sizes lc, Sizes rc, DType t) {
  return attrs({{Attr::LhsBatch, list(lb)}, {Attr::RhsBatch, list(rb)}, {Attr::LhsContract, list(lc)},
                {Attr::RhsContract, list(rc)}, {Attr::DType, type(t)}});
}

TEST(InterpretContraction, DotWithBatchesAndAnyAxisOrder) {
  // lhs [k, b, m], rhs [n, k, b] -> [b, m, n]
  const Tensor lhs = of(DType::F32, {2, 2, 1}, {1, 2, 3, 4}), rhs = of(DType::F32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_results(run(Op::Dot, {lhs, rhs}, dot_attrs({1}, {2}, {0}, {1}, DType::F32)),
                 {of(DType::F32, {2, 1, 2}, {10, 26, 20, 44})});
}

TEST(InterpretContraction, DotOfOddSizesAgreesWithTheDefinition) {
  const std::int64_t m = 7, n = 9, k = 13;
  std::vector<double> a, b, y(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m * k; ++i) a.push_back(static_cast<double>(i % 11) - 5);
  for (std::int64_t i = 0; i < k * n; ++i) b.push_back(static_cast<double>(i % 7) - 3);
  for (std::int64_t i = 0; i < m * n; ++i) {
    for (std::int64_t p = 0; p < k; ++p) y[i] += a[i / n * k + p] * b[p * n + i % n];
  }
  for (DType t : {DType::F32, DType::F64, DType::BF16, DType::I32}) {
    SCOPED_TRACE(name(t));
    expect_results(run(Op::Dot, {of(t, {m, k}, a), of(t, {k, n}, b)}, dot_attrs({}, {}, {1}, {0}, t)), {of(t, {m, n}, y)});
  }
}

TEST(InterpretContraction, DotEdges) {
  const Attrs f = dot_attrs({}, {}, {1}, {0}, DType::F32);
  expect_results(run(Op::Dot, {of(DType::F32, {2, 0}, {}), of(DType::F32, {0, 2}, {})}, f), {of(DType::F32, {2, 2}, {0, 0, 0, 0})});
  expect_results(run(Op::Dot, {of(DType::F32, {0, 2}, {}), of(DType::F32, {2, 2}, {1, 2, 3, 4})}, f), {of(DType::F32, {0, 2}, {})});
  expect_results(run(Op::Dot, {f32({1, kInf}), f32({0, 0})}, dot_attrs({}, {}, {0}, {0}, DType::F32)), {of(DType::F32, {}, {kNan})});
  expect_results(run(Op::Dot, {of(DType::F32, {1, 3}, {1e8, 1, -1e8}), of(DType::F32, {3, 1}, {1, 1, 1})}, f), {of(DType::F32, {1, 1}, {1})});
  expect_results(run(Op::Dot, {ints(DType::U8, {1, 2}, {255, 255}), ints(DType::I8, {2, 1}, {-128, -128})},
                     dot_attrs({}, {}, {1}, {0}, DType::I32)),
                 {ints(DType::I32, {1, 1}, {-65280})});
}

struct ConvSpec {
  Sizes strides{1, 1}, dilations{1, 1}, base{1, 1};
  Shape lo{0, 0}, hi{0, 0};
  std::int64_t groups = 1;
  bool last = false;
};

Result<Tensors> conv(const Tensor& x, const Tensor& w, const ConvSpec& s, DType t = DType::F32) {
  return run(Op::Conv, {x, w},
             attrs({{Attr::Strides, list(s.strides)}, {Attr::Lo, dims(s.lo)}, {Attr::Hi, dims(s.hi)},
                    {Attr::Dilations, list(s.dilations)}, {Attr::BaseDilations, list(s.base)}, {Attr::Groups, num(s.groups)},
                    {Attr::ChannelsLast, flag(s.last)}, {Attr::DType, type(t)}}));
}

TEST(InterpretContraction, ConvWithGroupsStridesAndPadding) {
  const Tensor x = of(DType::F32, {1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  const Tensor w = of(DType::F32, {2, 1, 2, 1}, {1, 2, 3, 4});
  expect_results(conv(x, w, {.groups = 2}), {of(DType::F32, {1, 2, 1, 2}, {7, 10, 150, 220})});
  expect_results(conv(x, w, {.strides = {1, 2}, .lo = {1, 0}, .groups = 2}),
                 {of(DType::F32, {1, 2, 2, 1}, {2, 7, 40, 150})});
}

TEST(InterpretContraction, ConvChannelsLastIsTheSame) {
  const Tensor x = of(DType::F32, {1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});  // N H W C
  const Tensor w = of(DType::F32, {2, 1, 2, 1}, {1, 1, 2, 2});                  // K K C O
  expect_results(conv(x, w, {.last = true}), {of(DType::F32, {1, 1, 2, 1}, {33 + 66 - 22, 110 - 0})});
}

TEST(InterpretContraction, ConvOfASpreadInput) {
  const Tensor x = of(DType::F32, {1, 1, 2, 1}, {1, 2}), w = of(DType::F32, {1, 1, 3, 1}, {1, 10, 100});
  expect_results(conv(x, w, {.base = {2, 1}, .lo = {2, 0}, .hi = {2, 0}}),
                 {of(DType::F32, {1, 1, 5, 1}, {100, 10, 201, 20, 2})});
  expect_results(conv(x, w, {.base = {2, 1}, .lo = {1, 0}, .hi = {1, 0}}), {of(DType::F32, {1, 1, 3, 1}, {10, 201, 20})});
  expect_results(conv(of(DType::F32, {1, 1, 4, 1}, {1, 2, 3, 4}), of(DType::F32, {1, 1, 1, 1}, {1}), {.lo = {-1, 0}, .hi = {-1, 0}}),
                 {of(DType::F32, {1, 1, 2, 1}, {2, 3})});
}

TEST(InterpretContraction, ConvEdges) {
  const Tensor w = of(DType::F32, {1, 1, 3, 1}, {1, 1, 1});
  expect_results(conv(of(DType::F32, {1, 1, 2, 1}, {1, 2}), w, {}), {of(DType::F32, {1, 1, 0, 1}, {})});
  expect_results(conv(of(DType::F32, {0, 1, 3, 1}, {}), w, {}), {of(DType::F32, {0, 1, 1, 1}, {})});
  expect_results(conv(of(DType::F32, {1, 1, 5, 1}, {1, 2, 3, 4, 5}), w, {.dilations = {2, 1}}), {of(DType::F32, {1, 1, 1, 1}, {9})});
  expect_results(conv(ints(DType::U8, {1, 1, 1, 1}, {200}), ints(DType::I8, {1, 1, 1, 1}, {-100}), {}, DType::I32),
                 {ints(DType::I32, {1, 1, 1, 1}, {-20000})});
}

TEST(InterpretContraction, ConvPaddingIsMultiplied) {
  const Tensor x = of(DType::F32, {1, 1, 3, 1}, {1, 2, 3}), w = of(DType::F32, {1, 1, 3, 1}, {kInf, 1, 1});
  expect_results(conv(x, w, {.lo = {1, 0}, .hi = {1, 0}}), {of(DType::F32, {1, 1, 3, 1}, {kNan, kInf, kInf})});
}

Attrs window(std::int64_t size, std::int64_t stride, std::int64_t lo, std::int64_t hi, std::int64_t dilation = 1) {
  return attrs({{Attr::Window, list({size})}, {Attr::Strides, list({stride})}, {Attr::Lo, dims({lo})},
                {Attr::Hi, dims({hi})}, {Attr::Dilations, list({dilation})}});
}

TEST(InterpretContraction, Windows) {
  const Tensor x = f32({1, kNan, 3, 2, 2});
  expect_results(run(Op::WindowMax, {x}, window(2, 1, 0, 0)), {f32({kNan, kNan, 3, 2})});
  expect_results(run(Op::WindowArgMax, {x}, window(2, 1, 0, 0)), {i64({1, 1, 2, 3})});
  expect_results(run(Op::WindowSum, {f32({1, 2, 3, 4, 5})}, window(2, 2, 0, 0, 3)), {f32({5})});
  expect_results(run(Op::WindowMax, {ints(DType::I8, {2}, {-3, -4})}, window(2, 2, 1, 1)), {ints(DType::I8, {2}, {-3, -4})});
}

TEST(InterpretContraction, WindowsOfPaddingOnly) {
  expect_results(run(Op::WindowMax, {f32({1})}, window(1, 1, 1, 0)), {f32({-kInf, 1})});
  expect_results(run(Op::WindowSum, {f32({1})}, window(1, 1, 1, 0)), {f32({0, 1})});
  expect_results(run(Op::WindowArgMax, {f32({1})}, window(1, 1, 1, 0)), {i64({-1, 0})});
  expect_results(run(Op::WindowMax, {f32({})}, window(1, 1, 0, 0)), {f32({})});
}

}  // namespace
}  // namespace weft::graph
