// Products that a CPU's matrix unit multiplies, where there is one or an emulator of it (test/CMakeLists.txt); elsewhere
// the same ones without it.
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

struct Kind {
  DType left, right, sum;
};
constexpr Kind kKinds[] = {{DType::BF16, DType::BF16, DType::F32}, {DType::U8, DType::I8, DType::I32}, {DType::I8, DType::U8, DType::I32}};

void check_random(const Graph& g, const Sizes& shape, std::mt19937& random) {
  check(g, {{random_tensor(g.type(g.inputs()[0]).dtype, shape, random)}});
}

TEST(MatrixUnit, Dots) {
  std::mt19937 random(1);
  for (const Kind& kind : kKinds) {
    for (const std::int64_t k : {64, 96}) {
      for (const std::int64_t n : {16, 64, 70}) {
        SCOPED_TRACE(std::string(name(kind.left)) + " " + std::to_string(k) + " by " + std::to_string(n));
        Graph g;
        const ValueId x = g.add_input({kind.left, {Dim::symbol("n"), k}}, "x");
        Builder b(g);
        const ValueId y = b.dot(x, b.constant(random_tensor(kind.right, {k, n}, random)), {}, {}, {1}, {0}, kind.sum);
        const ValueId bias = b.constant(random_tensor(kind.sum, {n}, random));
        g.set_outputs({y, b.binary(GOp::Max, b.binary(GOp::Add, y, bias), b.scalar(kind.sum, 0))});
        for (const std::int64_t m : {0, 1, 33, 197}) check_random(g, {m, k}, random);
      }
    }
  }
}

TEST(MatrixUnit, RowsThatLieApart) {  // heads of a projection: [batch, head, row, k] of [batch, row, head, k]
  std::mt19937 random(2);
  for (const Kind& kind : kKinds) {
    Graph g;
    const ValueId x = g.add_input({kind.left, {2, 40, 3, 64}}, "x");
    Builder b(g);
    const ValueId w = b.constant(random_tensor(kind.right, {3, 64, 32}, random));
    g.set_outputs({b.dot(x, w, {2}, {0}, {3}, {1}, kind.sum)});
    check_random(g, {2, 40, 3, 64}, random);
  }
}

TEST(MatrixUnit, Convolutions) {
  std::mt19937 random(3);
  for (const Kind& kind : kKinds) {
    for (const std::int64_t stride : {1, 2}) {
      for (const std::int64_t outputs : {32, 40}) {
        SCOPED_TRACE(std::string(name(kind.left)) + " " + std::to_string(outputs) + " stride " + std::to_string(stride));
        Graph g;
        const ValueId x = g.add_input({kind.left, {1, 19, 23, 64}}, "x");
        Builder b(g);
        Attrs attrs;
        attrs.set(Attr::Strides, Sizes{stride, stride}).set(Attr::Dilations, Sizes{1, 1}).set(Attr::BaseDilations, Sizes{1, 1});
        attrs.set(Attr::Lo, Shape{1, 1}).set(Attr::Hi, Shape{1, 1}).set(Attr::Groups, std::int64_t{1});
        attrs.set(Attr::ChannelsLast, true).set(Attr::DType, kind.sum);
        g.set_outputs({b.node(GOp::Conv, {x, b.constant(random_tensor(kind.right, {3, 3, 64, outputs}, random))}, attrs)});
        check_random(g, {1, 19, 23, 64}, random);
      }
    }
  }
}

// Tiles are a thread's.
TEST(MatrixUnit, OnSeveralThreads) {
  std::mt19937 random(4);
  Graph g;
  const ValueId x = g.add_input({DType::U8, {400, 256}}, "x");
  Builder b(g);
  g.set_outputs({b.dot(x, b.constant(random_tensor(DType::I8, {256, 256}, random)), {}, {}, {1}, {0}, DType::I32)});
  const auto one = executable(g);
  ASSERT_NE(one, nullptr);
  const Tensor input = random_tensor(DType::U8, {400, 256}, random);
  const Tensors expected = graph::interpret(g, {input}).value();
  for (int k = 0; k < 20; ++k) expect_same(run(*one, {input}, 2), expected);
}

}  // namespace
}  // namespace weft::compiler::testing
