// Sums of products as one kernel: what is one, that it computes the same on threads and on groups of them.
#include <fmt/format.h>

#include "compile/support.h"
#include "graph/builder.h"
#include "loop/lower/lower.h"
#include "target/target.h"

namespace weft::compiler::testing {
namespace {

struct Case {
  std::string m, k, n;
  const char* dtype;
  std::string batch = "";  // of both operands, with a comma
  bool constant = false;   // right sides
};

// (a b + c b) + (a d + c e) + a, all of it added up in one loop; a is of the result's shape where k is n.
std::string model(const Case& c) {
  const std::string left = fmt::format("{}[{}{}, {}]", c.dtype, c.batch, c.m, c.k), right = fmt::format("{}[{}{}, {}]", c.dtype, c.batch, c.k, c.n);
  const std::string result = fmt::format("f32[{}{}, {}]", c.batch, c.m, c.n);
  const bool batched = !c.batch.empty();
  const std::string attrs = batched ? "{dtype=f32, lhs_batch=[0], lhs_contract=[2], rhs_batch=[0], rhs_contract=[1]}"
                                    : "{dtype=f32, lhs_batch=[], lhs_contract=[1], rhs_batch=[], rhs_contract=[0]}";
  const auto dot = [&](int result_number, int a, int b) {
    return fmt::format("  %{} = dot %{}, %{} {} : {}\n", result_number, a, b, attrs, result);
  };
  const auto add = [&](int result_number, int a, int b) { return fmt::format("  %{} = add %{}, %{} : {}\n", result_number, a, b, result); };
  return fmt::format("graph @sum(%0 \"a\": {}, %1 \"c\": {}, %2 \"b\": {}, %3 \"d\": {}, %4 \"e\": {}) -> ({}) where m in 0..64 {{\n", left, left, right, right, right, result) +
         dot(5, 0, 2) + dot(6, 1, 2) + add(7, 5, 6) + dot(8, 0, 3) + dot(9, 1, 4) + add(10, 8, 9) + add(11, 7, 10) +
         fmt::format("  %12 = exp %11 : {}\n  return %12\n}}", result);
}

int kernels(const graph::Graph& g) { return static_cast<int>(loop::lower(g).value().steps.size()); }

TEST(DotSums, AreOneKernel) {
  const graph::Graph g = parsed(model({"m", "40", "24", "f32"}));
  EXPECT_EQ(kernels(g), 1);
  const auto partition = loop::lower(g).value();
  const std::string text = loop::print(partition.steps[0].group);
  EXPECT_EQ(loop::print(loop::parse(text).value()), text);
  std::size_t updates = 0;
  for (std::size_t at = 0; (at = text.find("update t0 sum=", at)) != std::string::npos; ++at) ++updates;
  EXPECT_EQ(updates, 4u) << text;
}

const char* kAttrs = "{dtype=f32, lhs_batch=[], lhs_contract=[1], rhs_batch=[], rhs_contract=[0]} : f32[m, 8]\n";

// A dot that is read elsewhere, the same dot twice, sums over other sizes: kernels of their own.
TEST(DotSums, AreWhatNothingElseReads) {
  const std::string head = "graph @g(%0: f32[m, 16], %1: f32[16, 8], %2: f32[m, 12], %3: f32[12, 8]) -> (OUT) where m in 1..9 {\n";
  const auto graph = [&](std::string out, const std::string& body) {
    std::string text = head + body;
    return parsed(text.replace(text.find("OUT"), 3, out));
  };
  const std::string one = "f32[m, 8]", two = "f32[m, 8], f32[m, 8]";
  const std::string dots = std::string("  %4 = dot %0, %1 ") + kAttrs + "  %5 = dot %0, %1 " + kAttrs;
  EXPECT_EQ(kernels(graph(one, dots + "  %6 = add %4, %5 : f32[m, 8]\n  return %6\n}")), 1);
  EXPECT_EQ(kernels(graph(two, dots + "  %6 = add %4, %5 : f32[m, 8]\n  return %6, %4\n}")), 2);
  EXPECT_EQ(kernels(graph(one, std::string("  %4 = dot %0, %1 ") + kAttrs + "  %5 = add %4, %4 : f32[m, 8]\n  return %5\n}")), 1);
  EXPECT_EQ(kernels(graph(one, std::string("  %4 = dot %0, %1 ") + kAttrs + "  %5 = dot %2, %3 " + kAttrs + "  %6 = add %4, %5 : f32[m, 8]\n  return %6\n}")), 2);
}

// A chain in which the next product reads the last sum, and one whose operand reads the other's result.
TEST(DotSums, FollowEachOther) {
  const std::string text = R"(graph @g(%0: f32[m, 8], %1: f32[8, 8], %2: f32[8, 8]) -> (f32[m, 8]) where m in 0..40 {
  %3 = dot %0, %1 ATTRS  %4 = dot %0, %2 ATTRS  %5 = add %3, %4 : f32[m, 8]
  %6 = max %5, %0 : f32[m, 8]
  %7 = dot %6, %1 ATTRS  %8 = dot %0, %2 ATTRS  %9 = add %7, %8 : f32[m, 8]
  %10 = dot %9, %1 ATTRS  %11 = dot %5, %2 ATTRS  %12 = add %10, %11 : f32[m, 8]
  %13 = add %12, %9 : f32[m, 8]
  return %13
})";
  std::string whole = text;
  for (std::size_t at; (at = whole.find("ATTRS")) != std::string::npos;) whole.replace(at, 5, kAttrs);
  std::mt19937 random(3);
  std::vector<Tensors> runs;
  for (const std::int64_t m : {0, 1, 7, 33}) {
    runs.push_back({random_tensor(DType::F32, {m, 8}, random), random_tensor(DType::F32, {8, 8}, random), random_tensor(DType::F32, {8, 8}, random)});
  }
  check(whole, runs);
  EXPECT_EQ(kernels(parsed(whole)), 4);  // three sums, and a maximum that would be one value more
}

