// Text round trips: every file of text/ prints as it stands, and what it parses to verifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "graph/builder.h"
#include "snippet.h"

namespace weft::graph {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Text, FilesPrintAsTheyStand) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/test/graph/text")) {
    if (entry.path().extension() != ".graph") continue;
    ++files;
    SCOPED_TRACE(entry.path().filename().string());
    const std::string text = read(entry.path());
    const Graph graph = parsed(text);
    EXPECT_EQ(print(graph), text);
    const auto verified = verify(graph);
    EXPECT_TRUE(verified.ok()) << verified.error().what();
  }
  EXPECT_GT(files, 0);
}

TEST(Text, NamesOriginsAndFactsComeBack) {
  const Graph g = parsed(
      "graph @\"torch-jit\"(%0 \"input.1\": f32[n]) -> (f32[n]) where n in 1..512 multiple 4 {\n"
      "  %1 \"a \\\"b\\\"\" = abs %0 : f32[n]  # node \"/x/Abs\" op \"Abs\"\n"
      "  return %1\n"
      "}\n");
  EXPECT_EQ(g.name, "torch-jit");
  EXPECT_EQ(g.value(g.inputs()[0]).name, "input.1");
  EXPECT_EQ(g.value(g.outputs()[0]).name, "a \"b\"");
  ASSERT_NE(g.node(0).origin, nullptr);
  EXPECT_EQ(g.node(0).origin->node, "/x/Abs");
  EXPECT_EQ(g.node(0).origin->op, "Abs");
  EXPECT_EQ(g.facts.symbols().at("n").hi, 512);
  EXPECT_EQ(g.facts.symbols().at("n").multiple_of, 4);
}

TEST(Text, ElementsKeepTheirBits) {
  Graph g;
  Builder b(g);
  std::vector<ValueId> outputs;
  const double inf = std::numeric_limits<double>::infinity();
  for (int i = 0; i < dtype_count(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_string(dtype)) {
      outputs.push_back(b.constant(Tensor::strings({2}, {"", std::string("a\"\\\n\0z", 6)})));
      continue;
    }
    Tensor t = Tensor::zeros(dtype, {4}).value();
    for (std::int64_t k = 0; k < 4; ++k) {
      if (is_float(dtype)) t.set_f64(k, std::vector<double>{0.1, -inf, std::nan(""), 1e-41}[k]);
      if (is_int(dtype)) t.set_i64(k, std::vector<std::int64_t>{-1, 1, INT64_MIN, INT64_MAX}[k]);
      if (is_bool(dtype)) t.set_i64(k, k % 2);
      if (is_complex(dtype)) static_cast<char*>(t.mutable_data())[k] = static_cast<char>(k + 60);
    }
    outputs.push_back(b.constant(t));
  }
  ASSERT_TRUE(b.status().ok());
  g.set_outputs(outputs);
  const Graph back = parsed(print(g));
  EXPECT_EQ(print(back), print(g));
  ASSERT_EQ(back.nodes().size(), g.nodes().size());
  for (std::size_t i = 0; i < g.nodes().size(); ++i) {
    EXPECT_TRUE(back.nodes()[i].attrs == g.nodes()[i].attrs) << print(g);
  }
}

TEST(Text, LargeConstantsComeFromTheSidecar) {
  Graph g;
  Builder b(g);
  g.set_outputs({b.constant(Tensor::zeros(DType::F32, {5, 5}).value())});
  const std::string text = print(g);
  EXPECT_NE(text.find("data=f32[5, 5] hash 0x"), std::string::npos) << text;
  EXPECT_FALSE(parse(text).ok());
  Sidecar sidecar;
  collect_constants(g, sidecar);
  const auto back = parse(text, sidecar);
  ASSERT_TRUE(back.ok()) << back.error().what();
  EXPECT_EQ(print(*back), text);
}

TEST(Text, BadTextIsRefusedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "at 'graph:1:1': expected 'graph', found the end"},
      {"graph @f() {", "graph:1:13"},
      {"graph @f() { return %x }", "%x is not defined"},
      {"graph @f(%x: f32[], %x: f32[]) { return }", "%x is defined twice"},
      {"graph @f(%x: g32[]) { return }", "'g32' is no dtype"},
      {"graph @f(%x: f32[]) { %y = abz %x return }", "'abz' is no op; did you mean 'abs'?"},
      {"graph @f(%x: f32[]) { %y = abs %x {axes=[1], axes=[2]} return }", "attribute 'axes' stands twice"},
      {"graph @f(%x: f32[]) { %y = abs %x {odd=1} return }", "'odd' is no attribute"},
      {"graph @f(%x: f32[]) { %y, %z = abs %x return }", "the op gives 1 results, not 2"},
      {"graph @f(%x: f32[]) { %y = abs %x : f32[2] return }", "another type than stated"},
      {"graph @f(%x: f32[n]) where n in 4..2 { return }", "an empty range"},
      {"graph @f() { %y = constant {data=f32[3](1, 2)} return }", "expected ',', found ')'"},
      {"graph @f() { %y = constant {data=f32[2](1, 2, 3)} return }", "expected ')', found ','"},
      {"graph @f() { %y = constant {data=u8[1](256)} return }", "out of the dtype's range"},
      {"graph @f() { %y = constant {data=f32[n](1)} return }", "a constant of unknown size"},
      {"graph @f() { %y = constant {data=f32[99999999999, 99999999999, 99999999999](1)} return }", "a list of more than 16"},
      {"graph @f() { %y = constant {data=f32[99] hash 0x1} return }", "no constant of this hash"},
      {"graph @f() { return } x", "unexpected 'x'"},
  };
  for (const auto& [text, message] : cases) {
    const auto graph = parse(text);
    if (graph.ok()) {
      ADD_FAILURE() << "accepted: " << text;
    } else {
      EXPECT_NE(std::string(graph.error().what()).find(message), std::string::npos) << graph.error().what();
    }
  }
}

TEST(Text, DeepRegionsAreRefused) {
  std::string text = "graph @f(%x: f32[]) { ";
  for (int i = 0; i < 100000; ++i) text += "%y = composite %x {name=\"f\"} regions { graph @f(%x: f32[]) { ";
  const auto graph = parse(text);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(std::string(graph.error().what()).find("nested too deeply"), std::string::npos);
}

TEST(Text, CutTextNeverCrashes) {
  const std::string text = read(WEFT_SOURCE_DIR "/test/graph/text/control.graph");
  for (std::size_t i = 0; i + 2 < text.size(); ++i) EXPECT_FALSE(parse(text.substr(0, i)).ok());
}

}  // namespace
}  // namespace weft::graph
