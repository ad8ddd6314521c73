// Follows docs/adding-an-op.md: what it shows stands where it says, and each step has been taken for every op.
#include <regex>

#include "base/scalar.h"
#include "codegen/llvm/codegen.h"
#include "docs/support.h"
#include "frontend/onnx/import/import.h"
#include "frontend/onnx/import/node_context.h"
#include "loop/lower/fuse.h"

namespace weft::docs {
namespace {

TEST(AddingAnOp, TheTextsStandInTheFiles) {
  const std::regex row("\\n\\| [^|]+ \\| `([^`]+)` \\| `([^`]+)` \\|");
  const std::string text = read("docs/adding-an-op.md");
  int rows = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it, ++rows) {
    EXPECT_TRUE(contains(read((*it)[1].str()), (*it)[2].str())) << (*it)[1] << " does not hold " << (*it)[2];
  }
  EXPECT_GE(rows, 14);
}

TEST(AddingAnOp, TheListingsAreTheCode) {
  const std::regex listing("<!-- in ([^ ]+) -->\\n```cpp\\n([^`]+)```");
  const std::string text = read("docs/adding-an-op.md");
  int listings = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), listing), end; it != end; ++it, ++listings) {
    EXPECT_TRUE(contains(read((*it)[1].str()), (*it)[2].str())) << (*it)[1] << " does not hold\n" << (*it)[2];
  }
  EXPECT_EQ(listings, 2);
}

// A model of one node, x -> y.
Result<onnx::Imported> import_one(const std::string& op, const std::string& attribute) {
  onnx::Type type;
  type.kind = onnx::Type::Kind::Tensor;
  type.elem = DType::F32;
  type.shape = std::vector<onnx::DimSpec>{{3, ""}};
  onnx::Node node;
  node.op_type = op;
  node.inputs = {"x"};
  node.outputs = {"y"};
  onnx::Attribute a;
  a.name = attribute;
  a.value = 2.0f;
  node.attributes = {a};
  onnx::Graph graph;
  graph.nodes = {node};
  graph.inputs = {{"x", type}};
  graph.outputs = {{"y", type}};
  onnx::Model model;
  model.opset_imports = {{"", 21}};
  model.graph = std::make_shared<onnx::Graph>(graph);
  return onnx::import_model(model);
}

TEST(AddingAnOp, TheExampleRuns) {
  ASSERT_NE(onnx::find_op("", "ThresholdedRelu", 21), nullptr);
  EXPECT_EQ(onnx::find_op("", "ThresholdedRelu", 9), nullptr);
  auto imported = import_one("ThresholdedRelu", "alpha");
  ASSERT_TRUE(imported.ok()) << imported.error().what();
  Tensor x = Tensor::zeros(DType::F32, {3}).value();
  for (int i = 0; i < 3; ++i) static_cast<float*>(x.mutable_data())[i] = static_cast<float>(i + 1);
  const auto y = graph::interpret(imported->graph, {x});
  ASSERT_TRUE(y.ok()) << y.error().what();
  const std::vector<float> found((*y)[0].as<float>(), (*y)[0].as<float>() + 3);
  EXPECT_EQ(found, (std::vector<float>{0, 0, 3}));
}

TEST(AddingAnOp, OtherAttributesAndOperatorsAreRefusedByName) {
  for (const auto& [op, attribute] : {std::pair{"ThresholdedRelu", "beta"}, std::pair{"NoSuchOperator", "alpha"}}) {
    const auto imported = import_one(op, attribute);
    ASSERT_FALSE(imported.ok());
    EXPECT_EQ(imported.error().code(), "unsupported-model");
    EXPECT_TRUE(contains(imported.error().what(), op)) << imported.error().what();
  }
}

TEST(AddingAnOp, ElementwisePrimsAreScalarOps) {
  for (int i = 0; i < graph::op_count(); ++i) {
    const graph::OpInfo& op = info(static_cast<graph::Op>(i));
    if (!op.elementwise) continue;
    EXPECT_TRUE(parse_scalar_op(op.name)) << op.name << " has no row in base/scalar_ops.def";
  }
}

// A dtype that the op takes.
DType dtype_for(ScalarOp op) {
  for (DType t : {DType::F32, DType::I32}) {
    if (accepts(op, t)) return t;
  }
  return DType::Bool;
}

TEST(AddingAnOp, ScalarOpsEvaluate) {
  for (int i = 0; i < scalar_op_count(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    const DType t = dtype_for(op);
    EXPECT_TRUE(accepts(op, t)) << info(op).name;
    const std::vector<Scalar> ones(static_cast<std::size_t>(info(op).operands), Scalar{1, 1});
    evaluate(op, t, info(op).result == ScalarResult::Bool ? DType::Bool : t, ones);
  }
}

// y[pid] = op(x[pid], ...), on one element.
kernel::Function kernel_of(ScalarOp op) {
  kernel::Builder b("one");
  const DType t = dtype_for(op);
  const int in = b.add_buffer({t, ssa::Space::Memory, true, false, 0});
  const ssa::ValueId at = b.program_id();
  const ssa::ValueId x = b.load(in, at, 0);
  std::vector<ssa::ValueId> operands(static_cast<std::size_t>(info(op).operands), x);
  if (op == ScalarOp::Select) operands[0] = b.scalar(ScalarOp::Eq, {x, x});
  ssa::ValueId y;
  if (op == ScalarOp::Cast) {
    y = b.cast(x, DType::I64);
  } else if (op == ScalarOp::Bitcast) {
    y = b.bitcast(x, DType::U32);
  } else {
    y = b.scalar(op, operands);
  }
  const int out = b.add_buffer({b.type(y).dtype, ssa::Space::Memory, false, true, 0});
  b.store(out, y, at);
  return b.finish();
}

TEST(AddingAnOp, ScalarOpsBecomeCode) {
  for (int i = 0; i < scalar_op_count(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    SCOPED_TRACE(info(op).name);
    kernel::Function f = kernel_of(op);
    const auto expanded = kernel::expand_math(f);
    ASSERT_TRUE(expanded.ok()) << expanded.error().what();
    const std::vector<codegen::Entry> entries{{&f, "one"}};
    const auto text = codegen::emit_llvm_ir(entries, codegen::host_target());
    EXPECT_TRUE(text.ok()) << text.error().what();
  }
}

// The family decides how a prim takes part in fusion.
TEST(AddingAnOp, ControlAndHostOpsAreSteps) {
  for (int i = 0; i < graph::op_count(); ++i) {
    const auto op = static_cast<graph::Op>(i);
    const graph::Family family = info(op).family;
    const graph::Node node{op, {}, {}, {}, {}, nullptr};
    const loop::Part part = loop::part_of(graph::Graph(), node);
    const bool step = family == graph::Family::Control || family == graph::Family::Host;
    if (!step && !info(op).elementwise) continue;
    EXPECT_EQ(part, step ? loop::Part::Step : loop::Part::Inline) << info(op).name;
  }
}

}  // namespace
}  // namespace weft::docs
