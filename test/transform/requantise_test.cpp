// Quantisation after products of bytes: what is taken together, and that it stays what it was.
#include "graph/builder.h"
#include "graph/rewrite.h"
#include "support.h"
#include "transform/passes.h"

namespace weft::transform {
namespace {

using namespace testing;
using graph::Attr;
using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::ValueId;
using GOp = graph::Op;
using Ints = std::vector<std::int64_t>;

Tensor any(DType t, Ints shape, double least, double most, std::mt19937& rng) {
  Tensor x = Tensor::zeros(t, std::move(shape)).value();
  std::uniform_real_distribution<double> from(least, most);
  for (std::int64_t i = 0; i < x.size(); ++i) is_float(t) ? x.set_f64(i, from(rng)) : x.set_i64(i, static_cast<std::int64_t>(from(rng)));
  return x;
}

int count(const Graph& g, GOp op) {
  return static_cast<int>(std::count_if(g.nodes().begin(), g.nodes().end(), [&](const graph::Node& n) { return n.op == op; }));
}

ValueId quantised(Builder& b, ValueId x, ValueId scale, std::int64_t zero) {
  const ValueId q = b.unary(GOp::Round, b.binary(GOp::Div, x, scale));
  return b.cast(b.binary(GOp::Add, q, b.scalar(DType::F32, static_cast<double>(zero))), DType::U8);
}

ValueId real(Builder& b, ValueId q, std::int64_t zero, double scale) {
  const ValueId whole = b.binary(GOp::Sub, b.cast(q, DType::I32), b.scalar(DType::I32, static_cast<double>(zero)));
  return b.binary(GOp::Mul, b.cast(whole, DType::F32), b.scalar(DType::F32, scale));
}

// max(x . w * s + b, 0), in f32
ValueId layer(Builder& b, ValueId x, std::mt19937& rng) {
  const ValueId y = b.dot(x, b.constant(any(DType::I8, {24, 10}, -128, 128, rng)), {}, {}, {1}, {0}, DType::I32);
  const ValueId scaled = b.binary(GOp::Mul, b.cast(y, DType::F32), b.constant(any(DType::F32, {1, 10}, 1e-4, 1e-2, rng)));
  return b.binary(GOp::Max, b.binary(GOp::Add, scaled, b.constant(any(DType::F32, {1, 10}, -3, 3, rng))), b.scalar(DType::F32, 0));
}

// Results are the same but for one step where a value lies between two.
void expect_same(const Graph& g, const Graph& n, const std::vector<Tensor>& inputs, std::int64_t step) {
  const auto want = graph::interpret(g, inputs), got = graph::interpret(n, inputs);
  ASSERT_TRUE(want.ok() && got.ok()) << graph::print(n);
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < (*want)[0].size(); ++i) {
    const std::int64_t off = std::abs((*want)[0].i64(i) - (*got)[0].i64(i));
    EXPECT_LE(off, step) << i;
    differ += off != 0;
  }
  EXPECT_LE(differ, (*want)[0].size() / 50);
}

TEST(Requantise, FactorsAreTakenTogether) {
  std::mt19937 rng(7);
  Graph g;
  const ValueId x = g.add_input({DType::U8, {30, 24}}, "x");
  Builder b(g);
  g.set_outputs({quantised(b, layer(b, x, rng), b.scalar(DType::F32, 0.037), 3)});
  const Graph n = requantise(g, {}).value();
  EXPECT_EQ(count(n, GOp::Div), 0) << graph::print(n);
  EXPECT_EQ(count(n, GOp::Mul), 1) << graph::print(n);
  expect_same(g, n, {any(DType::U8, {30, 24}, 0, 256, rng)}, 1);
}

TEST(Requantise, ScalesFoundWhenTheModelRuns) {
  std::mt19937 rng(7);
  Graph g;
  const ValueId x = g.add_input({DType::U8, {30, 24}}, "x"), scale = g.add_input({DType::F32, {}}, "scale");
  Builder b(g);
  g.set_outputs({quantised(b, layer(b, x, rng), scale, 0)});
  const Graph n = requantise(g, {}).value();
  EXPECT_EQ(count(n, GOp::Div), 0) << graph::print(n);
  for (const double s : {0.02, 1e-40, 0.0}) {
    Tensor given = Tensor::zeros(DType::F32, {}).value();
    given.set_f64(0, s);
    expect_same(g, n, {any(DType::U8, {30, 24}, 0, 256, rng), given}, s > 1e-30 ? 1 : 255);
  }
}

TEST(Requantise, TheGreatestOfBytes) {
  std::mt19937 rng(7);
  Graph g;
  const ValueId x = g.add_input({DType::U8, {1, 5, 6, 24}}, "x");
  Builder b(g);
  const ValueId y = b.dot(x, b.constant(any(DType::I8, {24, 4}, -128, 128, rng)), {}, {}, {3}, {0}, DType::I32);
  constexpr double kScale = 0.3;
  const ValueId bytes = quantised(b, b.binary(GOp::Mul, b.cast(y, DType::F32), b.scalar(DType::F32, 1e-3)), b.scalar(DType::F32, kScale), 77);
  Attrs attrs;
  attrs.set(Attr::Window, Ints{1, 3, 3, 1}).set(Attr::Strides, Ints{1, 2, 2, 1}).set(Attr::Dilations, Ints{1, 1, 1, 1});
  attrs.set(Attr::Lo, Shape{0, 1, 1, 0}).set(Attr::Hi, Shape{0, 1, 1, 0});
  const ValueId most = b.node(GOp::WindowMax, {real(b, bytes, 77, kScale)}, attrs);
  g.set_outputs({quantised(b, most, b.scalar(DType::F32, kScale), 77)});
  ASSERT_TRUE(b.status().ok());
  const Graph n = requantise(g, {}).value();
  for (const graph::Node& node : n.nodes()) {
    if (node.op != GOp::WindowMax) continue;
    EXPECT_EQ(n.type(node.results[0]).dtype, DType::U8) << graph::print(n);
  }
  EXPECT_EQ(count(n, GOp::Mul), 1) << graph::print(n);
  expect_same(g, n, {any(DType::U8, {1, 5, 6, 24}, 0, 256, rng)}, 1);
}

TEST(Requantise, WhatDependsOnNoProductStays) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {30}}, "x");
  Builder b(g);
  g.set_outputs({quantised(b, x, b.scalar(DType::F32, 0.037), 3)});
  EXPECT_EQ(graph::print(requantise(g, {}).value()), graph::print(g));
}

}  // namespace
}  // namespace weft::transform
