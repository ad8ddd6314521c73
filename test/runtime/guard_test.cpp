// What WEFT_GUARD catches: a kernel that leaves its buffers ends the process and is named.
#include "runtime/guard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/knobs.h"
#include "runtime/execute.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kElements = 5;

TEST(Guard, PagesHoldTheBytesAtTheSideThatIsWatched) {
  for (const std::int64_t bytes : {0, 4, 4096, 5000}) {
    const GuardedPages start(bytes, GuardSide::Start), end(bytes, GuardSide::End);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start.data()) % 4096, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(end.data() + bytes) % 4096, 0u);
    if (bytes > 0) std::memset(start.data(), 1, static_cast<std::size_t>(bytes));
    if (bytes > 0) std::memset(end.data(), 1, static_cast<std::size_t>(bytes));
  }
}

// A plan of one kernel, y[i] = x[i + sizes[0]] for five elements; with sizes[1] it writes x as well.
std::shared_ptr<const Plan> copy_plan(std::int64_t shift, std::int64_t write_input = 0) {
  auto plan = std::make_shared<Plan>();
  plan->slots = {{Slot::Kind::Input, 0, DType::F32, {kElements}, 0, "x"}, {Slot::Kind::Output, 0, DType::F32, {kElements}, 0, "y"}};
  plan->inputs = {0};
  plan->outputs = {1};
  plan->input_names = {"x"};
  plan->output_names = {"y"};
  KernelEntry kernel;
  kernel.symbol = "shifted_copy";
  kernel.written = {false, true};
  kernel.scratch = 64;
  kernel.fn = [](void* const* buffers, const std::int64_t* sizes, std::int64_t, std::int64_t, void* scratch, std::int64_t*) {
    auto* x = static_cast<volatile float*>(buffers[0]);
    auto* y = static_cast<volatile float*>(buffers[1]);
    std::memset(scratch, 0, 64);
    for (std::int64_t i = 0; i < kElements; ++i) y[i] = x[i + sizes[0]];
    if (sizes[1] != 0) x[0] = 0;
  };
  plan->kernels = {kernel};
  Launch launch;
  LaunchVariant variant;
  variant.grid = Dim(1);
  variant.sizes = {Dim(shift), Dim(write_input)};
  launch.variants = {variant};
  launch.buffers = {0, 1};
  plan->steps = {launch};
  return plan;
}

// In a process of its own: the knob is read once.
int sum_when_guarded(const char* side, std::int64_t shift, std::int64_t write_input = 0) {
  set_knob(Knob::Guard, side);
  std::vector<float> data{1, 2, 3, 4, 5};
  std::vector<Tensor> outputs;
  const Executable executable(copy_plan(shift, write_input));
  if (!executable.run({Tensor::view(DType::F32, {kElements}, data.data(), nullptr)}, outputs, {}).ok()) return -1;
  double sum = 0;
  for (std::int64_t i = 0; i < kElements; ++i) sum += outputs[0].f64(i);
  return static_cast<int>(sum);
}

class GuardDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(GuardDeathTest, KernelsThatStayInTheirBuffersRunAsEver) {
  EXPECT_EXIT(_Exit(sum_when_guarded("end", 0)), testing::ExitedWithCode(15), "");
  EXPECT_EXIT(_Exit(sum_when_guarded("start", 0)), testing::ExitedWithCode(15), "");
}

TEST_F(GuardDeathTest, ATouchBehindABufferOrBeforeItIsFatal) {
  EXPECT_DEATH(sum_when_guarded("end", 1), "kernel shifted_copy touched memory outside its buffers");
  EXPECT_DEATH(sum_when_guarded("start", -1), "kernel shifted_copy touched memory outside its buffers");
}

TEST_F(GuardDeathTest, SoIsAWriteToWhatIsOnlyRead) {
  EXPECT_DEATH(sum_when_guarded("end", 0, 1), "wrote what it may only read");
}

}  // namespace
}  // namespace weft::runtime
