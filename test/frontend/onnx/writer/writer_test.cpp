// What is written reads back as the same model, for every case that the reader accepts; and parts of models.
#include "frontend/onnx/writer/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/onnx/import/import.h"
#include "frontend/onnx/part.h"
#include "frontend/onnx/reader/reader.h"
#include "frontend/onnx/reader/validate.h"
#include "frontend/onnx/cases.h"

namespace weft::onnx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

Result<Model> read_text(const std::string& bytes) { return read_model_bytes(std::as_bytes(std::span(bytes))); }

TEST(Writer, ReadsBackAsTheSameModel) {
  int models = 0, imported = 0;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    const auto model = read_model_file((entry.path() / "model.onnx").string());
    if (!model.ok() || !validate(*model).ok()) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto bytes = write_model(*model);
    ASSERT_TRUE(bytes.ok()) << bytes.error().what();
    const auto again = read_text(*bytes);
    ASSERT_TRUE(again.ok()) << again.error().what();
    EXPECT_EQ(*write_model(*again), *bytes);
    const auto one = import_model(*model), two = import_model(*again);
    EXPECT_EQ(one.ok(), two.ok());
    if (one.ok() && two.ok()) {
      EXPECT_EQ(graph::print(one->graph), graph::print(two->graph));
      ++imported;
    }
    ++models;
  }
  EXPECT_GT(models, 300);
  EXPECT_GT(imported, 200);
}

ValueInfo declared(const std::string& name, std::optional<std::vector<DimSpec>> shape) {
  ValueInfo info{name, {}};
  info.type.kind = Type::Kind::Tensor;
  info.type.elem = DType::F32;
  info.type.shape = std::move(shape);
  return info;
}

TEST(Writer, KeepsWhatIsEmpty) {
  auto graph = std::make_shared<Graph>();
  graph->inputs = {declared("unknown rank", std::nullopt), declared("scalar", std::vector<DimSpec>{}),
                   declared("sizes", std::vector<DimSpec>{{3, ""}, {std::nullopt, "n"}, {std::nullopt, ""}, {0, ""}})};
  auto element = std::make_shared<Type>();
  element->kind = Type::Kind::Sequence;  // of something not declared
  ValueInfo optional{"optional", {}};
  optional.type.kind = Type::Kind::Optional;
  optional.type.element = element;
  graph->inputs.push_back(optional);
  graph->initializers = {{"none", *weft::Tensor::zeros(DType::F32, {2, 0})}, {"text", weft::Tensor::strings({2}, {"", "b"})}};
  Model model;
  model.ir_version = 8;
  model.graph = graph;
  const auto again = read_text(*write_model(model));
  ASSERT_TRUE(again.ok()) << again.error().what();
  const std::vector<ValueInfo>& inputs = again->graph->inputs;
  EXPECT_FALSE(inputs[0].type.shape);
  ASSERT_TRUE(inputs[1].type.shape);
  EXPECT_THAT(*inputs[1].type.shape, IsEmpty());
  const std::vector<DimSpec>& sizes = inputs[2].type.shape.value();
  ASSERT_EQ(sizes.size(), 4u);
  EXPECT_EQ(sizes[0].value, 3);
  EXPECT_EQ(sizes[1].param, "n");
  EXPECT_FALSE(sizes[2].known());
  EXPECT_EQ(sizes[3].value, 0);
  ASSERT_TRUE(inputs[3].type.element);
  EXPECT_EQ(inputs[3].type.element->kind, Type::Kind::Sequence);
  EXPECT_THAT(again->graph->initializers[0].tensor.shape(), ElementsAre(2, 0));
  EXPECT_THAT(again->graph->initializers[1].tensor.string_values(), ElementsAre("", "b"));
}

Node node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  Node n;
  n.op_type = op;
  n.name = outputs[0];
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  return n;
}

// a = x + w, b = -a, c = if (p) { a } else { x }, y = b + c
Model small_graph_model() {
  auto inner = std::make_shared<Graph>();
  inner->nodes = {node("Identity", {"a"}, {"i"})};
  inner->outputs = {declared("i", std::nullopt)};
  auto graph = std::make_shared<Graph>();
  graph->nodes = {node("Add", {"x", "w"}, {"a"}), node("Neg", {"a"}, {"b"}), node("If", {"p"}, {"c"}),
                  node("Add", {"b", "c"}, {"y"})};
  for (const char* branch : {"then_branch", "else_branch"}) {
    graph->nodes[2].attributes.push_back({branch, "", AttributeType::Graph, GraphPtr(inner)});
  }
  graph->inputs = {declared("x", std::nullopt), declared("p", std::nullopt)};
  graph->outputs = {declared("y", std::nullopt)};
  graph->initializers = {{"w", weft::Tensor::scalar(DType::F32, 1)}, {"unused", weft::Tensor::scalar(DType::F32, 2)}};
  Model model;
  model.ir_version = 8;
  model.opset_imports[""] = 17;
  model.graph = graph;
  return model;
}

TEST(Part, HasWhatCrossesItsBoundary) {
  const Model model = small_graph_model();
  const Boundary first = boundary(*model.graph, {0});
  EXPECT_THAT(first.inputs, ElementsAre("x"));
  EXPECT_THAT(first.outputs, ElementsAre("a"));
  const Boundary branch = boundary(*model.graph, {2});
  EXPECT_THAT(branch.inputs, ElementsAre("p", "a"));  // `a` is read inside
  EXPECT_THAT(branch.outputs, ElementsAre("c"));
  const Boundary most = boundary(*model.graph, {1, 2, 3});
  EXPECT_THAT(most.inputs, ElementsAre("a", "p"));
  EXPECT_THAT(most.outputs, ElementsAre("y"));
}

TEST(Part, BringsTheWeightsThatItsNodesUse) {
  const Model model = small_graph_model();
  const Model one = part(model, {0}, {declared("x", std::vector<DimSpec>{{2, ""}})}, {declared("a", std::nullopt)}, {});
  EXPECT_TRUE(validate(one).ok());
  ASSERT_EQ(one.graph->initializers.size(), 1u);
  EXPECT_EQ(one.graph->initializers[0].name, "w");
  EXPECT_TRUE(import_model(one).ok());
}

TEST(Part, FindsNodesByTheirLabels) {
  EXPECT_THAT(labelled(small_graph_model(), {"Neg b", "Add y", "Add nothing"}), ElementsAre(1, 3));
}

}  // namespace
}  // namespace weft::onnx
