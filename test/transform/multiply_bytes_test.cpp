// Products of quantised values: which become products of bytes, and that they stay what they were.
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

constexpr double kOneScale = 0.037;

// Bytes with their zero point and, for floats, their scale. Zero points and scales are one, or one per index of `axis`.
struct Side {
  DType dtype;
  bool has_zero = true;
  std::int64_t axis = -1;
  bool ends = false;  // the least and the greatest byte only, zero points included
};

std::int64_t any_byte(DType t, bool ends, std::mt19937& rng) {
  const std::int64_t least = t == DType::I8 ? -128 : 0;
  return ends ? least + 255 * static_cast<std::int64_t>(rng() % 2) : least + static_cast<std::int64_t>(rng() % 256);
}

Tensor bytes(DType t, Ints shape, bool ends, std::mt19937& rng) {
  Tensor x = Tensor::zeros(t, std::move(shape)).value();
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_i64(i, any_byte(t, ends, rng));
  return x;
}

ValueId real_value(Builder& b, ValueId v, const Side& side, bool scaled, std::mt19937& rng) {
  const Shape shape = b.shape(v);
  const Ints many = side.axis < 0 ? Ints{} : Ints{shape[side.axis].value()};
  const Ints axes = side.axis < 0 ? Ints{} : Ints{side.axis};
  v = b.cast(v, DType::I32);
  if (side.has_zero) {
    const ValueId zero = b.constant(bytes(side.dtype, many, side.ends, rng));
    v = b.binary(GOp::Sub, v, b.cast(b.broadcast_in(zero, shape, axes), DType::I32));
  }
  if (!scaled) return v;
  Tensor scale = Tensor::zeros(DType::F32, many).value();
  for (std::int64_t i = 0; i < scale.size(); ++i) scale.set_f64(i, kOneScale * static_cast<double>(1 + rng() % 7));
  return b.binary(GOp::Mul, b.cast(v, DType::F32), b.broadcast_in(b.constant(scale), shape, axes));
}

Graph dot_model(const Side& x, const Side& w, bool scaled, Shape x_shape, Ints w_shape, bool transposed = false) {
  Graph g;
  std::mt19937 rng(3);
  const ValueId input = g.add_input({x.dtype, std::move(x_shape)}, "x");
  Builder b(g);
  const ValueId left = real_value(b, input, x, scaled, rng);
  ValueId right = real_value(b, b.constant(bytes(w.dtype, std::move(w_shape), w.ends, rng)), w, scaled, rng);
  if (transposed) right = b.transpose(right, {1, 0});
  g.set_outputs({b.dot(left, right, {}, {}, {b.type(left).rank() - 1}, {0}, scaled ? DType::F32 : DType::I32)});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

struct Window {
  Ints kernel, strides{1, 1}, dilations{1, 1};
  Shape lo{0, 0}, hi{0, 0};
  std::int64_t groups = 1;
};

Graph conv_model(const Side& x, const Side& w, bool scaled, Shape x_shape, std::int64_t outputs, const Window& window) {
  Graph g;
  std::mt19937 rng(3);
  Ints w_shape{outputs, x_shape[1].value() / window.groups};
  w_shape.insert(w_shape.end(), window.kernel.begin(), window.kernel.end());
  const ValueId input = g.add_input({x.dtype, std::move(x_shape)}, "x");
  Builder b(g);
  const ValueId left = real_value(b, input, x, scaled, rng);
  const ValueId right = real_value(b, b.constant(bytes(w.dtype, w_shape, w.ends, rng)), w, scaled, rng);
  Attrs attrs;
  attrs.set(Attr::Strides, window.strides).set(Attr::Dilations, window.dilations).set(Attr::BaseDilations, Ints{1, 1});
  attrs.set(Attr::Lo, window.lo).set(Attr::Hi, window.hi).set(Attr::Groups, window.groups).set(Attr::ChannelsLast, false);
  attrs.set(Attr::DType, scaled ? DType::F32 : DType::I32);
  g.set_outputs({b.node(GOp::Conv, {left, right}, attrs)});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

// How many products of u8 and i8 there are.
int byte_products(const Graph& g) {
  int n = 0;
  for (const graph::Node& node : g.nodes()) {
    if (node.op != GOp::Dot && node.op != GOp::Conv) continue;
    n += g.type(node.operands[0]).dtype == DType::U8 && g.type(node.operands[1]).dtype == DType::I8 ? 1 : 0;
  }
  return n;
}

Graph in_bytes(const Graph& g) { return graph::dce(multiply_bytes(g, {}).value()).value(); }

void expect_bytes(const Graph& g, bool scaled, const Bindings& sizes = {}) {
  const Graph n = in_bytes(g);
  EXPECT_EQ(byte_products(n), 1) << graph::print(n);
  std::mt19937 rng(8);
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> inputs;
    for (ValueId v : g.inputs()) inputs.push_back(bytes(g.type(v).dtype, evaluate(g.type(v).shape, sizes).value(), round == 1, rng));
    const auto want = graph::interpret(g, inputs), got = graph::interpret(n, inputs);
    ASSERT_TRUE(want.ok() && got.ok()) << graph::print(n);
    expect_alike((*want)[0], (*got)[0], scaled ? 1e-6 : 0);
  }
}

TEST(MultiplyBytes, DotsOfEveryKind) {
  for (const DType x : {DType::U8, DType::I8}) {
    for (const DType w : {DType::U8, DType::I8}) {
      for (const bool zeros : {true, false}) {
        for (const bool ends : {true, false}) {
          for (const bool scaled : {true, false}) {
            SCOPED_TRACE(std::string(name(x)) + " " + name(w) + (zeros ? " zeros" : "") + (ends ? " ends" : "") + (scaled ? " scaled" : ""));
            for (const std::int64_t axis : {-1, 1}) {
              expect_bytes(dot_model({x, zeros, -1, ends}, {w, zeros, axis, ends}, scaled, {3, 24}, {24, 10}), scaled);
              expect_bytes(dot_model({x, zeros, -1, ends}, {w, zeros, axis, ends}, scaled, {2, 5, 23}, {23, 9}), scaled);
            }
            expect_bytes(dot_model({x, zeros, -1, ends}, {w, zeros, 0, ends}, scaled, {3, 16}, {10, 16}, true), scaled);
          }
        }
      }
    }
  }
}

TEST(MultiplyBytes, NoRows) { expect_bytes(dot_model({DType::U8}, {DType::I8}, false, {0, 24}, {24, 10}), false); }

TEST(MultiplyBytes, RowsWhoseNumberIsNotKnown) {
  expect_bytes(dot_model({DType::U8}, {DType::U8, true, 1}, true, {Dim::symbol("n"), 22}, {22, 10}), true, {{"n", 5}});
}

TEST(MultiplyBytes, ConvolutionsOfEveryKind) {
  const Window windows[] = {{{1, 1}},
                            {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                            {{3, 2}, {2, 1}, {1, 2}, {0, 2}, {1, 0}},
                            {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 8}};
  for (const DType x : {DType::U8, DType::I8}) {
    for (const DType w : {DType::U8, DType::I8}) {
      for (const bool ends : {true, false}) {
        for (const bool scaled : {true, false}) {
          for (const Window& window : windows) {
            SCOPED_TRACE(std::string(name(x)) + " " + name(w) + (ends ? " ends" : "") + (scaled ? " scaled" : ""));
            const bool grouped = window.groups > 1;
            const Side right{w, !grouped, grouped ? -1 : 0, ends};
            if (grouped && w == DType::U8) continue;  // what does not fit into i8 needs sums by group
            expect_bytes(conv_model({x, true, -1, ends}, right, scaled, {2, grouped ? 8 : 6, 7, 9}, 16, window), scaled);
          }
        }
      }
    }
  }
}

TEST(MultiplyBytes, WhatStays) {
  const auto stays = [](const Graph& g) {
    const Graph n = in_bytes(g);
    EXPECT_EQ(byte_products(n), 0) << graph::print(n);
  };
  stays(dot_model({DType::U8}, {DType::I8}, false, {3, 24}, {24, 3}));             // few outputs
  stays(dot_model({DType::U8, true, 1}, {DType::I8}, false, {3, 24}, {24, 10}));   // a zero point for each term
  stays(dot_model({DType::U8}, {DType::I8, true, 0}, true, {3, 24}, {24, 10}));    // a scale for each term
  stays(dot_model({DType::U8}, {DType::I8}, true, {1, 40000}, {40000, 8}));        // the sum might not fit
  stays(dot_model({DType::U8}, {DType::I8}, false, {3, 0}, {0, 10}));              // nothing to sum
}

}  // namespace
}  // namespace weft::transform
