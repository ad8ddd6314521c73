// Graphs before and after passes, run on values that hurt: NaN, infinities, signed zeros, subnormals, integers' ends.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft::transform::testing {

inline graph::Graph parsed(const std::string& text) {
  auto graph = graph::parse(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().what() << "\n" << text;
    return graph::Graph();
  }
  return *graph;
}

// "add mul": the ops in order, constants aside.
inline std::string ops_of(const graph::Graph& g) {
  std::string out;
  for (const graph::Node& node : g.nodes()) {
    if (node.op == graph::Op::Constant) continue;
    if (!out.empty()) out += ' ';
    out += graph::info(node.op).name;
  }
  return out;
}

inline int count(const graph::Graph& g, graph::Op op) {
  int n = 0;
  for (const graph::Node& node : g.nodes()) n += node.op == op ? 1 : 0;
  return n;
}

enum class Values { Tame, Wild };

inline Tensor random_tensor(DType t, std::vector<std::int64_t> shape, std::mt19937& rng, Values values) {
  Tensor x = Tensor::zeros(t, std::move(shape)).value();
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> hard{0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 1e-41, -1e-41, 3e38, -3e38, 0.5, 1e-20, 7.25};
  const std::vector<std::int64_t> ends{0, 1, -1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 127, -128, 255, 3};
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const bool wild = values == Values::Wild && rng() % 4 != 0;
    if (is_float(t)) {
      x.set_f64(i, wild ? hard[rng() % hard.size()] : std::normal_distribution<double>()(rng));
    } else if (is_bool(t)) {
      x.set_i64(i, static_cast<std::int64_t>(rng() % 2));
    } else {
      x.set_i64(i, wild ? ends[rng() % ends.size()] : static_cast<std::int64_t>(rng() % 5));
    }
  }
  return x;
}

inline std::vector<Tensor> random_inputs(const graph::Graph& g, const Bindings& sizes, std::mt19937& rng, Values values) {
  std::vector<Tensor> inputs;
  for (graph::ValueId v : g.inputs()) {
    inputs.push_back(random_tensor(g.type(v).dtype, evaluate(g.type(v).shape, sizes).value(), rng, values));
  }
  return inputs;
}

// `tolerance`: relative to the largest finite element; 0: the same bits, any NaN for a NaN.
inline void expect_alike(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  double most = 0;
  for (std::int64_t i = 0; tolerance > 0 && i < a.size(); ++i) {
    if (std::isfinite(a.f64(i))) most = std::max(most, std::fabs(a.f64(i)));
  }
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (!is_float(a.dtype())) {
      ASSERT_EQ(a.i64(i), b.i64(i)) << "element " << i;
      continue;
    }
    const double x = a.f64(i), y = b.f64(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y && std::signbit(x) == std::signbit(y)) continue;
    ASSERT_LE(std::fabs(x - y), tolerance * most) << "element " << i << ": " << x << " and " << y;
  }
}

inline void expect_same_results(const graph::Graph& before, const graph::Graph& after, const Bindings& sizes,
                                Values values, double tolerance = 0, int rounds = 3) {
  const auto verified = graph::verify(after);
  ASSERT_TRUE(verified.ok()) << verified.error().what() << "\n" << graph::print(after);
  for (int round = 0; round < rounds; ++round) {
    std::mt19937 rng(static_cast<unsigned>(round + 1));
    const auto inputs = random_inputs(before, sizes, rng, values);
    const auto x = graph::interpret(before, inputs), y = graph::interpret(after, inputs);
    ASSERT_TRUE(x.ok()) << x.error().what();
    ASSERT_TRUE(y.ok()) << y.error().what() << "\n" << graph::print(after);
    ASSERT_EQ(x->size(), y->size());
    for (std::size_t k = 0; k < x->size(); ++k) expect_alike((*x)[k], (*y)[k], tolerance);
  }
}

}  // namespace weft::transform::testing
