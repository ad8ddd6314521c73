// Transposed convolutions by phases: which are split, and that the results stay the same.
#include "graph/builder.h"
#include "support.h"
#include "transform/passes.h"

namespace weft::transform {
namespace {

using namespace testing;
using graph::Attr;
using graph::Builder;
using graph::Graph;
using graph::ValueId;
using GOp = graph::Op;
using Ints = std::vector<std::int64_t>;

Graph transposed(const Shape& x, const Ints& w, const Ints& spread, const Ints& lo, const Ints& hi, std::mt19937& rng) {
  Graph g;
  const ValueId in = g.add_input({DType::F32, x}, "x");
  Builder b(g);
  const Ints ones(spread.size(), 1);
  graph::Attrs attrs;
  attrs.set(Attr::Strides, ones).set(Attr::Dilations, ones).set(Attr::BaseDilations, spread);
  attrs.set(Attr::Lo, Shape(lo.begin(), lo.end())).set(Attr::Hi, Shape(hi.begin(), hi.end()));
  attrs.set(Attr::Groups, std::int64_t{1}).set(Attr::ChannelsLast, true).set(Attr::DType, DType::F32);
  const ValueId weights = b.constant(random_tensor(DType::F32, w, rng, Values::Tame));
  g.set_outputs({b.node(GOp::Conv, {in, weights}, std::move(attrs))});
  EXPECT_TRUE(b.status().ok());
  return g;
}

bool is_split(const Graph& g) { return count(g, GOp::Reverse) > 0; }

TEST(SplitPhases, ResultsStay) {
  struct Case {
    Ints x, w, spread, lo, hi;
  };
  const Case cases[]{
      {{1, 7, 3}, {16, 3, 5}, {8}, {11}, {11}},                          // a vocoder's
      {{2, 5, 4}, {4, 4, 3}, {2}, {2}, {2}},   {{1, 6, 2}, {4, 2, 1}, {2}, {3}, {3}},
      {{1, 1, 2}, {2, 2, 2}, {2}, {1}, {1}},   {{1, 9, 1}, {6, 1, 2}, {3}, {0}, {4}},
      {{1, 4, 2}, {4, 2, 3}, {4}, {3}, {9}},   {{1, 0, 2}, {4, 2, 3}, {2}, {3}, {3}},  // no input: zeros
      {{1, 4, 3, 2}, {4, 2, 2, 3}, {2, 1}, {2, 0}, {2, 1}},
      {{2, 3, 5, 2}, {4, 6, 2, 3}, {2, 3}, {3, 4}, {1, 5}},
      {{1, 2, 3, 2, 1}, {2, 2, 4, 1, 2}, {2, 1, 2}, {1, 1, 3}, {1, 0, 3}},
  };
  std::mt19937 rng(3);
  for (const Case& c : cases) {
    const Graph before = transposed(Shape(c.x.begin(), c.x.end()), c.w, c.spread, c.lo, c.hi, rng);
    auto after = split_phases(before, {});
    ASSERT_TRUE(after.ok()) << after.error().what();
    EXPECT_TRUE(is_split(*after));
    EXPECT_EQ(before.type(before.outputs()[0]), after->type(after->outputs()[0]));
    for (const Values values : {Values::Tame, Values::Wild}) expect_same_results(before, *after, {}, values, 1e-5, 2);
  }
}

TEST(SplitPhases, SizesMayBeOpen) {
  std::mt19937 rng(5);
  const Graph before = transposed({Dim::symbol("b"), Dim::symbol("n"), 3}, {8, 3, 2}, {4}, {5}, {5}, rng);
  auto after = split_phases(before, {});
  ASSERT_TRUE(after.ok()) << after.error().what();
  EXPECT_TRUE(is_split(*after));
  for (const std::int64_t n : {0, 1, 2, 9}) expect_same_results(before, *after, {{"b", 2}, {"n", n}}, Values::Wild, 1e-5, 1);
}

TEST(SplitPhases, OthersAreLeftAlone) {
  std::mt19937 rng(4);
  EXPECT_FALSE(is_split(*split_phases(transposed({1, 7, 3}, {3, 3, 5}, {2}, {1}, {1}, rng), {})));  // 3 is no multiple of 2
  EXPECT_FALSE(is_split(*split_phases(transposed({1, 7, 3}, {4, 3, 5}, {1}, {1}, {1}, rng), {})));
}

}  // namespace
}  // namespace weft::transform
