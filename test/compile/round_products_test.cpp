// Products at precision medium: where they are computed from bf16, how far they round, and that what is not finite goes
// where the plain sum puts it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compile/support.h"
#include "graph/builder.h"

namespace weft::compiler::testing {
namespace {

using graph::Attr;
using graph::Attrs;
using graph::Builder;
using graph::Graph;
using graph::ValueId;
using GOp = graph::Op;
using transform::Precision;
using transform::ProductChoice;
using transform::ProductForm;

enum class Inputs { Normal, Wide, Tiny, Huge, Positive, Real };
constexpr Inputs kInputs[] = {Inputs::Normal, Inputs::Wide, Inputs::Tiny, Inputs::Huge, Inputs::Positive, Inputs::Real};

// Of a product's left side. Real ones are what an activation leaves: most of them near zero, some channels large.
double drawn(Inputs kind, std::int64_t i, std::mt19937& random) {
  const double x = std::normal_distribution<double>()(random);
  switch (kind) {
    case Inputs::Wide: return x * std::pow(10.0, static_cast<double>(random() % 17) - 8);
    case Inputs::Tiny: return x * 1e-30;
    case Inputs::Huge: return std::clamp(x, -3.0, 3.0) * 1e36;
    case Inputs::Positive: return std::fabs(x);
    case Inputs::Real: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))) * (i % 48 == 7 ? 30 : 1);
    case Inputs::Normal: break;
  }
  return x;
}

Tensor tensor_of(Sizes shape, Inputs kind, unsigned seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::zeros(DType::F32, std::move(shape)).value();
  for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, drawn(kind, i, random));
  return t;
}

struct Model {
  const char* name;
  Sizes input, weights;
  bool conv = false;
};
const Model kModels[] = {{"dot", {40, 192}, {192, 96}},
                         {"one row", {1, 768}, {768, 160}},
                         {"convolution", {1, 12, 12, 32}, {3, 3, 32, 48}, true},
                         {"three channels", {1, 20, 20, 3}, {7, 7, 3, 32}, true},
                         {"1 x 1", {1, 9, 9, 64}, {1, 1, 64, 32}, true}};

Inputs of_weights(Inputs inputs) { return inputs == Inputs::Wide || inputs == Inputs::Positive ? inputs : Inputs::Normal; }

