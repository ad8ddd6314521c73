// Random bits as kernels: the generator's numbers, bit by bit, and what is made of them.
#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

Tensor key(std::uint64_t seed, std::uint64_t stream) {
  Tensor t = Tensor::zeros(DType::U64, {2}).value();
  t.set_i64(0, static_cast<std::int64_t>(seed));
  t.set_i64(1, static_cast<std::int64_t>(stream));
  return t;
}

TEST(RandomBits, AreThoseOfTheInterpreter) {
  const char* text = R"(graph @t(%0 "key": u64[2], %1 "x": f32[n, 3]) -> (u32[n, 3], u64[5, n], f32[n, 3]) where n in 0.. {
    %2 = random_bits %0 {dtype=u32, shape=[n, 3]} : u32[n, 3]
    %3 = random_bits %0 {dtype=u64, shape=[5, n]} : u64[5, n]
    %4 = random_bits %0 {dtype=u32, shape=[n, 3]} : u32[n, 3]
    %5 = cast %4 {dtype=f32} : f32[n, 3]
    %6 = mul %1, %5 : f32[n, 3]
    return %2, %3, %6
  })";
  std::mt19937 random(1);
  std::vector<Tensors> runs;
  for (std::int64_t n : {0, 1, 37, 400}) {
    runs.push_back({key(0x123456789abcdef0u + static_cast<std::uint64_t>(n), 0xfedcba9876543210u), random_tensor(DType::F32, {n, 3}, random)});
  }
  check(text, runs);
  auto exe = executable(text);
  for (const auto& step : exe->plan().steps) EXPECT_FALSE(std::holds_alternative<runtime::HostCall>(step));
}

}  // namespace
}  // namespace weft::compiler::testing
