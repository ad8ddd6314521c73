// Many runs over many sizes keep the process as large as it was. bench/soak.cpp does the same at length, on real models.
#include <unistd.h>

#include <fstream>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

double resident_bytes() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

TEST(Soak, RunsOverRandomSizesDoNotGrow) {
  auto exe = executable(R"(graph @t(%0 "x": f32[n, m], %1 "w": f32[m, 64]) -> (f32[n, 64]) where n in 0.., m in 0.. {
    %2 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 64]
    %3 = cum_sum %2 {axis=0, exclusive=false, reverse=false} : f32[n, 64]
    %4 = exp %3 : f32[n, 64]
    %5 = cum_sum %4 {axis=1, exclusive=false, reverse=false} : f32[n, 64]
    return %5
  })");
  ASSERT_TRUE(exe);
  std::mt19937 random(1);
  auto run = [&](std::int64_t n, std::int64_t m) {
    const Tensors inputs{Tensor::zeros(DType::F32, {n, m}).value(), Tensor::zeros(DType::F32, {m, 64}).value()};
    Tensors outputs;
    ASSERT_TRUE(exe->run(inputs, outputs).ok());
  };
  constexpr std::int64_t kMost = 300;
  run(kMost, kMost);
  double early = 0;
  for (int k = 0; k < 1000; ++k) {
    run(static_cast<std::int64_t>(random() % kMost), static_cast<std::int64_t>(random() % kMost));
    if (k == 200) early = resident_bytes();
  }
  EXPECT_LE(resident_bytes(), 1.01 * early + (256 << 10));
}

#endif

}  // namespace
}  // namespace weft::compiler::testing
