// The public API: nothing throws, every wrong call is an error that says what is wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "api/state.h"
#include "graph/builder.h"
#include "transform/choices.h"
#include "weft/weft.h"

namespace weft {
namespace {

const char* kSum = WEFT_SOURCE_DIR "/test/cases/sum_same_tensor_five_times/model.onnx";

CompileOptions how(const char* target = "cpu") {
  CompileOptions options;
  options.target = target;
  options.cache = false;
  return options;
}

std::vector<Tensor> ones(const Program& program, float value = 1) {
  std::vector<Tensor> inputs;
  for (const Port& port : program.inputs()) {
    Tensor t = Tensor::zeros(port.dtype, *static_sizes(port.shape)).value();
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, value);
    inputs.push_back(t);
  }
  return inputs;
}

TEST(Api, LoadsCompilesRuns) {
  auto model = load(kSum);
  ASSERT_TRUE(model.ok()) << model.error().what();
  for (const char* target : {"cpu", "ref"}) {
    auto program = compile(*model, how(target));
    ASSERT_TRUE(program.ok()) << program.error().what();
    auto outputs = program->run(ones(*program, 3));
    ASSERT_TRUE(outputs.ok()) << outputs.error().what();
    ASSERT_EQ(outputs->size(), program->outputs().size());
    EXPECT_EQ((*outputs)[0].f64(0), 15) << target;
  }
}

// A 3 x 3 convolution large enough for a fast form.
Model convolution() {
  graph::Graph g;
  const graph::ValueId x = g.add_input({DType::F32, {1, 28, 28, 64}}, "x");
  graph::Builder b(g);
  Tensor weights = Tensor::zeros(DType::F32, {3, 3, 64, 64}).value();
  for (std::int64_t i = 0; i < weights.size(); ++i) weights.set_f64(i, static_cast<double>(i % 7) - 3);
  graph::Attrs attrs;
  const std::vector<std::int64_t> ones{1, 1};
  attrs.set(graph::Attr::Strides, ones).set(graph::Attr::Dilations, ones).set(graph::Attr::BaseDilations, ones);
  attrs.set(graph::Attr::Groups, std::int64_t{1}).set(graph::Attr::ChannelsLast, true).set(graph::Attr::DType, DType::F32);
  attrs.set(graph::Attr::Lo, Shape{1, 1}).set(graph::Attr::Hi, Shape{1, 1});
  g.set_outputs({b.node(graph::Op::Conv, {x, b.constant(weights)}, attrs)});
  auto state = std::make_shared<Model::State>();
  state->set_graph(std::make_shared<graph::Graph>(g));
  state->inputs = {{"x", DType::F32, {1, 28, 28, 64}}};
  state->outputs = {{"y", DType::F32, {1, 28, 28, 64}}};
  return Model{state};
}

TEST(Api, AFastFormGivesWayToAnInfinity) {
  const Model model = convolution();
  CompileOptions fast = how();
  fast.precision = "high";
  const Program program = compile(model, fast).value(), plain = compile(model, how()).value();
  ASSERT_GT(program.stats().kernels, plain.stats().kernels) << "the fast form is not used";
  std::vector<Tensor> inputs = ones(program);
  inputs[0].set_f64(5000, std::numeric_limits<double>::infinity());
  const Tensor got = program.run(inputs).value()[0], want = plain.run(inputs).value()[0];
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.byte_size()), 0);
  EXPECT_TRUE(program.run(ones(program)).ok());
}

TEST(Api, PrecisionsHaveNames) {
  CompileOptions options = how();
  options.precision = "heigh";
  const auto program = compile(convolution(), options);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), "unknown-precision");
}

TEST(Api, EveryNamedChoiceIsTakenAndSuggested) {
  CompileOptions wrong = how();
  wrong.precision = "none";
  const std::string precisions = compiler_options(wrong).error().what();
  for (const auto& [name, value] : transform::kPrecisions) {
    CompileOptions options = how();
    options.precision = name;
    EXPECT_EQ(compiler_options(options).value().passes.precision, value);
    EXPECT_NE(precisions.find(name), std::string::npos) << precisions;
  }
  wrong = how();
  wrong.weights = "none";
  const std::string weights = compiler_options(wrong).error().what();
  for (const auto& [name, value] : transform::kWeights) {
    CompileOptions options = how();
    options.weights = name;
    EXPECT_EQ(compiler_options(options).value().passes.weights, value);
    EXPECT_NE(weights.find(name), std::string::npos) << weights;
  }
}

TEST(Api, WritesIntoTheCallersMemory) {
  auto model = load(kSum).value();
  for (const char* target : {"cpu", "ref"}) {
    Program program = compile(model, how(target)).value();
    std::vector<std::int64_t> shape = *static_sizes(program.outputs()[0].shape);
    Tensor size = Tensor::zeros(DType::F32, shape).value();
    std::vector<float> memory(static_cast<std::size_t>(size.size()), 0);
    std::vector<Tensor> outputs{Tensor::mutable_view(DType::F32, shape, memory.data())};
    ASSERT_TRUE(program.run_into(ones(program, 2), outputs).ok());
    for (float v : memory) EXPECT_EQ(v, 10) << target;
    outputs[0] = Tensor::zeros(DType::I64, {1}).value();
    auto status = program.run_into(ones(program), outputs);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), "output-mismatch");
  }
}

TEST(Api, RunsFromManyThreads) {
  Program program = compile(load(kSum).value(), how()).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k) {
        auto outputs = program.run(ones(program, static_cast<float>(t)));
        wrong += !outputs.ok() || (*outputs)[0].f64(0) != 5.0 * t;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Api, WrongCallsAreErrors) {
  auto missing = load("/nowhere/model.onnx");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind(), ErrorKind::User);
  EXPECT_FALSE(load("/").ok());
  EXPECT_FALSE(load("").ok());

  Model model = load(kSum).value();
  auto target = compile(model, how("toaster"));
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().code(), "unknown-target");

  Program program = compile(model, how()).value();
  auto none = program.run({});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), "wrong-input-count");
  std::vector<Tensor> undefined(program.inputs().size());
  EXPECT_FALSE(program.run(undefined).ok());
}

TEST(Api, EmptyHandles) {
  Model model;
  Program program;
  EXPECT_TRUE(model.inputs().empty());
  EXPECT_TRUE(program.outputs().empty());
  EXPECT_EQ(program.stats().kernels, 0);
  auto compiled = compile(model);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code(), "no-model");
  auto outputs = program.run({});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), "no-program");
}

TEST(Api, AStoppedRunSaysSo) {
  Program program = compile(load(kSum).value(), how()).value();
  std::atomic<bool> stop{true};
  RunOptions options;
  options.stop = &stop;
  auto outputs = program.run(ones(program), options);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), "stopped");
}

}  // namespace
}  // namespace weft