Tensors inputs_of(const graph::Graph& g, std::int64_t m, std::mt19937& random) {
  Tensors inputs;
  for (graph::ValueId v : g.inputs()) {
    const Sizes shape = evaluate(g.type(v).shape, {{"m", m}}).value();
    Tensor t = random_tensor(g.type(v).dtype, shape, random);
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, t.f64(i) / 16);  // exp is finite, products are exact
    inputs.push_back(std::move(t));
  }
  return inputs;
}

// As constants of the graph where they are weights.
graph::Graph with_weights(const graph::Graph& g, const Tensors& inputs) {
  graph::Graph out;
  out.facts.declare("m", {0, 64, 1});
  graph::Builder b(out);
  std::vector<graph::ValueId> values(g.values().size(), -1);
  for (std::size_t k = 0; k < 2; ++k) values[g.inputs()[k]] = out.add_input(g.type(g.inputs()[k]), std::string(1, static_cast<char>('x' + k)));
  for (std::size_t k = 2; k < inputs.size(); ++k) values[g.inputs()[k]] = b.constant(inputs[k]);
  for (const auto& node : g.nodes()) {
    std::vector<graph::ValueId> operands;
    for (graph::ValueId v : node.operands) operands.push_back(values[v]);
    values[node.results[0]] = b.node(node.op, operands, node.attrs);
  }
  out.set_outputs({values[g.outputs()[0]]});
  return out;
}

TEST(DotSums, ComputeTheSame) {
  std::mt19937 random(7);
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    for (const Case& c : {Case{"m", "40", "24", dtype}, Case{"17", "33", "50", dtype}, Case{"1", "64", "100", dtype}, Case{"m", "0", "5", dtype},
                          Case{"m", "600", "32", dtype}, Case{"9", "20", "33", dtype, "3, "}, Case{"m", "16", "16", dtype, "2, "},
                          Case{"m", "40", "24", dtype, "", true}, Case{"30", "70", "65", dtype, "", true}, Case{"m", "96", "64", dtype, "", true}}) {
      const graph::Graph plain = parsed(model(c));
      std::vector<Tensors> runs;
      for (const std::int64_t m : c.m == "m" ? Sizes{0, 1, 5, 40} : Sizes{1}) runs.push_back(inputs_of(plain, m, random));
      if (!c.constant) {
        check(plain, runs);
        continue;
      }
      const graph::Graph weighted = with_weights(plain, runs[0]);
      for (Tensors& inputs : runs) inputs.resize(2);
      EXPECT_EQ(kernels(weighted), 1);
      check(weighted, runs);
    }
  }
}

TEST(DotSums, OnGroupsOfThreads) {
  std::mt19937 random(11);
  for (const char* which : {"sim:opencl", "sim:sm_90"}) {
    const auto target = target::open(which);
    ASSERT_TRUE(target.ok()) << target.error().what();
    for (const Case& c : {Case{"m", "40", "24", "f32"}, Case{"33", "64", "40", "bf16"}, Case{"20", "70", "17", "f16"}}) {
      const graph::Graph g = parsed(model(c));
      const auto exe = executable(g, *target);
      ASSERT_TRUE(exe);
      for (const std::int64_t m : c.m == "m" ? Sizes{0, 1, 40} : Sizes{1}) {
        const Tensors inputs = inputs_of(g, m, random);
        expect_same(run(*exe, inputs), graph::interpret(g, inputs).value(), which);
      }
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing
