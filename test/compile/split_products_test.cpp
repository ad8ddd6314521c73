// Products of f32 as sums of products of bf16 parts: that they are as exact as the precision says, whatever the values,
// and that a run whose values are not exact as parts is repeated. Any machine computes them.
#include <fmt/format.h>

#include <limits>

#include "compile/support.h"
#include "graph/builder.h"
#include "loop/lower/lower.h"
#include "runtime/kernel_abi.h"

namespace weft::compiler::testing {
namespace {

using graph::Graph;
using graph::ValueId;
using transform::Precision;

enum class Operands { Normal, Wide, Tiny, Huge, Positive, Activations };

double one_of(Operands kind, std::mt19937& random) {
  std::normal_distribution<double> normal;
  const double x = normal(random);
  switch (kind) {
    case Operands::Normal: return x;
    case Operands::Wide: return x * std::pow(10.0, std::uniform_real_distribution<double>(-8, 8)(random));
    case Operands::Tiny: return x * 0x1p-60;
    case Operands::Huge: return x * 0x1p60;
    case Operands::Positive: return std::fabs(x);
    case Operands::Activations: return x * 0.5 * (1 + std::erf(x)) * (random() % 50 == 0 ? 30 : 1);
  }
  return x;
}

Tensor values(Sizes shape, Operands kind, unsigned seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::zeros(DType::F32, std::move(shape)).value();
  for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, one_of(kind, random));
  return t;
}

Graph product(const Dim& m, const Tensor& w) {
  Graph g;
  g.facts.declare("m", {0, 512, 1});
  const ValueId x = g.add_input({DType::F32, {m, w.shape()[0]}}, "x");
  graph::Builder b(g);
  g.set_outputs({b.dot(x, b.constant(w), {}, {}, {1}, {0}, DType::F32)});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

// x [batch, height, 9, channels] in a border of zeros, by w [3, 3, channels, lanes].
Graph convolution(const Dim& batch, std::int64_t height, const Tensor& w, std::int64_t stride = 1) {
  Graph g;
  g.facts.declare("m", {0, 512, 1});
  const ValueId x = g.add_input({DType::F32, {batch, height, 9, w.shape()[2]}}, "x");
  graph::Builder b(g);
  const Shape border{0, 1, 1, 0};
  const std::vector<std::int64_t> ones{1, 1};
  graph::Attrs attrs;
  attrs.set(graph::Attr::Strides, std::vector<std::int64_t>{stride, stride}).set(graph::Attr::Dilations, ones).set(graph::Attr::BaseDilations, ones);
  attrs.set(graph::Attr::Lo, Shape{0, 0}).set(graph::Attr::Hi, Shape{0, 0}).set(graph::Attr::Groups, std::int64_t{1});
  attrs.set(graph::Attr::ChannelsLast, true).set(graph::Attr::DType, DType::F32);
  const ValueId padded = b.pad(x, border, border, b.scalar(DType::F32, 0));
  g.set_outputs({b.node(graph::Op::Conv, {padded, b.constant(w)}, attrs)});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

Options forced(Precision precision) {
  Options options;
  options.cache = false;
  options.jobs = 1;
  options.passes.precision = precision;
  options.passes.products = [](const transform::ProductShape&, const DimFacts&) {
    return transform::ProductChoice{transform::ProductForm::Pairs, 100};
  };
  return options;
}

int count(const Graph& g, graph::Op op) {
  return static_cast<int>(std::count_if(g.nodes().begin(), g.nodes().end(), [&](const auto& n) { return n.op == op; }));
}
int dots(const Graph& g) { return count(g, graph::Op::Dot); }

// |c - c64| / sum |a| |b|: the largest, and the root of the mean square.
struct Error {
  double most = 0, rms = 0;
};

Error error(const Tensor& c, const Tensor& a, const Tensor& b) {
  Error e;
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double p = a.f64(i * k + l) * b.f64(l * n + j);
        sum += p, size += std::fabs(p);
      }
      const double off = size == 0 ? 0 : std::fabs(c.f64(i * n + j) - sum) / size;
      e.most = std::max(e.most, off);
      e.rms += off * off;
    }
  }
  e.rms = std::sqrt(e.rms / static_cast<double>(m * n));
  return e;
}

