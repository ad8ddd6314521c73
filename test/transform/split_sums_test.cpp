// Long sums in parts: which are split, and that the results stay the same.
#include "graph/builder.h"
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

Graph reduction(GOp op, DType dtype, const Ints& shape, Ints axes) {
  Graph g;
  const ValueId x = g.add_input({dtype, Shape(shape.begin(), shape.end())}, "x");
  Builder b(g);
  g.set_outputs({b.reduce(op, x, std::move(axes))});
  EXPECT_TRUE(b.status().ok());
  return g;
}

Graph product(DType dtype, const Ints& lhs, const Ints& rhs, const Ints& lhs_batch, const Ints& rhs_batch, const Ints& lhs_contract,
              const Ints& rhs_contract) {
  Graph g;
  const ValueId x = g.add_input({dtype, Shape(lhs.begin(), lhs.end())}, "x");
  const ValueId y = g.add_input({dtype, Shape(rhs.begin(), rhs.end())}, "y");
  Builder b(g);
  g.set_outputs({b.dot(x, y, lhs_batch, rhs_batch, lhs_contract, rhs_contract, dtype)});
  EXPECT_TRUE(b.status().ok());
  return g;
}

Graph split(const Graph& g) {
  auto out = split_sums(g, {});
  EXPECT_TRUE(out.ok()) << out.error().what();
  return out.ok() ? *out : g;
}

TEST(SplitSums, ReductionsKeepTheirResults) {
  struct Case {
    GOp op;
    DType dtype;
    Ints shape, axes;
    double tolerance;
  };
  const Case cases[]{
      {GOp::ReduceSum, DType::F32, {1 << 18}, {0}, 1e-5},
      {GOp::ReduceSum, DType::F32, {3, 100003}, {1}, 1e-5},  // a prime: there is a rest
      {GOp::ReduceSum, DType::F16, {2, 300, 1000}, {1, 2}, 1e-2},
      {GOp::ReduceMax, DType::F32, {5, 40000, 2}, {0, 1}, 0},
      {GOp::ReduceMin, DType::I64, {70001, 4}, {0}, 0},
      {GOp::ReduceProd, DType::I32, {150000}, {0}, 0},
      {GOp::ReduceOr, DType::Bool, {600001}, {0}, 0},
      {GOp::ReduceAnd, DType::U8, {2, 300000}, {1}, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(graph::info(c.op).name);
    const Graph g = reduction(c.op, c.dtype, c.shape, c.axes), s = split(g);
    EXPECT_GE(count(s, c.op), 2) << graph::print(s);
    expect_same_results(g, s, {}, Values::Tame, c.tolerance, 1);
    if (c.op != GOp::ReduceSum) expect_same_results(g, s, {}, Values::Wild, c.tolerance, 1);
  }
}

TEST(SplitSums, DotsKeepTheirResults) {
  struct Case {
    Ints lhs, rhs, lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  };
  const Case cases[]{
      {{1, 100000}, {100000, 2}, {}, {}, {1}, {0}},
      {{100003}, {100003}, {}, {}, {0}, {0}},
      {{2, 4, 40000}, {40000, 3, 2}, {0}, {2}, {2}, {0}},
      {{5, 90, 1000}, {1000, 90}, {}, {}, {1, 2}, {1, 0}},
  };
  for (const Case& c : cases) {
    const Graph g = product(DType::F32, c.lhs, c.rhs, c.lhs_batch, c.rhs_batch, c.lhs_contract, c.rhs_contract), s = split(g);
    EXPECT_EQ(count(s, GOp::ReduceSum), 1) << graph::print(s);
    expect_same_results(g, s, {}, Values::Tame, 1e-4, 1);
  }
}

TEST(SplitSums, LeavesWhatFillsAGridOrIsSmall) {
  for (const Graph& g : {reduction(GOp::ReduceSum, DType::F32, {1 << 16}, {0}), reduction(GOp::ReduceSum, DType::F32, {512, 4096}, {1}),
                         reduction(GOp::ReduceSum, DType::F32, {0, 4096}, {1}),
                         product(DType::F32, {1, 2048}, {2048, 1000}, {}, {}, {1}, {0})}) {
    EXPECT_EQ(ops_of(split(g)), ops_of(g));
  }
}

}  // namespace
}  // namespace weft::transform