// The product in f32, or in f64 of the operands or of their magnitudes.
Graph graph_of(const Model& m, const Tensor& w, DType t = DType::F32, bool magnitudes = false) {
  Graph g;
  Builder b(g);
  ValueId x = g.add_input({DType::F32, Shape(m.input.begin(), m.input.end())}, "x"), y = b.constant(w);
  if (magnitudes) x = b.unary(GOp::Abs, x), y = b.unary(GOp::Abs, y);
  x = b.cast(x, t), y = b.cast(y, t);
  if (m.conv) {
    const Sizes ones{1, 1};
    const Dim pad = m.weights[0] / 2;
    Attrs attrs;
    attrs.set(Attr::Strides, ones).set(Attr::Dilations, ones).set(Attr::BaseDilations, ones).set(Attr::Groups, std::int64_t{1});
    attrs.set(Attr::ChannelsLast, true).set(Attr::Lo, Shape(2, pad)).set(Attr::Hi, Shape(2, pad)).set(Attr::DType, t);
    g.set_outputs({b.node(GOp::Conv, {x, y}, attrs)});
  } else {
    g.set_outputs({b.dot(x, y, {}, {}, {1}, {0}, t)});
  }
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

Compiled compiled_for(const Graph& g, Precision precision, const Machine& machine, std::optional<ProductForm> form = {}) {
  Options options;
  options.cache = false;
  options.jobs = 1;
  options.machine = machine;
  options.passes.precision = precision;
  if (form) options.passes.products = [form](const transform::ProductShape&, const DimFacts&) { return ProductChoice{*form, 2}; };
  return compile(g, options).value();
}

Machine without_unit() {
  Machine m = host_machine();
  remove_features(m, {"-avx512bf16", "-amx"});
  return m;
}

TEST(RoundProducts, RoundAsThePrecisionSays) {
  for (const Model& m : kModels) {
    for (Inputs kind : kInputs) {
      const Tensor x = tensor_of(m.input, kind, 3), w = tensor_of(m.weights, of_weights(kind), 5);
      const Tensor exact = graph::interpret(graph_of(m, w, DType::F64), {x}).value()[0];
      const Tensor scale = graph::interpret(graph_of(m, w, DType::F64, true), {x}).value()[0];
      for (const ProductForm form : {ProductForm::Pairs, ProductForm::Weights}) {
        for (const Machine& machine : {host_machine(), without_unit()}) {
          const Tensor got = run(runtime::Executable(compiled_for(graph_of(m, w), Precision::Medium, machine, form).plan), {x})[0];
          double largest = 0, squares = 0;
          for (std::int64_t i = 0; i < got.size(); ++i) {
            const double error = std::fabs(got.f64(i) - exact.f64(i)) / scale.f64(i);
            largest = std::max(largest, error);
            squares += error * error;
          }
          EXPECT_LE(largest, 1e-2) << m.name << " " << static_cast<int>(kind);
          EXPECT_LE(std::sqrt(squares / static_cast<double>(got.size())), 3e-3) << m.name << " " << static_cast<int>(kind);
        }
      }
    }
  }
}

TEST(RoundProducts, WhatIsNotFiniteGoesWhereThePlainSumPutsIt) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kMost = std::numeric_limits<float>::max();
  for (const Model& m : kModels) {
    for (const bool in_weights : {false, true}) {
      Tensor x = tensor_of(m.input, Inputs::Normal, 3), w = tensor_of(m.weights, Inputs::Normal, 5);
      for (std::int64_t i = 0; i < w.size(); ++i) w.set_f64(i, w.f64(i) / 64);
      Tensor& t = in_weights ? w : x;
      const double special[] = {kInfinity, -kInfinity, std::nan(""), kMost, -kMost};
      for (std::size_t k = 0; k < std::size(special); ++k) t.set_f64(static_cast<std::int64_t>(k) * (t.size() / 7) + 3, special[k]);
      x.set_f64(5, 0);
      const Graph g = graph_of(m, w);
      const Tensor want = graph::interpret(g, {x}).value()[0];
      for (const Machine& machine : {host_machine(), without_unit()}) {
        const Tensor got = run(runtime::Executable(compiled_for(g, Precision::Medium, machine, ProductForm::Pairs).plan), {x})[0];
        for (std::int64_t i = 0; i < got.size(); ++i) {
          const double a = got.f64(i), b = want.f64(i);
          if (std::isfinite(b)) {
            ASSERT_TRUE(std::isfinite(a)) << m.name << " " << i << ": " << b << " became " << a;
          } else {  // an infinity may be a sum that overflows by less than rounding takes from it
            const bool near = std::isinf(b) && std::fabs(a) > 0.99 * kMost && std::signbit(a) == std::signbit(b);
            ASSERT_TRUE(near || a == b || (std::isnan(a) && std::isnan(b))) << m.name << " " << i << ": " << b << " became " << a;
          }
        }
      }
    }
  }
}

// How many products have both operands in bf16, and how many their weights alone.
std::pair<int, int> narrow_products(const Graph& g) {
  std::pair<int, int> n;
  for (const graph::Node& node : g.nodes()) {
    if (node.op != GOp::Dot && node.op != GOp::Conv) continue;
    const graph::Node* weights = g.def(node.operands[1]);
    n.first += g.type(node.operands[0]).dtype == DType::BF16 && g.type(node.operands[1]).dtype == DType::BF16;
    n.second += weights->op == GOp::Cast && g.type(weights->operands[0]).dtype == DType::BF16;
  }
  return n;
}

