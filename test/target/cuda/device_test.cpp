// The CUDA target from target::open to results and errors, over a driver that is not one (fake_driver.h): its kernels are
// the interpreter's.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "base/knobs.h"
#include "compile/support.h"
#include "target/cuda/fake_driver.h"
#include "target/target.h"

namespace weft::target {
namespace {

using compiler::testing::Tensors;
using ::testing::HasSubstr;
using runtime::DeviceSpan;

FakeDriver& fake() {
  static FakeDriver& driver = []() -> FakeDriver& {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    auto* get = library == nullptr ? nullptr : reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "weft_fake_driver"));
    if (get == nullptr) throw std::runtime_error("run it by ctest: LD_LIBRARY_PATH names the folder of the fake driver");
    return *get();
  }();
  return driver;
}

std::map<std::string, kernel::Function>& built() {
  static std::map<std::string, kernel::Function> functions;
  return functions;
}

// As the GPU would: parameters are the addresses of buffers, the sizes, the address of the status word.
void interpret_launch(const char* entry, unsigned blocks, unsigned threads, void** parameters) {
  const kernel::Function& f = built().at(entry);
  EXPECT_EQ(f.threads, static_cast<int>(threads));
  const auto word = [&] {
    std::uint64_t value = 0;
    std::memcpy(&value, *parameters++, sizeof value);
    return value;
  };
  std::vector<kernel::BufferView> views;
  for (const ssa::Buffer& buffer : f.buffers) {
    if (buffer.space != ssa::Space::Memory) continue;
    const std::uint64_t address = word();
    views.push_back({reinterpret_cast<void*>(address), fake().bytes_at(address) * 8 / bits(buffer.dtype)});
  }
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < f.sizes; ++i) sizes.push_back(static_cast<std::int64_t>(word()));
  auto* status = reinterpret_cast<std::int32_t*>(word());
  const auto done = kernel::simulate(f, views, sizes, blocks, *status);
  EXPECT_TRUE(done.ok()) << entry << ": " << done.error().what();
}

int count_parameters(const char* entry) {
  const kernel::Function& f = built().at(entry);
  int memory = 0;
  for (const ssa::Buffer& buffer : f.buffers) memory += buffer.space == ssa::Space::Memory ? 1 : 0;
  return memory + f.sizes + 1;
}

// The CUDA target; what it builds is kept for interpret_launch.
class Recorded final : public Target {
 public:
  explicit Recorded(std::shared_ptr<const Target> target) : target_(std::move(target)) {}
  const Machine& machine() const override { return target_->machine(); }
  std::shared_ptr<runtime::Device> device() const override { return target_->device(); }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return target_->print(kernels); }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override {
    for (const kernel::Function& f : kernels) built()[f.name] = f;
    return target_->build(kernels);
  }

 private:
  std::shared_ptr<const Target> target_;
};

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    const FakeDriver fresh;
    FakeDriver& d = fake();
    d.major = fresh.major, d.minor = fresh.minor, d.devices = fresh.devices, d.memory = fresh.memory;
    d.hangs = false;
    d.launch_status = d.load_status = 0;
    d.run = interpret_launch;
    d.parameters = count_parameters;
    d.launches = d.graph_launches = 0;
    built().clear();
  }

  static std::shared_ptr<const Target> opened(const char* name = "cuda:0") { return open(name).value(); }

  static Result<compiler::Compiled> compiled(const std::string& graph, std::shared_ptr<const Target> target = opened()) {
    compiler::Options options;
    options.cache = false;
    options.target = std::make_shared<Recorded>(std::move(target));
    return compiler::compile(compiler::testing::parsed(graph), options);
  }

  static Result<Tensors> run(const compiler::Compiled& made, const Tensors& inputs) {
    const runtime::Executable executable(made.plan);
    Tensors outputs;
    WEFT_TRY(executable.run(inputs, outputs, {}));
    return outputs;
  }
};

const char* const kSum = R"(graph @sum(%0 "x": f32[n], %1 "y": f32[n]) -> (f32[n]) where n in 0..1000 {
  %2 = add %0, %1 : f32[n]
  return %2
})";

std::string code_of(const Result<void>& result) { return result.ok() ? "" : result.error().code(); }

TEST_F(Cuda, OpensDevicesByNumber) {
  EXPECT_EQ(opened()->device()->name(), "Fake GPU");
  EXPECT_EQ(opened()->machine().name, "sm_90a");
  EXPECT_EQ(opened()->machine().cores, 4);
  EXPECT_EQ(open("cuda:1").error().code(), "no-device");
  EXPECT_EQ(open("cuda:first").error().code(), "unknown-target");
  EXPECT_EQ(opened("cuda:sm_80")->device(), nullptr);
}

TEST_F(Cuda, CodeIsForTheNewestMachineThatTheDeviceIsLike) {
  fake().major = 12, fake().minor = 1;
  EXPECT_EQ(opened()->machine().name, "sm_90");
  fake().major = 8, fake().minor = 6;
  EXPECT_EQ(opened()->machine().name, "sm_80");
  fake().major = 7, fake().minor = 5;
  EXPECT_EQ(open("cuda:0").error().kind(), ErrorKind::Unsupported);
}

