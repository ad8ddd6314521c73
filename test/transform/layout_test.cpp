// The layout pass: where the transposes end up, and that the results stay the same.
#include "graph/builder.h"
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

struct ConvShape {
  Ints kernel;
  std::int64_t out, groups = 1, stride = 1, pad = 0, dilation = 1, base = 1;
};

// Channels-first convolution with constant weights and a bias per channel.
ValueId conv(Builder& b, ValueId x, const ConvShape& s, std::mt19937& rng) {
  const std::size_t n = s.kernel.size();
  Ints w{s.out, b.shape(x)[1].value() / s.groups};
  w.insert(w.end(), s.kernel.begin(), s.kernel.end());
  Attrs attrs;
  attrs.set(Attr::Strides, Ints(n, s.stride)).set(Attr::Dilations, Ints(n, s.dilation));
  attrs.set(Attr::BaseDilations, Ints(n, s.base)).set(Attr::Groups, s.groups).set(Attr::ChannelsLast, false);
  attrs.set(Attr::Lo, Shape(n, Dim(s.pad))).set(Attr::Hi, Shape(n, Dim(s.pad))).set(Attr::DType, DType::F32);
  const ValueId weights = b.constant(random_tensor(DType::F32, w, rng, Values::Tame));
  const ValueId y = b.node(GOp::Conv, {x, weights}, attrs);
  const ValueId bias = b.constant(random_tensor(DType::F32, {s.out}, rng, Values::Tame));
  return b.binary(GOp::Add, y, b.broadcast_in(bias, b.shape(y), {1}));
}

Graph optimized(const Graph& g) {
  PassOptions options;
  options.verify_each = true;
  auto out = optimize(g, options);
  if (!out.ok()) {
    ADD_FAILURE() << out.error().what() << graph::print(g);
    return g;
  }
  return *out;
}

