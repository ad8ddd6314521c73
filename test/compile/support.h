// Test helpers: a graph compiled and run next to the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "graph/graph.h"
#include "runtime/execute.h"

namespace weft::compiler::testing {

using Tensors = std::vector<Tensor>;
using Sizes = std::vector<std::int64_t>;

inline graph::Graph parsed(const std::string& text) {
  auto graph = graph::parse(text);
  if (!graph.ok()) ADD_FAILURE() << graph.error().what() << "\n" << text;
  return graph.ok() ? std::move(*graph) : graph::Graph();
}

inline std::unique_ptr<runtime::Executable> executable(const graph::Graph& graph, std::shared_ptr<const target::Target> target = nullptr) {
  Options options;
  options.target = std::move(target);
  options.cache = false;
  options.jobs = 1;
  auto compiled = compile(graph, options);
  if (!compiled.ok()) {
    ADD_FAILURE() << compiled.error().what() << "\n" << graph::print(graph);
    return nullptr;
  }
  return std::make_unique<runtime::Executable>(compiled->plan);
}

inline std::unique_ptr<runtime::Executable> executable(const std::string& text) { return executable(parsed(text)); }

inline Tensor tensor(DType dtype, Sizes shape, const std::vector<double>& values) {
  Tensor t = Tensor::zeros(dtype, std::move(shape)).value();
  EXPECT_EQ(t.size(), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    is_float(dtype) ? t.set_f64(at, values[i]) : t.set_i64(at, static_cast<std::int64_t>(values[i]));
  }
  return t;
}
inline Tensor f32(Sizes shape, const std::vector<double>& values) { return tensor(DType::F32, std::move(shape), values); }
inline Tensor i64(Sizes shape, const std::vector<double>& values) { return tensor(DType::I64, std::move(shape), values); }

// Small whole numbers, so that sums and products are exact.
inline Tensor random_tensor(DType dtype, Sizes shape, std::mt19937& random) {
  Tensor t = Tensor::zeros(dtype, std::move(shape)).value();
  const bool is_signed = is_float(dtype) || dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
  for (std::int64_t i = 0; i < t.size(); ++i) {
    int v = static_cast<int>(random() % 9) - (is_signed ? 4 : 0);
    if (dtype == DType::Bool) v &= 1;
    is_float(dtype) ? t.set_f64(i, v) : t.set_i64(i, v);
  }
  return t;
}

// What differs, or "". Floats may differ by `tolerance` of the value or of the largest value.
inline std::string difference(const Tensor& got, const Tensor& want, double tolerance = 1e-3) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return std::string(name(got.dtype())) + shape_str(got.shape()) + " instead of " + name(want.dtype()) + shape_str(want.shape());
  }
  if (is_string(got.dtype())) return got.string_values() == want.string_values() ? "" : "strings differ";
  double largest = 0;
  if (is_float(want.dtype())) {
    for (std::int64_t i = 0; i < want.size(); ++i) {
      if (std::isfinite(want.f64(i))) largest = std::max(largest, std::fabs(want.f64(i)));
    }
  }
  if (want.dtype() == DType::F16) tolerance = std::max(tolerance, 4e-3);
  if (want.dtype() == DType::BF16) tolerance = std::max(tolerance, 3e-2);
  for (std::int64_t i = 0; i < want.size(); ++i) {
    bool same = false;
    std::string found, expected;
    if (is_float(want.dtype())) {
      double a = got.f64(i), b = want.f64(i);
      same = a == b || (std::isnan(a) && std::isnan(b)) ||
             (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= tolerance * std::max(std::fabs(b), largest));
      found = std::to_string(a);
      expected = std::to_string(b);
    } else {
      same = got.i64(i) == want.i64(i);
      found = std::to_string(got.i64(i));
      expected = std::to_string(want.i64(i));
    }
    if (!same) return "element " + std::to_string(i) + " is " + found + " instead of " + expected;
  }
  return "";
}

inline Tensors run(const runtime::Executable& executable, const Tensors& inputs, int threads = 1) {
  runtime::RunOptions options;
  options.threads = threads;
  Tensors outputs;
  auto status = executable.run(inputs, outputs, options);
  if (!status.ok()) ADD_FAILURE() << status.error().what();
  return outputs;
}

inline void expect_same(const Tensors& got, const Tensors& want, const std::string& about = "") {
  ASSERT_EQ(got.size(), want.size()) << about;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(difference(got[i], want[i]), "") << "output " << i << " " << about;
  }
}

// Runs the graph both ways, twice (the second run meets used memory).
inline void check(const graph::Graph& graph, const std::vector<Tensors>& runs) {
  auto exe = executable(graph);
  if (!exe) return;
  for (int round = 0; round < 2; ++round) {
    for (const Tensors& inputs : runs) {
      auto want = graph::interpret(graph, inputs);
      ASSERT_TRUE(want.ok()) << want.error().what();
      expect_same(run(*exe, inputs), *want, graph::print(graph));
    }
  }
}
inline void check(const std::string& text, const std::vector<Tensors>& runs) { check(parsed(text), runs); }

}  // namespace weft::compiler::testing