TEST_F(Cuda, RunsGraphsAsTheInterpreterDoes) {
  const std::string graph = R"(graph @head(%0 "x": f32[n, 40], %1 "w": f32[40, 24]) -> (f32[n, 24], f32[n]) where n in 0..70 {
  %2 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 24]
  %3 = exp %2 : f32[n, 24]
  %4 = reduce_sum %3 {axes=[1]} : f32[n]
  return %3, %4
})";
  {
    const auto made = compiled(graph);
    ASSERT_TRUE(made.ok()) << made.error().what();
    std::mt19937 random(3);
    for (const std::int64_t n : {0, 1, 33, 70}) {
      Tensors inputs{Tensor::zeros(DType::F32, {n, 40}).value(), Tensor::zeros(DType::F32, {40, 24}).value()};
      std::uniform_real_distribution<double> draw(-1, 1);
      for (Tensor& t : inputs) {
        for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, draw(random));
      }
      const auto got = run(*made, inputs);
      ASSERT_TRUE(got.ok()) << got.error().what();
      const Tensors want = graph::interpret(compiler::testing::parsed(graph), inputs).value();
      for (std::size_t k = 0; k < want.size(); ++k) {
        ASSERT_EQ((*got)[k].shape(), want[k].shape());
        for (std::int64_t i = 0; i < want[k].size(); ++i) ASSERT_NEAR((*got)[k].f64(i), want[k].f64(i), 1e-4 * std::fabs(want[k].f64(i)));
      }
    }
  }
  EXPECT_EQ(fake().blocks + fake().modules + fake().streams + fake().contexts + fake().graphs, 0) << "something is not given back";
}

// A chain of kernels: one by one at first, from then on as a graph; other sizes are another sequence.
TEST_F(Cuda, ASequenceOfLaunchesThatComesAgainIsAGraph) {
  const std::string text = R"(graph @chain(%0 "x": f32[n, 16], %1 "w": f32[16, 16]) -> (f32[n, 16]) where n in 0..70 {
  %2 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 16]
  %3 = dot %2, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 16]
  %4 = dot %3, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 16]
  return %4
})";
  {
    const auto made = compiled(text);
    ASSERT_TRUE(made.ok()) << made.error().what();
    const runtime::Executable executable(made->plan);
    std::mt19937 random(3);
    for (const std::int64_t n : {9, 9, 9, 5, 5, 5, 9, 9}) {
      const Tensors inputs{compiler::testing::random_tensor(DType::F32, {n, 16}, random), compiler::testing::random_tensor(DType::F32, {16, 16}, random)};
      Tensors got;
      const auto done = executable.run(inputs, got, {});
      ASSERT_TRUE(done.ok()) << done.error().what();
      compiler::testing::expect_same(got, graph::interpret(compiler::testing::parsed(text), inputs).value());
    }
    EXPECT_EQ(fake().graph_launches, 6);
    EXPECT_EQ(fake().launches, 6);
    EXPECT_EQ(fake().graphs, 2);
  }
  EXPECT_EQ(fake().graphs + fake().modules, 0) << "something is not given back";
}

TEST_F(Cuda, TooLittleMemoryIsAnErrorAndUnusedBlocksAreGivenBackFirst) {
  const auto device = opened()->device();
  fake().memory = 8 << 20;
  auto half = device->allocate(4 << 20);
  ASSERT_TRUE(half.ok());
  half->reset();  // kept, for the next block of its size
  EXPECT_EQ(fake().blocks, 1);
  EXPECT_TRUE(device->allocate(6 << 20).ok());
  const auto more = device->allocate(9 << 20);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code(), "out-of-device-memory");
  EXPECT_THAT(more.error().what(), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_F(Cuda, ALostDeviceIsLostForAllThatFollows) {
  const auto device = opened()->device();
  const auto memory = device->allocate(64).value();
  const auto target = opened();
  const kernel::Function none = [] {
    kernel::Builder b("nothing");
    return b.finish();
  }();
  const auto code = target->build(std::span(&none, 1)).value();
  runtime::DeviceLaunch launch;
  launch.code = code.get();
  launch.grid = 1;
  launch.status = {memory.get(), 0};
  fake().run = nullptr;
  launch.grid = std::int64_t{1} << 31;
  EXPECT_EQ(code_of(device->launch(launch)), "grid-too-large");
  launch.grid = 1;
  EXPECT_EQ(code_of(device->launch(launch)), "");
  EXPECT_EQ(code_of(device->finish()), "");
  EXPECT_EQ(code_of(device->launch(launch)), "");
  fake().launch_status = 719;
  EXPECT_EQ(code_of(device->finish()), "device-lost");
  fake().launch_status = 0;
  std::int32_t word = 0;
  EXPECT_EQ(code_of(device->launch(launch)), "device-lost");
  EXPECT_EQ(code_of(device->download(&word, {memory.get(), 0}, sizeof word)), "device-lost");
  EXPECT_EQ(code_of(device->finish()), "device-lost");
  EXPECT_EQ(device->allocate(64).error().code(), "device-lost");
}

TEST_F(Cuda, AKernelThatNeverEndsIsNotWaitedForForEver) {
  ASSERT_TRUE(set_knob(Knob::DeviceSeconds, "1"));
  const auto device = opened()->device();
  fake().hangs = true;
  const Result<void> done = device->finish();
  ASSERT_TRUE(set_knob(Knob::DeviceSeconds, "120"));
  EXPECT_EQ(code_of(done), "device-hung");
  fake().hangs = false;
  EXPECT_EQ(code_of(device->finish()), "device-lost");
}

TEST_F(Cuda, SaysWhyTheDriverRefusesCode) {
  fake().load_status = 218;
  const auto made = compiled(kSum);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind(), ErrorKind::Internal);
  EXPECT_THAT(made.error().what(), HasSubstr("line 7: nonsense"));
  fake().load_status = 222;
  EXPECT_EQ(compiled(kSum).error().code(), "driver-too-old");
}

}  // namespace
}  // namespace weft::target
