// A run over sizes seen before allocates nothing: counted by standing in for malloc.
#include "compile/support.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local bool g_counting = false;
thread_local int g_allocations = 0;
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  g_allocations += g_counting;
  return __libc_malloc(bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  g_allocations += g_counting;
  return __libc_memalign(alignment, bytes);
}
}

namespace weft::compiler::testing {
namespace {

TEST(Allocation, NoneAfterWarmUp) {
  auto exe = executable(R"(graph @t(%0 "x": f32[n, 8], %1 "w": f32[8, 8]) -> (f32[n, 8], f32[n]) where n in 0.. {
    %2 = dot %0, %1 {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0], dtype=f32} : f32[n, 8]
    %3 = reduce_max %2 {axes=[1]} : f32[n]
    %4 = broadcast %3 {shape=[n, 8], axes=[0]} : f32[n, 8]
    %5 = sub %2, %4 : f32[n, 8]
    %6 = cum_sum %5 {axis=0, exclusive=false, reverse=false} : f32[n, 8]
    %7 = exp %6 : f32[n, 8]
    return %7, %3
  })");
  std::mt19937 random(1);
  Tensor w = random_tensor(DType::F32, {8, 8}, random);
  for (int threads : {1, 2}) {
    runtime::RunOptions options;
    options.threads = threads;
    for (std::int64_t n : {3, 700}) {
      Tensors inputs{random_tensor(DType::F32, {n, 8}, random), w}, outputs;
      for (int warm = 0; warm < 2; ++warm) ASSERT_TRUE(exe->run(inputs, outputs, options).ok());
      g_allocations = 0;
      g_counting = true;
      bool fine = true;
      for (int k = 0; k < 10; ++k) fine = exe->run(inputs, outputs, options).ok() && fine;
      g_counting = false;
      EXPECT_TRUE(fine);
      EXPECT_EQ(g_allocations, 0) << n << " rows on " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace weft::compiler::testing

#endif
