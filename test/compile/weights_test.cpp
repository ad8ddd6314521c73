// Weights in few bits: one kernel reads them as they are kept, and computes what the graph says.
#include "compile/support.h"
#include "graph/builder.h"

namespace weft::compiler::testing {
namespace {

using graph::Builder;
using graph::Graph;
using graph::ValueId;
using transform::Weights;

Graph model(std::int64_t depth, std::int64_t outputs, bool transposed) {
  Graph g;
  std::mt19937 random(4);
  g.facts.declare("n", {1, 64, 1});
  const ValueId x = g.add_input({DType::F32, {Dim::symbol("n"), depth}}, "x");
  Tensor w = Tensor::zeros(DType::F32, transposed ? Sizes{outputs, depth} : Sizes{depth, outputs}).value();
  for (std::int64_t i = 0; i < w.size(); ++i) w.set_f64(i, std::normal_distribution<double>()(random));
  Builder b(g);
  const ValueId y = b.dot(x, b.constant(w), {}, {}, {1}, {transposed ? 1 : 0}, DType::F32);
  g.set_outputs({b.binary(graph::Op::Max, y, b.scalar(DType::F32, 0))});
  EXPECT_TRUE(b.status().ok()) << b.status().error().what();
  return g;
}

TEST(NarrowWeights, AreReadAsTheyAreKept) {
  for (const Weights weights : {Weights::Bf16, Weights::Int8, Weights::Int4}) {
    for (const bool transposed : {false, true}) {
      Options options;
      options.cache = false;
      options.jobs = 1;
      options.passes.weights = weights;
      const Compiled made = compile(model(256, 130, transposed), options).value();
      EXPECT_EQ(made.report.kernels, 1) << graph::print(*made.graph);
      const runtime::Executable exe(made.plan);
      for (std::int64_t rows : {1, 3, 29}) {
        std::mt19937 random(7);
        Tensor x = Tensor::zeros(DType::F32, {rows, 256}).value();
        for (std::int64_t i = 0; i < x.size(); ++i) x.set_f64(i, std::normal_distribution<double>()(random));
        expect_same(run(exe, {x}, 2), graph::interpret(*made.graph, {x}).value(), std::to_string(rows));
      }
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing
