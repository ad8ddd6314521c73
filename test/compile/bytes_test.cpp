// Products of bytes, compiled: u8 by i8 in words of four, wherever the sizes allow it and where they do not.
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

Tensor bytes(DType t, Sizes shape, std::mt19937& random, bool ends) {
  Tensor x = Tensor::zeros(t, std::move(shape)).value();
  const std::int64_t least = t == DType::I8 ? -128 : 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.set_i64(i, ends ? least + 255 * static_cast<std::int64_t>(random() % 2) : least + static_cast<std::int64_t>(random() % 256));
  }
  return x;
}

void check_bytes(const Graph& g, const std::vector<Sizes>& shapes) {
  std::mt19937 random(4);
  for (const bool ends : {false, true}) {
    Tensors inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) inputs.push_back(bytes(g.type(g.inputs()[i]).dtype, shapes[i], random, ends));
    check(g, {inputs});
  }
}

TEST(Bytes, Dots) {
  std::mt19937 random(2);
  for (const bool left_unsigned : {true, false}) {
    for (const std::int64_t m : {0, 1, 5, 37}) {
      for (const std::int64_t k : {0, 4, 8, 36, 132, 21}) {
        for (const std::int64_t n : {1, 8, 33, 80}) {
          Graph g;
          const ValueId x = g.add_input({left_unsigned ? DType::U8 : DType::I8, {m, k}}, "x");
          Builder b(g);
          const ValueId w = b.constant(bytes(left_unsigned ? DType::I8 : DType::U8, {k, n}, random, false));
          g.set_outputs({b.dot(x, w, {}, {}, {1}, {0}, DType::I32)});
          check_bytes(g, {{m, k}});
        }
      }
    }
  }
}

// (x - zx) . (w - zw) in i32: zero points known and not, of columns and of all, on every mixture of signs.
TEST(Bytes, ZeroPoints) {
  std::mt19937 random(6);
  for (const DType left : {DType::U8, DType::I8}) {
    for (const DType right : {DType::U8, DType::I8}) {
      for (const bool known : {true, false}) {
        for (const bool columns : {true, false}) {
          for (const std::int64_t k : {0, 3, 27, 64}) {
            Graph g;
            constexpr std::int64_t n = 19;
            const ValueId x = g.add_input({left, {Dim::symbol("n"), k}}, "x");
            const ValueId given = g.add_input({left, {}}, "zero");
            Builder b(g);
            b.set_folding(false);
            const ValueId zx = known ? b.constant(bytes(left, {}, random, true)) : given;
            const ValueId w = b.constant(bytes(right, {k, n}, random, false));
            const ValueId zw = b.constant(bytes(right, columns ? Sizes{n} : Sizes{}, random, true));
            const auto less = [&](ValueId v, ValueId zero) { return b.binary(GOp::Sub, b.cast(v, DType::I32), b.cast(zero, DType::I32)); };
            g.set_outputs({b.dot(less(x, zx), less(w, zw), {}, {}, {1}, {0}, DType::I32)});
            check_bytes(g, {{7, k}, {}});
            check_bytes(g, {{1, k}, {}});
          }
        }
      }
    }
  }
}

TEST(Bytes, DotsOfUnknownRows) {
  std::mt19937 random(2);
  Graph g;
  const ValueId x = g.add_input({DType::U8, {Dim::symbol("n"), 24}}, "x");
  Builder b(g);
  const ValueId y = b.dot(x, b.constant(bytes(DType::I8, {24, 40}, random, true)), {}, {}, {1}, {0}, DType::I32);
  g.set_outputs({b.binary(GOp::Mul, b.cast(y, DType::F32), b.scalar(DType::F32, 0.25))});
  for (const std::int64_t n : {0, 1, 3, 6, 50}) check_bytes(g, {{n, 24}});
}

// Neither side is constant: the four bytes of each column side by side, and apart.
TEST(Bytes, DotsOfTwoInputs) {
  for (const std::int64_t n : {1, 16, 35}) {
    Graph g;
    const ValueId x = g.add_input({DType::U8, {2, 7, 6, 4}}, "x"), w = g.add_input({DType::I8, {2, 6, n, 4}}, "w");
    Builder b(g);
    g.set_outputs({b.dot(x, w, {0}, {0}, {2, 3}, {1, 3}, DType::I32)});
    check_bytes(g, {{2, 7, 6, 4}, {2, 6, n, 4}});
    Graph apart;
    const ValueId p = apart.add_input({DType::U8, {7, 24}}, "x"), q = apart.add_input({DType::I8, {24, n}}, "w");
    Builder c(apart);
    apart.set_outputs({c.dot(p, q, {}, {}, {1}, {0}, DType::I32)});
    check_bytes(apart, {{7, 24}, {24, n}});
  }
}

// What follows a product and is a function of one byte is looked up, in the product's kernel and in one of its own.
TEST(Bytes, Activations) {
  std::mt19937 random(3);
  for (const std::int64_t n : {8, 40}) {
    Graph g;
    const ValueId x = g.add_input({DType::U8, {Dim::symbol("n"), 24}}, "x"), given = g.add_input({DType::I8, {33}}, "q");
    Builder b(g);
    const auto activated = [&](ValueId q, DType t) {
      const ValueId real = b.binary(GOp::Mul, b.cast(q, DType::F32), b.scalar(DType::F32, 0.05));
      const ValueId gate = b.binary(GOp::Mul, b.unary(GOp::Sigmoid, real), b.unary(GOp::Tanh, b.unary(GOp::Erf, b.unary(GOp::Tanh, real))));
      return b.cast(b.unary(GOp::Round, b.binary(GOp::Mul, gate, b.scalar(DType::F32, 300))), t);
    };
    const ValueId y = b.dot(x, b.constant(bytes(DType::I8, {24, n}, random, false)), {}, {}, {1}, {0}, DType::I32);
    const ValueId q = b.cast(b.unary(GOp::Round, b.binary(GOp::Mul, b.cast(y, DType::F32), b.scalar(DType::F32, 0.0078125))), DType::U8);
    g.set_outputs({activated(q, DType::U8), activated(given, DType::I8)});
    for (const std::int64_t rows : {0, 1, 21}) check_bytes(g, {{rows, 24}, {33}});
  }
}

TEST(Bytes, Convolutions) {
  std::mt19937 random(2);
  for (const std::int64_t channels : {4, 12, 6}) {
    for (const std::int64_t outputs : {5, 16, 40}) {
      for (const std::int64_t stride : {1, 2}) {
        for (const bool last : {true, false}) {
          Graph g;
          const Sizes shape = last ? Sizes{2, 7, 9, channels} : Sizes{2, channels, 7, 9};
          const ValueId x = g.add_input({DType::U8, Shape(shape.begin(), shape.end())}, "x");
          Builder b(g);
          const ValueId w = b.constant(bytes(DType::I8, last ? Sizes{3, 3, channels, outputs} : Sizes{outputs, channels, 3, 3}, random, false));
          Attrs attrs;
          attrs.set(Attr::Strides, Sizes{stride, 1}).set(Attr::Dilations, Sizes{1, 1}).set(Attr::BaseDilations, Sizes{1, 1});
          attrs.set(Attr::Lo, Shape{1, 0}).set(Attr::Hi, Shape{1, 2}).set(Attr::Groups, std::int64_t{1});
          attrs.set(Attr::ChannelsLast, last).set(Attr::DType, DType::I32);
          g.set_outputs({b.node(GOp::Conv, {x, w}, attrs)});
          check_bytes(g, {shape});
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing
