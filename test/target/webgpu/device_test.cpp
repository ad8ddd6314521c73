// What a WebGPU device says of what it cannot do. Skipped where there is no library or no adapter.
#include <gmock/gmock.h>

#include "target/target.h"
#include "target/webgpu/device.h"

namespace weft::target::webgpu {
namespace {

using testing::HasSubstr;

class WebGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto found = adapters();
    if (!found.ok()) GTEST_SKIP() << found.error().what();
    device_ = Device::open(0).value();
  }
  std::shared_ptr<Device> device_;
};

Device::Kernel doubled() {
  return {R"(
@group(0) @binding(0) var<uniform> words: array<vec4<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> status: array<i32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(4) fn run(@builtin(global_invocation_id) i: vec3<u32>) {
  if (i.x < words[0].x) { x[words[1].x / 4u + i.x] = 2f * x[words[1].x / 4u + i.x]; }
})", "run", 4, true, 1};
}

TEST_F(WebGpu, CopiesAndRunsInOrder) {
  const auto code = device_->build({doubled()}).value();
  constexpr std::int64_t kStart = 60, kCount = 9, kBytes = kCount * 4;
  const auto memory = device_->allocate(kStart + kBytes).value(), status = device_->allocate(4).value();
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y(x.size());
  const runtime::DeviceSpan span = {memory.get(), kStart, kBytes};
  runtime::DeviceLaunch launch;
  launch.code = code.get();
  launch.buffers = std::span(&span, 1);
  launch.grid = kCount;
  launch.status = {status.get(), 0, 4};
  ASSERT_TRUE(device_->upload(span, x.data(), kBytes).ok());
  constexpr int kTimes = 2000;  // more than one pass has parameters for
  for (int i = 0; i < kTimes; ++i) {
    if (i % 10 == 0) {
      ASSERT_TRUE(device_->upload(span, x.data(), kBytes).ok());
    }
    ASSERT_TRUE(device_->launch(launch).ok());
  }
  ASSERT_TRUE(device_->download(y.data(), span, kBytes).ok());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 1024 * x[i]);
  EXPECT_TRUE(device_->finish().ok());
}

TEST_F(WebGpu, KeepsTheBytesOfACopyThatIsNoWholeWord) {
  const auto memory = device_->allocate(7).value();
  const char text[] = "weaver";
  char back[sizeof text] = {};
  ASSERT_TRUE(device_->upload({memory.get(), 0, sizeof text}, text, sizeof text).ok());
  ASSERT_TRUE(device_->download(back, {memory.get(), 0, sizeof text}, sizeof text).ok());
  EXPECT_STREQ(back, text);
}

TEST_F(WebGpu, ShowsWhatIsWrongWithAShader) {
  Device::Kernel wrong = doubled();
  wrong.source.replace(wrong.source.find("2f *"), 4, "2i *");
  const auto code = device_->build({wrong});
  ASSERT_FALSE(code.ok());
  EXPECT_THAT(code.error().message(), HasSubstr("refuses generated WGSL"));
  EXPECT_THAT(code.error().message(), HasSubstr("2i *"));
  EXPECT_TRUE(device_->build({doubled()}).ok());  // the device goes on
}

TEST_F(WebGpu, RefusesWhatIsTooLarge) {
  const auto memory = device_->allocate(std::int64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code(), "out-of-device-memory");
  const auto most = static_cast<std::int64_t>(device_->facts().limits.storage_binding_bytes);
  if (most >= std::int64_t{1} << 30) return;
  const auto large = device_->allocate(2 * most).value(), status = device_->allocate(4).value();
  const auto code = device_->build({doubled()}).value();
  const runtime::DeviceSpan span = {large.get(), 0, 2 * most};
  runtime::DeviceLaunch launch;
  launch.code = code.get();
  launch.buffers = std::span(&span, 1);
  launch.grid = 1;
  launch.status = {status.get(), 0, 4};
  EXPECT_EQ(device_->launch(launch).error().code(), "out-of-device-memory");
}

TEST_F(WebGpu, RefusesMoreBuffersThanItBinds) {
  Device::Kernel many = doubled();
  many.buffers = 1000;
  const auto code = device_->build({many});
  ASSERT_FALSE(code.ok());
  EXPECT_THAT(code.error().message(), HasSubstr("1000 buffers"));
}

TEST_F(WebGpu, SaysWhichAdaptersThereAre) {
  const auto opened = target::open("webgpu:99");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), "no-device");
}

}  // namespace
}  // namespace weft::target::webgpu