Graph with(ValueId (*body)(Builder&, ValueId, std::mt19937&), Shape shape) {
  Graph g;
  std::mt19937 rng(7);
  g.facts.declare("n", {1, 64, 1});
  const ValueId x = g.add_input({DType::F32, std::move(shape)}, "x");
  Builder b(g);
  g.set_outputs({body(b, x, rng)});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

struct Case {
  const char* name;
  ValueId (*body)(Builder&, ValueId, std::mt19937&);
  Shape input;
  int transposes;  // at most
};

ValueId residual(Builder& b, ValueId x, std::mt19937& rng) {
  ValueId y = conv(b, x, {{3, 3}, 16, 1, 2, 1}, rng);
  ValueId z = b.binary(GOp::Max, conv(b, y, {{1, 1}, 32}, rng), b.scalar(DType::F32, 0));
  z = conv(b, conv(b, z, {{3, 3}, 32, 32, 1, 1}, rng), {{1, 1}, 16}, rng);
  y = b.binary(GOp::Add, y, z);
  y = conv(b, y, {{1, 1}, 24, 1, 2}, rng);
  return b.reduce(GOp::ReduceSum, y, {2, 3});
}

// Squeeze and excite, a concatenation and a pool.
ValueId gated(Builder& b, ValueId x, std::mt19937& rng) {
  const ValueId y = conv(b, x, {{3, 3}, 16, 1, 1, 1}, rng);
  ValueId s = b.reduce(GOp::ReduceSum, y, {2, 3}, true);
  s = b.unary(GOp::Sigmoid, conv(b, conv(b, s, {{1, 1}, 4}, rng), {{1, 1}, 16}, rng));
  const ValueId gate = b.binary(GOp::Mul, y, s);
  Attrs window;
  window.set(Attr::Window, Ints{1, 1, 3, 3}).set(Attr::Strides, Ints{1, 1, 1, 1}).set(Attr::Dilations, Ints{1, 1, 1, 1});
  window.set(Attr::Lo, Shape{0, 0, 1, 1}).set(Attr::Hi, Shape{0, 0, 1, 1});
  const ValueId pooled = b.node(GOp::WindowMax, {gate}, window);
  const ValueId both = b.concat({gate, pooled, y}, 1);
  const ValueId half = b.slice_axis(both, 1, 8, 24);
  return b.reduce(GOp::ReduceMax, conv(b, half, {{3, 3}, 16}, rng), {1});
}

// Patches: the convolution's result is flattened and transposed, as vision transformers do.
ValueId patches(Builder& b, ValueId x, std::mt19937& rng) {
  const ValueId y = conv(b, x, {{4, 4}, 32, 1, 4}, rng);
  const Shape& s = b.shape(y);
  return b.transpose(b.reshape(y, {s[0], s[1], s[2] * s[3]}), {0, 2, 1});
}

ValueId deconvolution(Builder& b, ValueId x, std::mt19937& rng) {
  return b.reduce(GOp::ReduceMax, conv(b, conv(b, x, {{3, 3}, 16, 1, 1, 1}, rng), {{2, 2}, 8, 1, 1, 1, 1, 2}, rng), {1});
}

ValueId upsampled(Builder& b, ValueId x, std::mt19937& rng) {
  ValueId y = conv(b, x, {{3, 3}, 16, 1, 1, 1}, rng);
  const ValueId rows = b.constant(Tensor::of({0, 0, 1, 1, 3, 2}));
  y = b.gather(b.gather(y, rows, 2), rows, 3);
  return b.reduce(GOp::ReduceSum, conv(b, y, {{3, 3}, 16, 1, 1, 1, 2}, rng), {2, 3});
}

ValueId line(Builder& b, ValueId x, std::mt19937& rng) {
  ValueId y = b.unary(GOp::Tanh, conv(b, x, {{5}, 16, 1, 2, 2}, rng));
  y = conv(b, y, {{4}, 16, 1, 1, 2, 1, 2}, rng);
  return b.reduce(GOp::ReduceMax, y, {2});
}

ValueId volume(Builder& b, ValueId x, std::mt19937& rng) {
  return b.reduce(GOp::ReduceSum, conv(b, conv(b, x, {{3, 3, 3}, 16, 1, 1, 1}, rng), {{1, 1, 1}, 8}, rng), {2, 3, 4});
}

// Normalised over channels between transposes, as ConvNeXt does.
ValueId norm_last(Builder& b, ValueId x, std::mt19937& rng) {
  const ValueId y = conv(b, x, {{2, 2}, 16, 1, 2}, rng);
  ValueId z = b.transpose(conv(b, y, {{3, 3}, 16, 16, 1, 1}, rng), {0, 2, 3, 1});
  z = b.binary(GOp::Div, z, b.reduce(GOp::ReduceMax, b.unary(GOp::Abs, z), {3}, true));
  z = b.transpose(b.matmul(z, b.constant(random_tensor(DType::F32, {16, 16}, rng, Values::Tame))), {0, 3, 1, 2});
  return b.reduce(GOp::ReduceSum, b.binary(GOp::Add, y, z), {2, 3});
}

ValueId group_norm(Builder& b, ValueId x, std::mt19937& rng) {
  const ValueId y = conv(b, x, {{3, 3}, 16, 1, 1, 1}, rng);
  const Shape s = b.shape(y);
  ValueId z = b.reshape(y, {s[0], 4, s[2] * s[3] * 4});
  z = b.binary(GOp::Sub, z, b.reduce(GOp::ReduceMax, z, {2}, true));
  z = b.unary(GOp::Exp, z);
  z = b.reshape(b.binary(GOp::Div, z, b.reduce(GOp::ReduceSum, z, {2}, true)), s);
  z = b.binary(GOp::Mul, z, b.constant(random_tensor(DType::F32, {16, 1, 1}, rng, Values::Tame)));
  return b.reduce(GOp::ReduceSum, conv(b, z, {{3, 3}, 16, 1, 1, 1}, rng), {2, 3});
}

ValueId few_channels(Builder& b, ValueId x, std::mt19937& rng) { return conv(b, x, {{3, 3}, 2, 1, 1, 1}, rng); }

const Case kCases[] = {
    {"residual", residual, {Dim::symbol("n"), 3, 11, 13}, 1},
    {"gated", gated, {Dim::symbol("n"), 3, 7, 6}, 1},
    {"patches", patches, {Dim::symbol("n"), 3, 16, 8}, 1},
    {"deconvolution", deconvolution, {2, 3, 5, 4}, 2},
    {"upsampled", upsampled, {Dim::symbol("n"), 3, 4, 5}, 1},
    {"line", line, {Dim::symbol("n"), 3, 9}, 1},
    {"volume", volume, {1, 3, 4, 5, 3}, 1},
    {"norm_last", norm_last, {Dim::symbol("n"), 3, 8, 6}, 1},
    {"group_norm", group_norm, {Dim::symbol("n"), 3, 6, 5}, 1},
    {"few_channels", few_channels, {Dim::symbol("n"), 3, 8, 6}, 0},
};

TEST(Layout, TransposesVanishBetweenConvolutions) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Graph before = with(c.body, c.input);
    const Graph after = optimized(before);
    EXPECT_LE(count(after, GOp::Transpose), c.transposes) << graph::print(after);
    for (std::int64_t n : {1, 3}) expect_same_results(before, after, {{"n", n}}, Values::Tame, 1e-5, 2);
  }
}

