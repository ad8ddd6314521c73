#include "graph/builder.h"

#include <gtest/gtest.h>

#include "graph/rewrite.h"
#include "snippet.h"

namespace weft::graph {
namespace {

const Dim kN = Dim::symbol("n");

std::string shape_text(const Builder& b, ValueId v) { return str(b.shape(v)); }

TEST(Builder, BinaryBroadcastsByExplicitNodes) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::F32, {kN, 4}});
  const ValueId y = b.binary(Op::Mul, x, b.scalar(DType::F32, 2));
  ASSERT_TRUE(b.status().ok());
  EXPECT_EQ(shape_text(b, y), "[n, 4]");
  EXPECT_EQ(g.constant(g.def(g.def(y)->operands[1])->operands[0])->size(), 1);
  const ValueId column = g.add_input({DType::F32, {kN, 1}});
  const ValueId row = g.add_input({DType::F32, {7}});
  EXPECT_EQ(shape_text(b, b.binary(Op::Add, column, row)), "[n, 7]");
  EXPECT_TRUE(b.status().ok());
}

TEST(Builder, SymbolicSizeAgainstConstantIsAsserted) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::F32, {kN}});
  const ValueId y = g.add_input({DType::F32, {5}});
  const ValueId sum = b.binary(Op::Add, x, y);
  ASSERT_TRUE(b.status().ok());
  EXPECT_EQ(shape_text(b, sum), "[5]");
  EXPECT_EQ(g.def(g.def(sum)->operands[0])->op, Op::Reshape);
}

TEST(Builder, UnrelatedSymbolsAreAssertedToBeEqual) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::F32, {kN}});
  const ValueId y = g.add_input({DType::F32, {Dim::symbol("m")}});
  const ValueId sum = b.binary(Op::Add, x, y);
  ASSERT_TRUE(b.status().ok());
  EXPECT_EQ(shape_text(b, sum), "[n]");
  EXPECT_EQ(g.def(g.def(sum)->operands[1])->op, Op::Reshape);
}

// [a, b] and [b, a] hold as many elements, whatever a and b are: each axis is asserted by itself.
TEST(Builder, SizesAreAssertedAxisByAxis) {
  Graph g;
  const ValueId x = g.add_input({DType::F32, {Dim::symbol("a"), Dim::symbol("b")}}, "x");
  const ValueId y = g.add_input({DType::F32, {Dim::symbol("b"), Dim::symbol("a")}}, "y");
  Builder b(g);
  g.set_outputs({b.binary(Op::Add, x, y)});
  ASSERT_TRUE(b.status().ok()) << b.status().error().what();
  const auto run = [&](std::vector<std::int64_t> left, std::vector<std::int64_t> right) {
    return interpret(g, {Tensor::zeros(DType::F32, std::move(left)).value(), Tensor::zeros(DType::F32, std::move(right)).value()}).ok();
  };
  EXPECT_TRUE(run({3, 3}, {3, 3}));
  EXPECT_FALSE(run({2, 3}, {3, 2}));
}

TEST(Builder, SizesThatDifferAreAnErrorThatNamesTheOrigin) {
  Graph g;
  Builder b(g);
  b.set_origin(std::make_shared<Origin>(Origin{"/layer/Add", "Add"}));
  const ValueId x = g.add_input({DType::F32, {kN}});
  const ValueId y = g.add_input({DType::F32, {kN + 1}});
  EXPECT_EQ(b.binary(Op::Add, x, y), kInvalid);
  ASSERT_FALSE(b.status().ok());
  EXPECT_STREQ(b.status().error().what(),
               "error[shape-mismatch] at '/layer/Add (Add)': the sizes of an axis do not broadcast "
               "(expected n, found "
               "n + 1)");
}

TEST(Builder, FirstErrorIsKeptAndLaterCallsAreInvalid) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::I32, {kN}});
  const ValueId bad = b.unary(Op::Sqrt, x);
  EXPECT_EQ(bad, kInvalid);
  EXPECT_EQ(b.binary(Op::Add, bad, x), kInvalid);
  EXPECT_EQ(b.reduce(Op::ReduceSum, bad, {0}, true), kInvalid);
  EXPECT_EQ(b.matmul(bad, bad), kInvalid);
  EXPECT_EQ(b.concat({bad, x}, -1), kInvalid);
  EXPECT_EQ(b.broadcast_to(bad, {2}), kInvalid);
  EXPECT_EQ(b.slice_axis(bad, 0, 0, 1), kInvalid);
  EXPECT_EQ(b.nodes(Op::Sort, {bad}).size(), 2u);
  ASSERT_FALSE(b.status().ok());
  EXPECT_EQ(b.status().error().code(), "dtype-mismatch");
}

TEST(Builder, ShapeValueOfKnownSizesIsAConstant) {
  Graph g;
  Builder b(g);
  g.add_input({DType::F32, {kN}});
  EXPECT_EQ(g.constant(b.shape_value({2, 3}))->i64(1), 3);
  EXPECT_EQ(g.def(b.shape_value({kN, 3}))->op, Op::ShapeValue);
}

TEST(Builder, HelpersAddNoNodeWithoutEffect) {
  Graph g;
  Builder b(g);
  const ValueId x = g.add_input({DType::F32, {kN, 4}});
  EXPECT_EQ(b.reshape(x, {kN, 4}), x);
  EXPECT_EQ(b.transpose(x, {0, -1}), x);
  EXPECT_EQ(b.slice_axis(x, -1, 0, 4), x);
  EXPECT_EQ(b.pad(x, {0, 0}, {0, 0}, b.scalar(DType::F32, 0)), x);
  EXPECT_EQ(b.cast(x, DType::F32), x);
  EXPECT_EQ(b.broadcast_to(x, {kN, 4}), x);
  EXPECT_EQ(b.concat({x}, 0), x);
  EXPECT_EQ(b.reduce(Op::ReduceSum, x, {}), x);
  EXPECT_EQ(shape_text(b, b.reduce(Op::ReduceMax, x, {-1}, true)), "[n, 1]");
  EXPECT_EQ(shape_text(b, b.reduce(Op::ArgMax, x, {-1})), "[n]");
}

