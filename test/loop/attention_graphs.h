// Graphs that hold attention, written as exporters write it, and inputs for them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/text.h"

namespace weft::testing {

enum class Mask { None, Keys, Full, Causal };

struct AttentionCase {
  std::string batch = "1", rows = "n", keys = "m";  // sizes: numbers or symbols
  int heads = 2, group = 1, size = 8, value_size = 8;
  Mask mask = Mask::None;
  bool nan_to_zero = false, softcap = false;
};

// inputs: q [b, heads*group, rows, size], k [b, heads, keys, size], v [b, heads, keys, value size], then the mask.
inline graph::Graph attention_graph(const AttentionCase& c) {
  const auto dims = [](const std::vector<std::string>& d) {
    std::string s = "[";
    for (std::size_t i = 0; i < d.size(); ++i) s += (i ? ", " : "") + d[i];
    return s + "]";
  };
  const std::string b = c.batch, n = c.rows, m = c.keys, h = std::to_string(c.heads), g = std::to_string(c.group);
  const std::string all = std::to_string(c.heads * c.group), d = std::to_string(c.size), e = std::to_string(c.value_size);
  const std::string S = dims({b, all, n, m}), R = dims({b, all, n});
  std::string text = "graph @attention(%0 \"q\": f32" + dims({b, all, n, d}) + ", %1 \"k\": f32" + dims({b, h, m, d}) +
                     ", %2 \"v\": f32" + dims({b, h, m, e});
  if (c.mask == Mask::Keys) text += ", %3 \"mask\": bool" + dims({b, "1", "1", m});
  if (c.mask == Mask::Full) text += ", %3 \"mask\": f32" + dims({b, "1", n, m});
  text += ") -> (f32" + dims({b, all, n, e}) + ")";
  std::string symbols;
  for (const std::string& s : {b, n, m}) {
    const bool seen = symbols.find(s + " in") != std::string::npos;
    if (std::isalpha(s[0]) && !seen) symbols += (symbols.empty() ? " where " : ", ") + s + " in 0..";
  }
  text += symbols + " {\n";
  int next = c.mask == Mask::Keys || c.mask == Mask::Full ? 4 : 3;
  const auto line = [&](const std::string& what) {
    text += "  %" + std::to_string(next) + " = " + what + "\n";
    return "%" + std::to_string(next++);
  };
  const auto number = [&](const std::string& value, const std::string& shape) {
    const std::string x = line("constant {data=f32[](" + value + ")} : f32[]");
    return line("broadcast " + x + " {axes=[], shape=" + shape + "} : f32" + shape);
  };
  std::string k = "%1", v = "%2";
  if (c.group > 1) {
    const auto spread = [&](const std::string& x, const std::string& size) {
      const std::string wide = dims({b, h, g, m, size}), joined = dims({b, all, m, size});
      const std::string y = line("broadcast " + x + " {axes=[0, 1, 3, 4], shape=" + wide + "} : f32" + wide);
      return line("reshape " + y + " {shape=" + joined + "} : f32" + joined);
    };
    k = spread(k, d), v = spread(v, e);
  }
  const std::string kt = dims({b, all, d, m});
  k = line("transpose " + k + " {axes=[0, 1, 3, 2]} : f32" + kt);
  k = line("mul " + k + ", " + number("0.5", kt) + " : f32" + kt);
  std::string s = line("dot %0, " + k + " {dtype=f32, lhs_batch=[0, 1], lhs_contract=[3], rhs_batch=[0, 1], rhs_contract=[2]} : f32" + S);
  if (c.softcap) {
    s = line("mul " + s + ", " + number("0.1", S) + " : f32" + S);
    s = line("tanh " + s + " : f32" + S);
    s = line("mul " + s + ", " + number("10", S) + " : f32" + S);
  }
  const std::string none = c.mask == Mask::Keys || c.mask == Mask::Causal ? number("-inf", S) : "";
  if (c.mask == Mask::Keys) {
    const std::string seen = line("broadcast %3 {axes=[0, 1, 2, 3], shape=" + S + "} : bool" + S);
    s = line("select " + seen + ", " + s + ", " + none + " : f32" + S);
  } else if (c.mask == Mask::Full) {
    const std::string added = line("broadcast %3 {axes=[0, 1, 2, 3], shape=" + S + "} : f32" + S);
    s = line("add " + s + ", " + added + " : f32" + S);
  } else if (c.mask == Mask::Causal) {
    const std::string i = line("iota {axis=2, dtype=i64, shape=" + S + "} : i64" + S);
    const std::string j = line("iota {axis=3, dtype=i64, shape=" + S + "} : i64" + S);
    const std::string seen = line("le " + j + ", " + i + " : bool" + S);
    s = line("select " + seen + ", " + s + ", " + none + " : f32" + S);
  }
  const auto back = [&](const std::string& x) { return line("broadcast " + x + " {axes=[0, 1, 2], shape=" + S + "} : f32" + S); };
  const std::string max = line("reduce_max " + s + " {axes=[3]} : f32" + R);
  const std::string wide_max = back(max);
  const std::string below = line("sub " + s + ", " + wide_max + " : f32" + S);
  const std::string exp = line("exp " + below + " : f32" + S);
  const std::string sum = line("reduce_sum " + exp + " {axes=[3]} : f32" + R);
  const std::string wide_sum = back(sum);
  std::string p = line("div " + exp + ", " + wide_sum + " : f32" + S);
  if (c.nan_to_zero) {
    const std::string zero = number("0", S);
    const std::string bad = line("is_nan " + p + " : bool" + S);
    p = line("select " + bad + ", " + zero + ", " + p + " : f32" + S);
  }
  const std::string y = line("dot " + p + ", " + v +
                             " {dtype=f32, lhs_batch=[0, 1], lhs_contract=[3], rhs_batch=[0, 1], rhs_contract=[2]} : f32" +
                             dims({b, all, n, e}));
  text += "  return " + y + "\n}\n";
  auto graph = graph::parse(text);
  if (!graph.ok()) ADD_FAILURE() << graph.error().what() << "\n" << text;
  return graph.ok() ? std::move(*graph) : graph::Graph();
}

struct AttentionInputs {
  std::int64_t batch = 1, rows = 5, keys = 7;
  double scale = 1;     // of scores, about
  double special = 0;   // share of NaN and infinities
  double hidden = 0.3;  // share of masked keys; the first row sees none
  unsigned seed = 1;
};

inline std::vector<Tensor> attention_inputs(const AttentionCase& c, const AttentionInputs& in) {
  std::mt19937 random(in.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto filled = [&](std::vector<std::int64_t> shape, double scale) {
    Tensor t = Tensor::zeros(DType::F32, std::move(shape)).value();
    for (std::int64_t i = 0; i < t.size(); ++i) {
      double x = normal(random) * scale;
      if (uniform(random) < in.special) {
        const double odd[] = {std::nan(""), INFINITY, -INFINITY};
        x = odd[random() % 3];
      }
      t.set_f64(i, x);
    }
    return t;
  };
  const double root = std::sqrt(in.scale);
  std::vector<Tensor> inputs{filled({in.batch, c.heads * c.group, in.rows, c.size}, root),
                             filled({in.batch, c.heads, in.keys, c.size}, root),
                             filled({in.batch, c.heads, in.keys, c.value_size}, 1)};
  if (c.mask == Mask::Keys) {
    Tensor t = Tensor::zeros(DType::Bool, {in.batch, 1, 1, in.keys}).value();
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_i64(i, uniform(random) >= in.hidden ? 1 : 0);
    inputs.push_back(t);
  } else if (c.mask == Mask::Full) {
    Tensor t = Tensor::zeros(DType::F32, {in.batch, 1, in.rows, in.keys}).value();
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const bool sees = i >= in.keys && uniform(random) >= in.hidden;
      t.set_f64(i, sees ? normal(random) : -INFINITY);
    }
    inputs.push_back(t);
  }
  return inputs;
}

}  // namespace weft::testing