Tensor computed(const Graph& g, const Options& options, const Tensor& x) {
  return run(runtime::Executable(compile(g, options).value().plan), {x})[0];
}

// One chain of multiply-adds in f32 for each element.
Tensor plainly(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  Tensor c = Tensor::zeros(DType::F32, {m, n}).value();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum = std::fma(static_cast<float>(a.f64(i * k + l)), static_cast<float>(b.f64(l * n + j)), sum);
      }
      c.set_f64(i * n + j, sum);
    }
  }
  return c;
}

// What became of a . b at both precisions.
void expect_exact(const std::string& name, const Tensor& a, const Tensor& b, const Tensor& at_highest, const Tensor& at_high) {
  const Error plain = error(plainly(a, b), a, b), six = error(at_highest, a, b), three = error(at_high, a, b);
  const std::string about = fmt::format("{}: plain {:.2e} {:.2e}, six {:.2e} {:.2e}, three {:.2e} {:.2e}", name, plain.most, plain.rms, six.most,
                                        six.rms, three.most, three.rms);
  // Without a matrix unit, where nobody asks for it, pairs are added one by one: a sum of six terms a step then rounds six
  // times as often.
  const bool unit = host_machine().has_amx_bf16;
  EXPECT_LE(six.most, std::max((unit ? 2 : 3.5) * plain.most, 0x1p-23)) << about;
  EXPECT_LE(six.rms, std::max((unit ? 2 : std::sqrt(6)) * plain.rms, 0x1p-25)) << about;
  EXPECT_LE(three.most, 3e-5) << about;
  EXPECT_LE(three.rms, 1e-5) << about;
  ::testing::Test::RecordProperty(name, about);
}

TEST(SplitProducts, AreAsExactAsThePrecisionSays) {
  for (const std::int64_t depth : {64, 1024, 4096}) {
    for (Operands kind : {Operands::Normal, Operands::Wide, Operands::Tiny, Operands::Huge, Operands::Positive, Operands::Activations}) {
      const Tensor x = values({20, depth}, kind, 1), w = values({depth, 32}, kind == Operands::Activations || kind == Operands::Tiny ? Operands::Normal : kind, 2);
      const Graph g = product(20, w);
      expect_exact(fmt::format("depth_{}_values_{}", depth, static_cast<int>(kind)), x, w, computed(g, forced(Precision::Highest), x), computed(g, forced(Precision::High), x));
    }
  }
}

// The rows that the convolution multiplies: [positions, 9 channels].
Tensor windows(const Tensor& x, std::int64_t stride) {
  const std::int64_t batch = x.shape()[0], height = x.shape()[1], width = x.shape()[2], channels = x.shape()[3];
  const std::int64_t oh = (height - 1) / stride + 1, ow = (width - 1) / stride + 1;
  Tensor rows = Tensor::zeros(DType::F32, {batch * oh * ow, 9 * channels}).value();
  for (std::int64_t row = 0; row < rows.shape()[0]; ++row) {
    for (std::int64_t tap = 0; tap < 9; ++tap) {
      const std::int64_t y = row / ow % oh * stride + tap / 3 - 1, z = row % ow * stride + tap % 3 - 1;
      if (y < 0 || z < 0 || y >= height || z >= width) continue;
      const std::int64_t from = ((row / ow / oh * height + y) * width + z) * channels;
      for (std::int64_t c = 0; c < channels; ++c) rows.set_f64((row * 9 + tap) * channels + c, x.f64(from + c));
    }
  }
  return rows;
}

TEST(SplitProducts, OfConvolutionsAreAsExactAsThePrecisionSays) {
  for (const std::int64_t stride : {1, 2}) {
    for (Operands kind : {Operands::Normal, Operands::Wide, Operands::Tiny, Operands::Huge, Operands::Positive, Operands::Activations}) {
      const Tensor x = values({1, 4, 9, 64}, kind, 1), w = values({3, 3, 64, 16}, kind == Operands::Activations || kind == Operands::Tiny ? Operands::Normal : kind, 2);
      const Graph g = convolution(1, 4, w, stride);
      const Tensor rows = windows(x, stride), columns = w.reshaped({9 * 64, 16});
      expect_exact(fmt::format("stride_{}_values_{}", stride, static_cast<int>(kind)), rows, columns, computed(g, forced(Precision::Highest), x),
                   computed(g, forced(Precision::High), x));
    }
  }
}

TEST(SplitProducts, OfConvolutionsComputeTheSame) {
  const Graph g = convolution(Dim::symbol("m"), 5, values({3, 3, 32, 48}, Operands::Normal, 2));
  const Compiled made = compile(g, forced(Precision::Highest)).value();
  EXPECT_EQ(count(*made.graph, graph::Op::Conv), 6);
  const runtime::Executable exe(made.plan);
  for (const std::int64_t m : {0, 1, 3}) {
    const Tensors inputs{values({m, 5, 9, 32}, Operands::Normal, 3)};
    expect_same(run(exe, inputs, 2), graph::interpret(g, inputs).value(), fmt::format("{} images", m));
  }
}

// The parts are made where the value is, and looked at by a kernel of their own.
TEST(SplitProducts, OfWhatAProductMakesAreWrittenByItsKernel) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {24, 64}}, "x");
  graph::Builder b(g);
  const auto dot = [&](ValueId v, unsigned seed) { return b.dot(v, b.constant(values({64, 64}, Operands::Normal, seed)), {}, {}, {1}, {0}, DType::F32); };
  const ValueId middle = b.binary(graph::Op::Max, dot(x, 1), b.scalar(DType::F32, 0));
  g.set_outputs({b.binary(graph::Op::Add, dot(middle, 2), middle)});
  const Compiled made = compile(g, forced(Precision::Highest)).value();
  EXPECT_EQ(dots(*made.graph), 12);
  // Parts and looks of the first, two products, looks at the second, all of each, the branch.
  EXPECT_EQ(loop::lower(*made.graph).value().steps.size(), 7u) << graph::print(*made.graph);
  const runtime::Executable exe(made.plan);
  Tensors inputs{values({24, 64}, Operands::Normal, 3)};
  expect_same(run(exe, inputs, 2), graph::interpret(g, inputs).value(), "a product of a product");
  for (std::int64_t i = 0; i < 64; ++i) inputs[0].set_f64(i, 3e37);
  Tensors outputs;
  const auto done = exe.run(inputs, outputs);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), "needs-exact");
}

TEST(SplitProducts, OfConvolutionsAskForTheExactFormWhereARowIsNotExact) {
  const Graph g = convolution(1, 4, values({3, 3, 32, 16}, Operands::Normal, 2));
  const runtime::Executable exe(compile(g, forced(Precision::Highest)).value().plan);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan(""), -3.4e38, 1.0}) {
    Tensor x = values({1, 4, 9, 32}, Operands::Normal, 4);
    x.set_f64(200, bad);
    Tensors outputs;
    const auto done = exe.run({x}, outputs);
    EXPECT_EQ(done.ok() ? "" : done.error().code(), bad == 1 ? "" : "needs-exact") << bad;
  }
}

TEST(SplitProducts, AreSumsInOneKernelAfterOnePassOverTheOperand) {
  const Graph g = product(Dim::symbol("m"), values({64, 48}, Operands::Normal, 2));
  const Compiled six = compile(g, forced(Precision::Highest)).value(), three = compile(g, forced(Precision::High)).value();
  EXPECT_EQ(dots(*six.graph), 6);
  EXPECT_EQ(dots(*three.graph), 3);
  // The parts with a bool per row, whether all rows are exact, the sum; and a branch.
  EXPECT_EQ(loop::lower(*six.graph).value().steps.size(), 4u) << graph::print(*six.graph);
  EXPECT_EQ(loop::lower(*three.graph).value().steps.size(), 4u) << graph::print(*three.graph);
}

