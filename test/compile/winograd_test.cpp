// Convolutions in Winograd's form: where they are chosen, that they compute the same, how far they round, and that what
// is not finite never spreads.
#include <fmt/format.h>

#include <limits>

#include "compile/support.h"
#include "graph/builder.h"

namespace weft::compiler::testing {
namespace {

using graph::Attr;
using graph::Attrs;
using graph::Graph;
using graph::ValueId;
using GOp = graph::Op;
using transform::Precision;

struct Conv {
  Shape input;  // [N, H, W, C]
  std::int64_t outputs;
  std::int64_t pad;
  std::int64_t tile = 0;  // that is expected
};

enum class Values { Normal, Positive, Wide };

double draw(Values kind, std::mt19937& random) {
  std::normal_distribution<double> normal;
  if (kind == Values::Positive) return std::fabs(normal(random));
  if (kind == Values::Wide) return normal(random) * std::pow(10.0, static_cast<double>(random() % 9) - 4);
  return normal(random);
}

Tensor values(Sizes shape, Values kind, std::mt19937& random) {
  Tensor t = Tensor::zeros(DType::F32, std::move(shape)).value();
  for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, draw(kind, random));
  return t;
}

// max(conv(x) + bias, 0) + x where the channels stay the same.
Graph model(const Conv& c, Values kind, bool chain) {
  Graph g;
  std::mt19937 random(5);
  g.facts.declare("n", {0, 8, 1});
  const ValueId x = g.add_input({DType::F32, c.input}, "x");
  graph::Builder b(g);
  const std::int64_t channels = c.input[3].value();
  const ValueId w = b.constant(values({3, 3, channels, c.outputs}, kind, random));
  Attrs attrs;
  const Sizes ones{1, 1};
  attrs.set(Attr::Strides, ones).set(Attr::Dilations, ones).set(Attr::BaseDilations, ones).set(Attr::Groups, std::int64_t{1});
  attrs.set(Attr::ChannelsLast, true).set(Attr::Lo, Shape(2, Dim(c.pad))).set(Attr::Hi, Shape(2, Dim(c.pad))).set(Attr::DType, DType::F32);
  ValueId y = b.node(GOp::Conv, {x, w}, attrs);
  if (chain) {
    y = b.binary(GOp::Add, y, b.constant(values({c.outputs}, kind, random)));
    y = b.binary(GOp::Max, y, b.scalar(DType::F32, 0));
    if (channels == c.outputs && c.pad == 1) y = b.binary(GOp::Add, y, x);
  }
  g.set_outputs({y});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

Compiled compiled(const Graph& g, Precision precision) {
  Options options;
  options.cache = false;
  options.jobs = 1;
  options.passes.precision = precision;
  return compile(g, options).value();
}

int count(const Graph& g, std::int64_t tile) {
  int n = 0;
  for (const auto& node : g.nodes()) n += node.op == GOp::ConvWinograd && node.attrs.integer(Attr::Tile) == tile;
  return n;
}

TEST(Winograd, ComputesWhatTheConvolutionDoes) {
  const Conv cases[]{{{1, 28, 28, 64}, 64, 1, 4},
                     {{1, 30, 30, 64}, 64, 1, 2},
                     {{Dim::symbol("n"), 12, 20, 128}, 96, 1, 4},
                     {{2, 18, 18, 96}, 128, 0, 4},
                     {{1, 14, 18, 100}, 72, 1, 2}};
  for (const Conv& c : cases) {
    const Graph g = model(c, Values::Normal, true);
    const Compiled made = compiled(g, Precision::High);
    ASSERT_EQ(count(*made.graph, c.tile), 1) << graph::print(*made.graph);
    const runtime::Executable exe(made.plan);
    for (std::int64_t n : c.input[0].is_const() ? Sizes{c.input[0].value()} : Sizes{0, 1, 3}) {
      std::mt19937 random(9);
      Sizes shape{n, c.input[1].value(), c.input[2].value(), c.input[3].value()};
      const Tensors inputs{values(shape, Values::Normal, random)};
      const Tensors want = graph::interpret(g, inputs).value();
      expect_same(run(exe, inputs, 2), want, graph::print(*made.graph));
      expect_same(graph::interpret(*made.graph, inputs).value(), want, "interpreted");
    }
  }
}

// The same with f64 results.
Graph exact(const Graph& g) {
  Graph out;
  const ValueId x = out.add_input({DType::F64, g.type(g.inputs()[0]).shape}, "x");
  graph::Builder b(out);
  const graph::Node& conv = *g.def(g.outputs()[0]);
  Attrs attrs = conv.attrs;
  attrs.set(Attr::DType, DType::F64);
  out.set_outputs({b.node(GOp::Conv, {x, b.cast(b.constant(*g.constant(conv.operands[1])), DType::F64)}, attrs)});
  return out;
}

Tensor as_f64(const Tensor& x) {
  Tensor y = Tensor::zeros(DType::F64, x.shape()).value();
  for (std::int64_t i = 0; i < x.size(); ++i) y.set_f64(i, x.f64(i));
  return y;
}

TEST(Winograd, RoundsAsThePrecisionSays) {
  for (const Conv& c : {Conv{{1, 28, 28, 64}, 64, 1}, Conv{{1, 30, 30, 64}, 64, 1}}) {
    for (Values kind : {Values::Normal, Values::Positive, Values::Wide}) {
      const Graph g = model(c, kind, false);
      std::mt19937 random(3);
      const Tensor x = values({1, c.input[1].value(), c.input[2].value(), 64}, kind, random);
      const Tensor want = graph::interpret(exact(g), {as_f64(x)}).value()[0];
      const Tensor got = run(runtime::Executable(compiled(g, Precision::High).plan), {x})[0];
      double error = 0, largest = 0;
      for (std::int64_t i = 0; i < want.size(); ++i) {
        error = std::max(error, std::fabs(got.f64(i) - want.f64(i)));
        largest = std::max(largest, std::fabs(want.f64(i)));
      }
      EXPECT_LE(error, 1e-5 * largest) << static_cast<int>(kind);
    }
  }
}

TEST(Winograd, AsksForTheExactFormWhereAValueIsNotFinite) {
  const Graph g = model({{1, 28, 28, 64}, 64, 1}, Values::Normal, true);
  const runtime::Executable exe(compiled(g, Precision::High).plan);
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan(""), 3e38}) {
    std::mt19937 random(1);
    Tensor x = values({1, 28, 28, 64}, Values::Normal, random);
    x.set_f64(777, bad);
    Tensors outputs;
    const auto done = exe.run({x}, outputs);
    ASSERT_FALSE(done.ok()) << bad;
    EXPECT_EQ(done.error().code(), "needs-exact");
  }
}

TEST(Winograd, LeavesWhatItWouldNotSpeedUp) {
  const Graph plain = model({{1, 28, 28, 64}, 64, 1}, Values::Normal, false);
  EXPECT_EQ(count(*compiled(plain, Precision::Highest).graph, 2) + count(*compiled(plain, Precision::Highest).graph, 4), 0);
  for (const Conv& c : {Conv{{1, 7, 7, 512}, 512, 1}, Conv{{1, 28, 28, 3}, 64, 1}, Conv{{1, 27, 27, 64}, 64, 1}}) {
    const Graph g = model(c, Values::Normal, false);
    EXPECT_EQ(count(*compiled(g, Precision::High).graph, 2) + count(*compiled(g, Precision::High).graph, 4), 0);
  }
}

}  // namespace
}  // namespace weft::compiler::testing
