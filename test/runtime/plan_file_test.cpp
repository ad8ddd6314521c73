#include "runtime/plan_file.h"

#include <gtest/gtest.h>

namespace weft::runtime {
namespace {

Slot slot(Slot::Kind kind, int index, Shape shape, std::string name = "") {
  Slot s;
  s.kind = kind;
  s.index = index;
  s.shape = std::move(shape);
  s.name = std::move(name);
  return s;
}

std::shared_ptr<Plan> body() {
  auto plan = std::make_shared<Plan>();
  plan->name = "body";
  plan->kernels.push_back({"k", nullptr, {true, false}, 128, ""});
  plan->slots = {slot(Slot::Kind::Input, 0, {Dim::symbol("n")}, "x"), slot(Slot::Kind::Output, 0, {Dim::symbol("n")}, "y")};
  plan->inputs = {0};
  plan->outputs = {1};
  plan->input_names = {"x"};
  plan->output_names = {"y"};
  plan->steps.push_back(CopyStep{0, 1});
  return plan;
}

// A plan with one of everything that can be stored.
Plan everything() {
  Plan plan = *body();
  const Dim n = Dim::symbol("n");
  plan.name = "everything";
  plan.facts.declare("n", {1, 512, 4});
  Tensor weights = Tensor::zeros(DType::F32, {3, 5}).value();
  for (int i = 0; i < 15; ++i) weights.set_f64(i, i - 7);
  plan.constants = {weights, weights.reshaped({15}), Tensor::strings({2}, {"a", ""}), Tensor::scalar(DType::F64, -2.5),
                    Tensor::zeros(DType::I64, {0, 4}).value()};
  for (std::size_t c = 0; c < plan.constants.size(); ++c) {
    Slot s = slot(Slot::Kind::Constant, static_cast<int>(c), {});
    s.dtype = plan.constants[c].dtype();
    for (std::int64_t d : plan.constants[c].shape()) s.shape.push_back(d);
    plan.slots.push_back(s);
  }
  plan.slots.push_back(slot(Slot::Kind::Temp, 0, {n * 2 + 1, ceil_div(n, 8)}));
  plan.slots.push_back(slot(Slot::Kind::Alias, 7, {n, 3}));
  plan.infos.push_back({"dot", {"a", "b"}, "product", n * 4, n * n, n * 30});
  plan.requirements.push_back({n * 3, Dim::symbol("m") * 2, "reshape"});
  Launch launch;
  launch.variants = {{0, true, n, 1, 6, n, {n, n + 1}}, {0, false, Dim(), 0, INT64_MAX, ceil_div(n, 14), {n, 7}}};
  launch.buffers = {0, 2, 7};
  launch.checks = {"an index"};
  launch.info = 0;
  launch.in_place = {{2, 0}};
  plan.steps.insert(plan.steps.begin(), launch);
  plan.steps.push_back(BranchStep{3, {0}, {7}, body(), body(), "if"});
  plan.steps.push_back(LoopStep{-1, 3, {0}, {2}, {7}, {8}, body(), "loop"});
  plan.steps.push_back(ScanStep{{0}, {2}, {}, {7}, {8}, n + 2, body(), "scan"});
  return plan;
}

std::vector<std::byte> laid_out(const PlanBytes& bytes) {
  std::vector<std::byte> bulk;
  for (ByteSpan part : bytes.constants) {
    bulk.insert(bulk.end(), part.begin(), part.end());
    bulk.resize((bulk.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment);
  }
  return bulk;
}

ByteSpan span_of(const std::vector<char>& bytes) { return std::as_bytes(std::span(bytes.data(), bytes.size())); }

TEST(PlanFile, ReadsWhatWasWritten) {
  const Plan plan = everything();
  ASSERT_TRUE(is_storable(plan));
  const PlanBytes bytes = encode_plan(plan);
  const std::vector<std::byte> bulk = laid_out(bytes);
  ASSERT_EQ(bulk.size(), bytes.constant_bytes);
  EXPECT_EQ(bytes.constants.size(), 3u) << "views of the same bytes lie there once, strings not at all";
  const auto read = decode_plan(span_of(bytes.plan), bulk, nullptr);
  ASSERT_TRUE(read.ok()) << read.error().what();
  const Plan& again = **read;
  EXPECT_EQ(print(again), print(plan));
  EXPECT_EQ(encode_plan(again).plan, bytes.plan);
  ASSERT_EQ(again.constants.size(), plan.constants.size());
  for (std::size_t c = 0; c < plan.constants.size(); ++c) {
    EXPECT_EQ(again.constants[c].content_hash(), plan.constants[c].content_hash());
  }
  EXPECT_EQ(again.kernels[0].written, plan.kernels[0].written);
  EXPECT_EQ(again.kernels[0].scratch, 128);
  EXPECT_EQ(again.facts.symbols().at("n").multiple_of, 4);
}

TEST(PlanFile, CutOffIsAnError) {
  const Plan plan = everything();  // whose constants the bytes refer to
  const PlanBytes bytes = encode_plan(plan);
  const std::vector<std::byte> bulk = laid_out(bytes);
  for (std::size_t size = 0; size < bytes.plan.size(); ++size) {
    EXPECT_FALSE(decode_plan(span_of(bytes.plan).subspan(0, size), bulk, nullptr).ok()) << size;
  }
  EXPECT_FALSE(decode_plan(span_of(bytes.plan), ByteSpan(bulk).subspan(0, 32), nullptr).ok());
}

TEST(PlanFile, StepsOfTheInterpreterAreNotStorable) {
  Plan plan = *body();
  plan.steps.push_back(HostCall{});
  EXPECT_FALSE(is_storable(plan));
  auto inner = std::make_shared<Plan>(plan);
  Plan outer = *body();
  outer.steps.push_back(LoopStep{-1, 0, {0}, {}, {1}, {}, inner, ""});
  EXPECT_FALSE(is_storable(outer));
}

}  // namespace
}  // namespace weft::runtime
