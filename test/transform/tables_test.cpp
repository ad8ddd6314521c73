// Chains between bytes as tables: which are, and that they give what the chain gave, for every byte.
#include "graph/builder.h"
#include "graph/rewrite.h"
#include "support.h"
#include "transform/passes.h"

namespace weft::transform {
namespace {

using namespace testing;
using graph::Builder;
using graph::Graph;
using graph::ValueId;
using GOp = graph::Op;

constexpr std::int64_t kBytes = 256;

int gathers(const Graph& g) {
  return static_cast<int>(std::count_if(g.nodes().begin(), g.nodes().end(), [](const graph::Node& n) { return n.op == GOp::Gather; }));
}

ValueId real(Builder& b, ValueId q, double zero, double scale) {
  const ValueId whole = b.binary(GOp::Sub, b.cast(q, DType::I32), b.scalar(DType::I32, zero));
  return b.binary(GOp::Mul, b.cast(whole, DType::F32), b.scalar(DType::F32, scale));
}

ValueId quantised(Builder& b, ValueId x, double zero, double scale, DType to) {
  const ValueId q = b.unary(GOp::Round, b.binary(GOp::Div, x, b.scalar(DType::F32, scale)));
  return b.cast(b.binary(GOp::Add, q, b.scalar(DType::F32, zero)), to);
}

// x * (1 + erf(x / 1.41)), quantised after each step as quantised models have it.
ValueId gelu(Builder& b, ValueId q, DType t) {
  const double zero = t == DType::U8 ? 110 : -7;
  const ValueId x = real(b, q, zero, 0.03);
  const ValueId erf = quantised(b, b.unary(GOp::Erf, b.binary(GOp::Div, x, b.scalar(DType::F32, 1.41))), zero, 1.0 / 127, t);
  const ValueId gate = b.binary(GOp::Add, real(b, erf, zero, 1.0 / 127), b.scalar(DType::F32, 1));
  return quantised(b, b.binary(GOp::Mul, x, gate), zero, 0.02, t);
}

Tensor all_bytes(DType t) {
  Tensor x = Tensor::zeros(t, {kBytes}).value();
  for (std::int64_t i = 0; i < kBytes; ++i) x.set_i64(i, t == DType::U8 ? i : i - kBytes / 2);
  return x;
}

TEST(Tables, AnActivationBetweenBytes) {
  for (const DType t : {DType::U8, DType::I8}) {
    Graph g;
    const ValueId q = g.add_input({t, {Dim::symbol("n")}}, "q");
    Builder b(g);
    g.set_outputs({gelu(b, q, t)});
    const Graph n = look_up(g, {}).value();
    EXPECT_EQ(gathers(n), 1) << graph::print(n);
    EXPECT_LE(n.nodes().size(), 5u) << graph::print(n);
    const auto want = graph::interpret(g, {all_bytes(t)}), got = graph::interpret(n, {all_bytes(t)});
    ASSERT_TRUE(want.ok() && got.ok());
    expect_alike((*want)[0], (*got)[0], 0);
  }
}

TEST(Tables, WhatStays) {
  const auto stays = [](const Graph& g) { EXPECT_EQ(gathers(look_up(g, {}).value()), 0) << graph::print(g); };
  Graph cheap;
  const ValueId p = cheap.add_input({DType::U8, {20}}, "q");
  Builder a(cheap);
  cheap.set_outputs({quantised(a, real(a, p, 3, 0.5), 4, 0.7, DType::U8)});
  stays(cheap);
  Graph two;  // bytes that it depends on
  const ValueId x = two.add_input({DType::U8, {20}}, "x"), y = two.add_input({DType::U8, {20}}, "y");
  Builder b(two);
  two.set_outputs({quantised(b, b.binary(GOp::Mul, b.unary(GOp::Exp, real(b, x, 3, 0.1)), b.unary(GOp::Erf, real(b, y, 3, 0.1))), 0, 0.1, DType::U8)});
  stays(two);
  Graph channels;  // have a number of their own each
  const ValueId z = channels.add_input({DType::U8, {2}}, "z");
  Builder c(channels);
  Tensor own = Tensor::zeros(DType::F32, {2}).value();
  own.set_f64(0, 0.5), own.set_f64(1, 0.25);
  const ValueId scaled = c.binary(GOp::Mul, real(c, z, 3, 0.1), c.constant(own));
  channels.set_outputs({quantised(c, c.unary(GOp::Erf, c.unary(GOp::Exp, c.unary(GOp::Tanh, c.unary(GOp::Sin, scaled)))), 0, 0.1, DType::U8)});
  stays(channels);
}

}  // namespace
}  // namespace weft::transform