TEST(Builder, MatmulFollowsNumPy) {
  struct {
    Shape a, b;
    const char* result;
  } const cases[] = {
      {{4}, {4}, "[]"},
      {{4}, {4, 5}, "[5]"},
      {{3, 4}, {4}, "[3]"},
      {{kN, 4}, {4, 5}, "[n, 5]"},
      {{2, kN, 4}, {4, 5}, "[2, n, 5]"},
      {{4}, {2, 4, 5}, "[2, 5]"},
      {{2, 3, 4}, {4}, "[2, 3]"},
      {{kN, 3, 4}, {1, 4, 5}, "[n, 3, 5]"},
      {{7, 1, 3, 4}, {2, 4, 5}, "[7, 2, 3, 5]"},
  };
  for (const auto& c : cases) {
    Graph g;
    Builder b(g);
    const ValueId r = b.matmul(g.add_input({DType::F32, c.a}), g.add_input({DType::F32, c.b}));
    ASSERT_TRUE(b.status().ok()) << b.status().error().what();
    EXPECT_EQ(shape_text(b, r), c.result);
  }
}

TEST(Rewriter, ReplacesAndRecursesIntoRegions) {
  const Graph g = parsed(R"(graph @f(%x "in": f32[n], %c: bool[]) where n in 1..9 {
    %y "mid" = neg %x : f32[n]  # node "N" op "Neg"
    %r = if %c, %y regions {
      graph @then(%a: f32[n]) { %b = neg %a return %b }
      graph @else(%a: f32[n]) { return %a } }
    return %r })");
  Rewriter rewriter([](const RewriteContext& c) -> std::optional<std::vector<ValueId>> {
    if (c.node.op != Op::Neg) return std::nullopt;
    return std::vector<ValueId>{c.builder.unary(Op::Abs, c.operands[0])};
  });
  const Graph out = rewriter.run(g).value();
  EXPECT_EQ(rewriter.replaced(), 2);
  EXPECT_EQ(print(out), R"(graph @f(%0 "in": f32[n], %1: bool[]) -> (f32[n]) where n in 1..9 {
  %2 "mid" = abs %0 : f32[n]  # node "N" op "Neg"
  %3 = if %1, %2 : f32[n] regions {
    graph @then(%0: f32[n]) -> (f32[n]) {
      %1 = abs %0 : f32[n]
      return %1
    }
    graph @else(%0: f32[n]) -> (f32[n]) {
      return %0
    }
  }
  return %3
}
)");
  EXPECT_TRUE(verify(out).ok());
  EXPECT_EQ(out.node(1).regions[1], g.node(1).regions[1]) << "an unchanged region is shared";
}

TEST(Rewriter, FailedBuildingIsAnError) {
  const Graph g = parsed("graph @f(%x: i32[n]) { %y = neg %x return %y }");
  Rewriter rewriter([](const RewriteContext& c) {
    return std::optional(std::vector<ValueId>{c.builder.unary(Op::Sqrt, c.operands[0])});
  });
  const auto out = rewriter.run(g);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code(), "dtype-mismatch");
}

TEST(Dce, KeepsWhatIsNeededAndSizesThatAreMentioned) {
  const Graph g = parsed(R"(graph @f(%x: f32[n]) {
    %dead = exp %x
    %nz = non_zero %x {symbol=[p]}
    %unused = non_zero %x {symbol=[q]}
    custom_call %x {name="log", types=""}
    fail {name="nothing valid can stand here"}
    %k = shape_value {shape=[p, 2]}
    return %k })");
  const Graph out = dce(g).value();
  ASSERT_EQ(out.nodes().size(), 4u);
  EXPECT_EQ(out.node(0).attrs.dims(Attr::Symbol)[0].str(), "p");
  EXPECT_EQ(out.node(1).op, Op::CustomCall);
  EXPECT_EQ(out.node(2).op, Op::Fail);
  EXPECT_EQ(out.node(3).op, Op::ShapeValue);
  EXPECT_EQ(use_counts(g)[0], 4);
}

TEST(Verify, UnboundSymbolsAndMissingOutputsAreNamed) {
  const auto unbound = verify(parsed("graph @f() { %x = shape_value {shape=[q, 2]} return %x }"));
  ASSERT_FALSE(unbound.ok());
  EXPECT_STREQ(unbound.error().what(),
               "error[unbound-symbol]: graph @f, node 0 (shape_value): no input and no op binds "
               "the size 'q'");
  const auto none = verify(parsed("graph @f(%x: f32[]) { %y = abs %x return }"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), "no-outputs");
}

TEST(Attrs, EqualityAndHashFollowContent) {
  const auto attrs = [](double v) {
    return Attrs()
        .set(Attr::Data, Tensor::scalar(DType::F32, v))
        .set(Attr::Axes, std::vector<std::int64_t>{1, 2});
  };
  EXPECT_TRUE(attrs(1) == attrs(1));
  EXPECT_EQ(attrs(1).hash(), attrs(1).hash());
  EXPECT_FALSE(attrs(1) == attrs(2));
  EXPECT_NE(attrs(1).hash(), attrs(2).hash());
  EXPECT_FALSE(attrs(1) == Attrs().set(Attr::Axes, std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace weft::graph
