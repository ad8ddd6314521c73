// One program, many callers: every run gives the bits that a run alone gives, also in a child after a fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "weft/weft.h"

namespace weft {
namespace {

constexpr int kCallers = 8;

Program compiled(const std::string& name) {
  CompileOptions options;
  options.cache = false;
  return compile(load(WEFT_SOURCE_DIR "/test/models/" + name + ".onnx").value(), options).value();
}

// Numbers that depend on the caller; every named size is `size`.
std::vector<Tensor> inputs_of(const Program& program, int caller, std::int64_t size) {
  std::vector<Tensor> inputs;
  for (const Port& port : program.inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& d : port.shape) shape.push_back(d.is_const() ? d.value() : size);
    Tensor t = Tensor::zeros(port.dtype, shape).value();
    for (std::int64_t i = 0; i < t.size(); ++i) t.set_f64(i, static_cast<double>((i * 7 + caller * 3) % 11) / 4 - 1);
    inputs.push_back(std::move(t));
  }
  return inputs;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype() != b[i].dtype() || a[i].shape() != b[i].shape()) return false;
    if (a[i].byte_size() > 0 && std::memcmp(a[i].data(), b[i].data(), a[i].byte_size()) != 0) return false;
  }
  return true;
}

// What each caller gets when it is alone: by caller and size.
std::int64_t size_of(int caller, int round) { return 1 + (caller + round) % 5 * 3; }

bool gives(const Program& program, int caller, int round, const std::vector<Tensor>& wanted) {
  auto outputs = program.run(inputs_of(program, caller, size_of(caller, round)));
  return outputs.ok() && same_bits(*outputs, wanted);
}

class Callers : public testing::TestWithParam<const char*> {};

TEST_P(Callers, GetTheBitsOfARunAlone) {
  constexpr int kRounds = 10;
  const Program alone = compiled(GetParam()), shared = compiled(GetParam());
  std::vector<std::vector<std::vector<Tensor>>> wanted(kCallers);
  for (int c = 0; c < kCallers; ++c) {
    for (int r = 0; r < kRounds; ++r) wanted[c].push_back(alone.run(inputs_of(alone, c, size_of(c, r))).value());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < kCallers; ++c) {
    threads.emplace_back([&, c] {
      for (int r = 0; r < kRounds; ++r) wrong += !gives(shared, c, r, wanted[c][r]);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Callers, GetThemAfterAForkToo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  const Program program = compiled(GetParam());
  const std::vector<Tensor> wanted = program.run(inputs_of(program, 0, size_of(0, 0))).value();
  const pid_t child = fork();
  if (child == 0) {
    bool right = gives(program, 0, 0, wanted) && gives(compiled(GetParam()), 0, 0, wanted);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int c = 0; c < kCallers; ++c) threads.emplace_back([&] { wrong += !gives(program, 0, 0, wanted); });
    for (std::thread& t : threads) t.join();
    _exit(right && wrong == 0 ? 0 : 1);
  }
  EXPECT_TRUE(gives(program, 0, 0, wanted));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Callers, testing::Values("mlp", "attention", "control"));

}  // namespace
}  // namespace weft
