// The table of passes, their switches, and passes that need no test file of their own.
#include "transform/pipeline.h"

#include <set>

#include "graph/builder.h"
#include "support.h"
#include "transform/passes.h"

namespace weft::transform {
namespace {

using namespace testing;
using GOp = graph::Op;

constexpr const char* kTwoAdds =
    "graph @t(%x: f32[4]) -> (f32[4], f32[4]) {\n%a = abs %x : f32[4]\n%b = abs %x : f32[4]\n%c = neg %x : f32[4]\n"
    "return %a, %b\n}\n";

TEST(Pipeline, PassesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Pass& pass : passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_GT(std::string(pass.doc).size(), 10u);
  }
}

TEST(Pipeline, ALimitOfNoneChangesNothing) {
  const graph::Graph before = parsed(kTwoAdds);
  PassOptions options;
  options.limit = 0;
  EXPECT_EQ(graph::print(*optimize(before, options)), graph::print(before));
  EXPECT_EQ(ops_of(*optimize(before, {})), "abs");
}

TEST(Pipeline, APassIsSwitchedOffByName) {
  PassOptions options;
  options.off = {"cse"};
  EXPECT_EQ(ops_of(*optimize(parsed(kTwoAdds), options)), "abs abs");
}

TEST(FoldScale, AScaleAndShiftAfterADot) {
  graph::Graph g;
  graph::Builder b(g);
  std::mt19937 rng(3);
  const auto x = g.add_input({DType::F32, {5, 6}}, "x");
  const auto per_channel = [&] {
    return b.broadcast_in(b.constant(random_tensor(DType::F32, {7}, rng, Values::Tame)), {Dim(5), Dim(7)}, {1});
  };
  auto y = b.matmul(x, b.constant(random_tensor(DType::F32, {6, 7}, rng, Values::Tame)));
  y = b.node(GOp::Sub, {y, per_channel()});
  y = b.node(GOp::Mul, {y, per_channel()});
  y = b.node(GOp::Add, {y, per_channel()});
  g.set_outputs({b.node(GOp::Max, {y, b.like(y, 0)})});
  ASSERT_TRUE(b.status().ok());
  const auto after = optimize(g, {});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(count(*after, GOp::Mul), 0);
  EXPECT_EQ(count(*after, GOp::Add) + count(*after, GOp::Sub), 1) << graph::print(*after);
  expect_same_results(g, *after, {}, Values::Tame, 1e-5);
  PassOptions off;
  off.off = {"fold-scale"};
  EXPECT_EQ(count(*optimize(g, off), GOp::Mul), 1);
}

TEST(FoldScale, AProductThatIsReadTwiceStays) {
  graph::Graph g;
  graph::Builder b(g);
  std::mt19937 rng(3);
  const auto x = g.add_input({DType::F32, {5, 6}}, "x");
  const auto y = b.matmul(x, b.constant(random_tensor(DType::F32, {6, 7}, rng, Values::Tame)));
  g.set_outputs({y, b.node(GOp::Mul, {y, b.like(y, 3)})});
  ASSERT_TRUE(b.status().ok());
  const auto after = optimize(g, {});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(count(*after, GOp::Mul), 1);
  expect_same_results(g, *after, {}, Values::Tame);
}

TEST(Fold, AConstantIsNotSpreadOut) {
  const graph::Graph g = parsed(
      "graph @t(%x: f32[4, 3]) -> (f32[4, 3]) {\n%c = constant {data=f32[3](1, 2, 4)} : f32[3]\n"
      "%d = constant {data=f32[](0.3)} : f32[]\n%e = broadcast %d {axes=[], shape=[3]} : f32[3]\n"
      "%f = mul %c, %e : f32[3]\n%s = broadcast %f {axes=[1], shape=[4, 3]} : f32[4, 3]\n"
      "%y = add %x, %s : f32[4, 3]\nreturn %y\n}\n");
  const auto after = optimize(g, {});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(ops_of(*after), "broadcast add");
  expect_same_results(g, *after, {}, Values::Wild);
}

TEST(SinkConstants, WhatNoIterationChangesBecomesAConstantOfTheBody) {
  const graph::Graph before = parsed(
      "graph @t(%x: f32[2]) -> (f32[2], f32[2]) {\n"
      "%n = constant {data=i64[](3)} : i64[]\n%c = constant {data=bool[](true)} : bool[]\n"
      "%w = constant {data=f32[2](2, 3)} : f32[2]\n"
      "%a, %b = loop %n, %c, %x, %w, %x {carried=2, symbol=[]} : f32[2], f32[2] regions {\n"
      "graph @region(%i: i64[], %go: bool[], %v: f32[2], %k: f32[2], %s: f32[2]) -> (bool[], f32[2], f32[2]) {\n"
      "%m = mul %v, %k : f32[2]\n%t = add %m, %s : f32[2]\nreturn %go, %t, %k\n}\n}\nreturn %a, %b\n}\n");
  const auto after = sink_constants(before, {});
  ASSERT_TRUE(after.ok());
  for (const auto& node : after->nodes()) {
    if (node.op != GOp::Loop) continue;
    EXPECT_EQ(node.attrs.integer(graph::Attr::Carried), 1);
    EXPECT_EQ(node.operands.size(), 4u);  // count, condition, the carried value and the captured one
    EXPECT_NE(graph::print(*node.regions[0]).find("constant"), std::string::npos);
  }
  expect_same_results(before, *after, {}, Values::Tame, 0);
}

TEST(SplitContractions, JoinedHeadsAreSummedApart) {
  for (const bool swapped : {false, true}) {
    graph::Graph g;
    graph::Builder b(g);
    std::mt19937 rng(5);
    const auto x = g.add_input({DType::F32, {Dim(2), Dim::symbol("n"), Dim(3), Dim(4)}}, "x");
    const auto joined = b.reshape(x, {Dim(2), Dim::symbol("n"), Dim(12)});
    const auto w = b.constant(random_tensor(DType::F32, {12, 5}, rng, Values::Tame));
    g.set_outputs({swapped ? b.dot(w, joined, {}, {}, {0}, {2}, DType::F32)
                           : b.dot(joined, w, {}, {}, {2}, {0}, DType::F32)});
    ASSERT_TRUE(b.status().ok());
    const auto after = split_contractions(g, {});
    ASSERT_TRUE(after.ok());
    for (const auto& node : after->nodes()) {
      if (node.op != GOp::Dot) continue;
      EXPECT_EQ(node.attrs.ints(graph::Attr::LhsContract).size(), 2u);
    }
    expect_same_results(g, *after, {{"n", 3}}, Values::Tame, 1e-6);
  }
}

TEST(Pipeline, RegionsGetTheSamePasses) {
  const graph::Graph g = parsed(
      "graph @t(%c: bool[], %x: f32[4]) -> (f32[4]) {\n%y = if %c, %x : f32[4] regions {\n"
      "graph @then(%x: f32[4]) -> (f32[4]) {\n%a = neg %x : f32[4]\n%b = neg %a : f32[4]\nreturn %b\n}\n"
      "graph @else(%x: f32[4]) -> (f32[4]) {\n%a = abs %x : f32[4]\n%b = abs %a : f32[4]\nreturn %b\n}\n}\nreturn %y\n}\n");
  const auto after = optimize(g, {});
  ASSERT_TRUE(after.ok()) << after.error().what();
  ASSERT_EQ(after->nodes().size(), 1u);
  EXPECT_EQ(ops_of(*after->nodes()[0].regions[0]), "");
  EXPECT_EQ(ops_of(*after->nodes()[0].regions[1]), "abs");
  expect_same_results(g, *after, {}, Values::Wild);
}

}  // namespace
}  // namespace weft::transform