TEST(Layout, PointwiseConvolutionsAreDots) {
  const Graph after = optimized(with(residual, {Dim::symbol("n"), 3, 11, 13}));
  EXPECT_EQ(count(after, GOp::Dot), 3);
  EXPECT_EQ(count(after, GOp::Conv), 2);
}

TEST(Layout, AConvolutionOfFewChannelsStaysAsItIs) {
  const Graph after = optimized(with(few_channels, {Dim::symbol("n"), 3, 8, 6}));
  for (const graph::Node& node : after.nodes()) {
    if (node.op != GOp::Conv) continue;
    EXPECT_FALSE(node.attrs.flag(Attr::ChannelsLast));
  }
}

TEST(Layout, ADeconvolutionWithoutOverlapIsADot) {
  const Graph after = optimized(with(deconvolution, {2, 3, 5, 4}));
  EXPECT_EQ(count(after, GOp::Conv), 1);
  EXPECT_EQ(count(after, GOp::Dot), 1);
}

// Chains of what the pass follows, in any order.
ValueId random_step(Builder& b, ValueId x, ValueId other, std::mt19937& rng) {
  const Shape s = b.shape(x);
  const std::int64_t c = s[1].value();
  switch (rng() % 12) {
    case 0: return conv(b, x, {{3, 3}, 8 + static_cast<std::int64_t>(rng() % 3) * 8, 1, 1, 1}, rng);
    case 1: return conv(b, x, {{1, 1}, 16, 1, 1 + static_cast<std::int64_t>(rng() % 2)}, rng);
    case 2: return conv(b, x, {{3, 3}, c, c, 1, 1}, rng);
    case 3: return b.unary(GOp::Tanh, x);
    case 4: return b.transpose(b.unary(GOp::Neg, b.transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2});
    case 5: return b.binary(GOp::Mul, x, b.reduce(GOp::ReduceMax, x, {1 + static_cast<std::int64_t>(rng() % 3)}, true));
    case 6: return b.pad(x, {0, 0, 1, 0}, {0, 2, 0, 1}, b.scalar(DType::F32, 0.5));
    case 7: return b.concat({x, b.unary(GOp::Abs, x)}, 1 + static_cast<std::int64_t>(rng() % 3));
    case 8: return b.reshape(b.binary(GOp::Add, b.reshape(x, {s[0], s[1], s[2] * s[3]}), b.scalar(DType::F32, 1)), s);
    case 9: return b.node(GOp::Reverse, {x}, Attrs().set(Attr::Axes, Ints{1, 3}));
    case 10: return b.binary(GOp::Add, x, b.constant(random_tensor(DType::F32, {c, 1, 1}, rng, Values::Tame)));
    default: return b.shape(other) == s ? b.binary(GOp::Sub, x, other) : b.slice_axis(x, 1, 0, 1 + c / 2);
  }
}

TEST(Layout, RandomChainsKeepTheirResults) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    Graph g;
    g.facts.declare("n", {1, 64, 1});
    ValueId x = g.add_input({DType::F32, {Dim::symbol("n"), 4, 6, 5}}, "x"), other = x;
    Builder b(g);
    for (int i = 0; i < 9; ++i) {
      const ValueId next = random_step(b, x, other, rng);
      if (b.shape(next)[1].value() > 64 || b.shape(next)[2].value() > 40 || b.shape(next)[3].value() > 40) continue;
      if (rng() % 2 == 0) other = x;
      x = next;
    }
    g.set_outputs({x, b.reduce(GOp::ReduceMax, x, {2})});
    ASSERT_TRUE(b.status().ok()) << b.status().error().what();
    expect_same_results(g, optimized(g), {{"n", 2}}, Values::Tame, 1e-4, 1);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weft::transform
