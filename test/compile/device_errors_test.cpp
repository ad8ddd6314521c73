// Devices that fail in the middle of a run, and runs at the same time.
#include <atomic>
#include <thread>

#include "compile/support.h"
#include "target/target.h"

namespace weft::compiler::testing {
namespace {

// A simulated device that refuses one call, or counts them.
class Failing final : public runtime::Device {
 public:
  explicit Failing(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {}
  // The call before which so many more succeed; -1: none.
  void fail_after(int calls) { left_ = calls; }

  const std::string& name() const override { return device_->name(); }
  Result<std::unique_ptr<runtime::DeviceMemory>> allocate(std::int64_t bytes) override {
    WEFT_TRY(next());
    return device_->allocate(bytes);
  }
  Result<void> upload(runtime::DeviceSpan to, const void* from, std::int64_t bytes) override {
    WEFT_TRY(next());
    return device_->upload(to, from, bytes);
  }
  Result<void> download(void* to, runtime::DeviceSpan from, std::int64_t bytes) override {
    WEFT_TRY(next());
    return device_->download(to, from, bytes);
  }
  Result<void> launch(const runtime::DeviceLaunch& launch) override {
    WEFT_TRY(next());
    return device_->launch(launch);
  }
  Result<void> finish() override { return device_->finish(); }

 private:
  Result<void> next() {
    if (left_ >= 0 && left_-- == 0) return user_error("out-of-device-memory", "no more of it");
    return {};
  }
  std::shared_ptr<runtime::Device> device_;
  std::atomic<int> left_ = -1;
};

class FailingTarget final : public target::Target {
 public:
  const Machine& machine() const override { return sim_->machine(); }
  std::shared_ptr<runtime::Device> device() const override { return device_; }
  Result<std::string> print(std::span<const kernel::Function> kernels) const override { return sim_->print(kernels); }
  Result<std::shared_ptr<const runtime::DeviceCode>> build(std::span<const kernel::Function> kernels) const override { return sim_->build(kernels); }
  Failing& failing() const { return *device_; }

 private:
  std::shared_ptr<const target::Target> sim_ = target::open("sim:opencl").value();
  std::shared_ptr<Failing> device_ = std::make_shared<Failing>(sim_->device());
};

const char* kText = R"(graph @t(%0 "x": f32[n, 4]) -> (f32[n, 4], f32[4]) where n in 0.. {
  %4 = cum_sum %0 {axis=0, exclusive=false, reverse=false} : f32[n, 4]
  %5 = cum_sum %4 {axis=1, exclusive=false, reverse=false} : f32[n, 4]
  %6 = reduce_sum %5 {axes=[0]} : f32[4]
  return %5, %6
})";

// All on the device, or every second kernel here.
runtime::Executable built(std::shared_ptr<const target::Target> device, bool divided) {
  Options options;
  options.target = std::move(device);
  options.cpu_too = divided;
  options.on_device = [number = 0](const loop::Group&) mutable { return number++ % 2 == 0; };
  options.cache = false;
  options.jobs = 1;
  return runtime::Executable(compile(parsed(kText), options).value().plan);
}

TEST(DeviceErrors, LeaveAProgramThatRunsAgain) {
  for (const bool divided : {false, true}) {
    const auto device = std::make_shared<FailingTarget>();
    const runtime::Executable exe = built(device, divided);
    std::mt19937 random(5);
    const Tensors few{random_tensor(DType::F32, {3, 4}, random)}, many{random_tensor(DType::F32, {90, 4}, random)};
    const Tensors want = graph::interpret(parsed(kText), few).value();
    expect_same(run(exe, few), want);
    bool refused = true;
    int calls = 0;
    for (; refused; ++calls) {
      ASSERT_LT(calls, 100);
      Tensors outputs;
      device->failing().fail_after(calls);
      const auto status = exe.run(many, outputs);
      device->failing().fail_after(-1);
      refused = !status.ok();
      EXPECT_EQ(refused ? status.error().code() : "out-of-device-memory", "out-of-device-memory");
      expect_same(run(exe, few), want, "after call " + std::to_string(calls) + " failed");
    }
    EXPECT_GT(calls, 5);
  }
}

TEST(DeviceErrors, RunsAtTheSameTimeKeepApart) {
  for (const bool divided : {false, true}) {
    const runtime::Executable exe = built(target::open("sim:opencl").value(), divided);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&exe, t] {
        std::mt19937 random(t);
        for (int round = 0; round < 8; ++round) {
          const Tensors given{random_tensor(DType::F32, {static_cast<std::int64_t>(1 + t * 20), 4}, random)};
          expect_same(run(exe, given), graph::interpret(parsed(kText), given).value());
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
}

// What the host refuses may follow from what the device computed after a check failed there: that check is told.
TEST(DeviceErrors, AFailedCheckIsToldThoughTheHostFindsMore) {
  const std::string text = R"(graph @t(%0 "x": i64[6], %1 "i": i64[1], %2 "size": i64[1]) -> (i64[1], i32[k]) {
    %3 = gather %0, %1 {axis=0} : i64[1]
    %4 = neg %2 : i64[1]
    bind %4 {shape=[k]}
    %5 = iota {axis=0, dtype=i32, shape=[k]} : i32[k]
    return %3, %5
  })";
  const auto exe = executable(parsed(text), target::open("sim:opencl").value());
  ASSERT_TRUE(exe);
  const auto said = [&](double index, double size) {
    Tensors outputs;
    const auto status = exe->run({i64({6}, {0, 1, 2, 3, 4, 5}), i64({1}, {index}), i64({1}, {size})}, outputs);
    return status.ok() ? std::string() : status.error().code();
  };
  EXPECT_EQ(said(5, -2), "");
  EXPECT_EQ(said(7, -2), "index-out-of-range");
  EXPECT_EQ(said(7, 2), "index-out-of-range");
  EXPECT_EQ(said(5, 2), "size-out-of-range");
}

}  // namespace
}  // namespace weft::compiler::testing