TEST(RoundProducts, AreChosenByTheMachine) {
  const Tensor wide = tensor_of({768, 1024}, Inputs::Normal, 1);
  const Model many{"", {128, 768}, {768, 1024}}, one{"", {1, 768}, {768, 1024}};
  Machine unit = cpu_named("x86-64-v4").value();
  unit.features.push_back("avx512bf16");
  std::sort(unit.features.begin(), unit.features.end());
  derive_from_features(unit);
  unit.cores = 2;
  Machine none = unit;
  remove_features(none, {"-avx512bf16"});
  const auto chosen = [&](const Model& m, Precision precision, const Machine& machine) {
    Options options;
    options.cache = false;
    options.code = false;
    options.machine = machine;
    options.passes.precision = precision;
    return narrow_products(*compile(graph_of(m, wide), options).value().graph);
  };
  EXPECT_EQ(chosen(many, Precision::Medium, unit), (std::pair{1, 0}));
  EXPECT_EQ(chosen(many, Precision::Medium, none), (std::pair{0, 0}));
  EXPECT_EQ(chosen(one, Precision::Medium, none), (std::pair{0, 1}));  // reading the weights is what takes the time
  EXPECT_EQ(chosen(many, Precision::High, unit), (std::pair{0, 0}));
  Machine slow = unit;
  slow.rates.dot2s = unit.rates.fmas / 4;
  EXPECT_EQ(chosen(many, Precision::Medium, slow), (std::pair{0, 0}));
}

// dot, relu, dot: what the second reads is rounded by the kernel of the first.
TEST(RoundProducts, WhoMakesAnOperandRoundsIt) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::F32, {64, 256}}, "x");
  ValueId y = b.dot(x, b.constant(tensor_of({256, 256}, Inputs::Normal, 1)), {}, {}, {1}, {0}, DType::F32);
  y = b.binary(GOp::Max, y, b.scalar(DType::F32, 0));
  ValueId z = b.dot(b.transpose(b.reshape(y, {8, 8, 256}), {1, 0, 2}), b.constant(tensor_of({256, 64}, Inputs::Normal, 2)), {}, {}, {2}, {0}, DType::F32);
  g.set_outputs({z, y});
  const Compiled made = compiled_for(g, Precision::Medium, host_machine(), ProductForm::Pairs);
  EXPECT_EQ(made.report.kernels, 3) << graph::print(*made.graph);  // x is rounded by one of its own
  const Tensors inputs{tensor_of({64, 256}, Inputs::Normal, 7)};
  const Tensors got = run(runtime::Executable(made.plan), inputs, 2), want = graph::interpret(g, inputs).value();
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_EQ(difference(got[k], want[k], 1e-2), "");
}

// Weights and activations of bf16 are multiplied in pairs at every precision, and exactly.
TEST(RoundProducts, ModelsOfBf16) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::BF16, {33, 128}}, "x");
  Tensor w = Tensor::zeros(DType::BF16, {128, 96}).value();
  std::mt19937 random(3);
  for (std::int64_t i = 0; i < w.size(); ++i) w.set_f64(i, std::normal_distribution<double>()(random));
  g.set_outputs({b.dot(x, b.constant(w), {}, {}, {1}, {0}, DType::F32)});
  Tensor input = Tensor::zeros(DType::BF16, {33, 128}).value();
  for (std::int64_t i = 0; i < input.size(); ++i) input.set_f64(i, std::normal_distribution<double>()(random));
  for (const Machine& machine : {host_machine(), without_unit()}) {
    const Tensors got = run(runtime::Executable(compiled_for(g, Precision::Highest, machine).plan), {input});
    EXPECT_EQ(difference(got[0], graph::interpret(g, {input}).value()[0], 1e-6), "");
  }
}

}  // namespace
}  // namespace weft::compiler::testing