TEST(SplitProducts, ComputeTheSame) {
  const Graph g = product(Dim::symbol("m"), values({96, 48}, Operands::Normal, 2));
  const runtime::Executable exe(compile(g, forced(Precision::Highest)).value().plan);
  for (const std::int64_t m : {0, 1, 7, 33}) {
    const Tensors inputs{values({m, 96}, Operands::Normal, 3)};
    expect_same(run(exe, inputs, 2), graph::interpret(g, inputs).value(), fmt::format("{} rows", m));
  }
}

TEST(SplitProducts, AskForTheExactFormWhereARowIsNotExact) {
  const Graph g = product(Dim::symbol("m"), values({64, 32}, Operands::Normal, 2));
  const runtime::Executable exe(compile(g, forced(Precision::Highest)).value().plan);
  const auto code = [&](const Tensor& x) {
    Tensors outputs;
    const auto done = exe.run({x}, outputs);
    return done.ok() ? std::string() : done.error().code();
  };
  const auto with = [&](double value) {
    Tensor x = values({9, 64}, Operands::Normal, 4);
    x.set_f64(200, value);
    return x;
  };
  for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan(""), 3.39e38, -3.4e38}) {
    EXPECT_EQ(code(with(bad)), "needs-exact") << bad;
  }
  for (const double fine : {0.0, 1e-45, 1e-38, 3.37e38}) EXPECT_EQ(code(with(fine)), "") << fine;
  Tensor tiny = with(1), zero = with(1);
  for (std::int64_t i = 128; i < 192; ++i) tiny.set_f64(i, 1e-23), zero.set_f64(i, 0);
  EXPECT_EQ(code(tiny), "needs-exact");
  EXPECT_EQ(code(zero), "");
}

TEST(SplitProducts, LeaveWhatTheyDoNotFit) {
  const auto split = [](const Graph& g, Options options) {
    options.code = false;
    return dots(*compile(g, options).value().graph) > 1;
  };
  const Options yes = forced(Precision::Highest);
  EXPECT_TRUE(split(product(64, values({64, 32}, Operands::Normal, 1)), yes));
  EXPECT_FALSE(split(product(64, values({48, 32}, Operands::Normal, 1)), yes));
  EXPECT_FALSE(split(product(64, values({64, 24}, Operands::Normal, 1)), yes));
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan(""), 3.4e38}) {
    Tensor w = values({64, 32}, Operands::Normal, 1);
    w.set_f64(77, bad);
    EXPECT_FALSE(split(product(64, w), yes)) << bad;
  }
  Tensor small = values({64, 32}, Operands::Normal, 1);
  for (std::int64_t i = 0; i < 64; ++i) small.set_f64(i * 32 + 5, 1e-35);
  EXPECT_FALSE(split(product(64, small), yes));
}

// By the model: where there is a matrix unit, and rows enough.
TEST(SplitProducts, AreChosenByCost) {
  const auto split = [](std::int64_t m, bool unit, Precision precision) {
    Options options;
    options.cache = false;
    options.code = false;
    options.passes.precision = precision;
    options.machine = *cpu_named("sapphirerapids");
    options.machine.cores = 2;
    if (!unit) remove_features(options.machine, {"-amx"});
    return dots(*compile(product(m, values({768, 768}, Operands::Normal, 1)), options).value().graph) > 1;
  };
  EXPECT_TRUE(split(512, true, Precision::Highest));
  EXPECT_TRUE(split(512, true, Precision::High));
  EXPECT_FALSE(split(4, true, Precision::Highest));
  EXPECT_FALSE(split(512, false, Precision::Highest));
}

}  // namespace
}  // namespace weft::compiler::testing
