// The target that does nothing: every model compiles for it and runs, and gives zeros of the right shapes.
#include "compile/support.h"
#include "target/target.h"

namespace weft::target {
namespace {

using namespace compiler::testing;

TEST(Null, TakesEverythingAndGivesZeros) {
  const graph::Graph graph = parsed(R"(graph @rows(%0 "x": f32[n, 8]) -> (f32[n, 8], f32[n]) where n in 0..100 {
  %1 = exp %0 : f32[n, 8]
  %2 = reduce_sum %1 {axes=[1]} : f32[n]
  return %1, %2
})");
  compiler::Options options;
  options.cache = false;
  options.target = open("null:sm_90a").value();
  const auto made = compiler::compile(graph, options);
  ASSERT_TRUE(made.ok()) << made.error().what();
  const runtime::Executable executable(made->plan);
  std::mt19937 random(1);
  for (const std::int64_t n : {0, 1, 7}) {
    Tensors outputs;
    ASSERT_TRUE(executable.run({random_tensor(DType::F32, {n, 8}, random)}, outputs, {}).ok());
    EXPECT_EQ(outputs[0].shape(), (Sizes{n, 8}));
    EXPECT_EQ(outputs[1].shape(), (Sizes{n}));
    for (const Tensor& t : outputs) {
      for (std::int64_t i = 0; i < t.size(); ++i) EXPECT_EQ(t.f64(i), 0);
    }
  }
}

TEST(Null, WantsTheNameOfAMachine) { EXPECT_EQ(open("null").error().code(), "unknown-target"); }

}  // namespace
}  // namespace weft::target
