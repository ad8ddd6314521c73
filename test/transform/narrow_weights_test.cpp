// Weights in fewer bits: which change, and by how much.
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
using Ints = std::vector<std::int64_t>;

Graph model(const Ints& weights, Ints contracted, Ints lhs_contracted, Shape input, double scale = 1) {
  Graph g;
  std::mt19937 rng(4);
  const ValueId x = g.add_input({DType::F32, std::move(input)}, "x");
  Tensor w = random_tensor(DType::F32, weights, rng, Values::Tame);
  for (std::int64_t i = 0; i < w.size(); ++i) w.set_f64(i, w.f64(i) * scale);
  Builder b(g);
  g.set_outputs({b.dot(x, b.constant(w), {}, {}, std::move(lhs_contracted), std::move(contracted), DType::F32)});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

Graph narrowed(const Graph& g, Weights weights) {
  PassOptions options;
  options.weights = weights;
  return graph::dce(narrow_weights(g, options).value()).value();
}

DType weight_type(const Graph& g) {
  for (const graph::Node& node : g.nodes()) {
    const Tensor* data = node.op == GOp::Constant ? g.constant(node.results[0]) : nullptr;
    if (data && data->size() > 10000) return data->dtype();
  }
  return DType::Bool;
}

TEST(NarrowWeights, ResultsAreNear) {
  const Graph graphs[]{model({200, 120}, {0}, {1}, {3, 200}), model({120, 200}, {1}, {1}, {3, 200}),
                       model({20, 10, 8, 20}, {1, 3}, {2, 0}, {20, 4, 10}, 1e-3), model({20, 90, 12}, {1}, {0}, {90})};
  for (const Graph& g : graphs) {
    for (const auto& [weights, dtype, tolerance] : {std::tuple{Weights::Bf16, DType::BF16, 1e-2}, {Weights::Int8, DType::I8, 2e-2}}) {
      const Graph n = narrowed(g, weights);
      EXPECT_EQ(weight_type(n), dtype) << graph::print(n);
      expect_same_results(g, n, {}, Values::Tame, tolerance, 2);
    }
    EXPECT_EQ(ops_of(narrowed(g, Weights::F32)), ops_of(g));
  }
}

// Whole numbers up to 127 in each channel are exact in int8, whatever the channel's scale.
TEST(NarrowWeights, EveryChannelHasItsScale) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {2, 256}}, "x");
  Tensor w = Tensor::zeros(DType::F32, {256, 128}).value();
  for (std::int64_t i = 0; i < w.size(); ++i) {
    const std::int64_t channel = i % 128, n = i / 128 == 0 ? 127 : (i * 31) % 255 - 127;
    w.set_f64(i, static_cast<double>(n) * std::ldexp(1.0, static_cast<int>(channel % 40) - 20));
  }
  Builder b(g);
  g.set_outputs({b.dot(x, b.constant(w), {}, {}, {1}, {0}, DType::F32)});
  const Graph n = narrowed(g, Weights::Int8);
  std::mt19937 rng(2);
  const auto inputs = random_inputs(g, {}, rng, Values::Tame);
  const Tensor want = graph::interpret(g, inputs).value()[0], got = graph::interpret(n, inputs).value()[0];
  for (std::int64_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.f64(i), want.f64(i), 1e-4 * 127 * std::ldexp(1.0, static_cast<int>(i % 128 % 40) - 20));
  }
}

// Groups of whole numbers from -8 to 7, each with a -8, are exact in int4, whatever their scales and signs.
TEST(NarrowWeights, EveryGroupHasItsScale) {
  for (const bool transposed : {false, true}) {
    Graph g;
    const ValueId x = g.add_input({DType::F32, {2, 256}}, "x");
    Tensor w = Tensor::zeros(DType::F32, transposed ? Ints{128, 256} : Ints{256, 128}).value();
    for (std::int64_t k = 0; k < 256; ++k) {
      for (std::int64_t n = 0; n < 128; ++n) {
        const std::int64_t value = k % 32 == n % 32 ? -8 : (k * 7 + n * 5) % 16 - 8;
        const double scale = std::ldexp(n % 3 == 0 ? -1.0 : 1.0, static_cast<int>((n + k / 32) % 40) - 20);
        w.set_f64(transposed ? n * 256 + k : k * 128 + n, static_cast<double>(value) * scale);
      }
    }
    Builder b(g);
    g.set_outputs({b.dot(x, b.constant(w), {}, {}, {1}, {transposed ? 1 : 0}, DType::F32)});
    expect_same_results(g, narrowed(g, Weights::Int4), {}, Values::Tame, 1e-6, 2);
  }
}

TEST(NarrowWeights, FourBitsAreNear) {
  const Graph g = model({256, 120}, {0}, {1}, {3, 256});
  const Graph n = narrowed(g, Weights::Int4);
  expect_same_results(g, n, {}, Values::Tame, 0.15, 2);
  std::int64_t bytes = 0;
  for (const graph::Node& node : n.nodes()) {
    if (const Tensor* data = node.op == GOp::Constant ? n.constant(node.results[0]) : nullptr) bytes += data->byte_size();
  }
  EXPECT_LE(bytes, 256 * 120 / 2 + 256 * 120 / 32 * 4 + 64);
  // Sums over anything but whole groups take int8.
  EXPECT_EQ(weight_type(narrowed(model({200, 120}, {0}, {1}, {3, 200}), Weights::Int4)), DType::I8);
}

TEST(NarrowWeights, SmallAndInfiniteOnesStay) {
  const Graph small = model({10, 10}, {0}, {1}, {3, 10});
  EXPECT_EQ(ops_of(narrowed(small, Weights::Int8)), ops_of(small));
  const Graph infinite = model({200, 120}, {0}, {1}, {3, 200}, std::numeric_limits<double>::infinity());
  EXPECT_EQ(ops_of(narrowed(infinite, Weights::Int8)), ops_of(infinite));
}

}  // namespace
}  // namespace weft::transform
