// Kernels as SPIR-V: what must be in a module. Whether devices agree: test/codegen/text, whose languages it is one of.
#include "codegen/llvm/spirv.h"

#include <gmock/gmock.h>

#include <cstring>

#include "codegen/llvm/codegen.h"
#include "kernel/kernel.h"

namespace weft::codegen::spirv_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::uint32_t>;

// y[p] = x[p] + ... with as many loops as asked for, and a check.
kernel::Function sums(int loops) {
  kernel::Builder b("sums" + std::to_string(loops));
  const int x = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int y = b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0});
  b.add_size();
  ssa::ValueId sum = b.load(x, b.program_id(), 0);
  for (int k = 0; k < loops; ++k) {
    const auto loop = b.begin_for(b.constant_i64(0), b.size(0), b.constant_i64(1), {sum});
    sum = b.end_for({b.add(loop.carried[0], b.load(x, loop.iv, 0))})[0];
  }
  b.store(y, sum, b.program_id());
  return b.finish();
}

std::string text_of(const kernel::Function& f) { return spirv_text(std::span(&f, 1), Machine()).value(); }

Words words_of(const std::string& module) {
  Words words(module.size() / 4);
  std::memcpy(words.data(), module.data(), module.size());
  return words;
}
std::string module_of(const Words& words) { return {reinterpret_cast<const char*>(words.data()), words.size() * 4}; }

TEST(Spirv, EntriesAreKernelsThatContractNothing) {
  const std::string text = text_of(sums(1));
  EXPECT_THAT(text, HasSubstr("OpEntryPoint Kernel"));
  EXPECT_THAT(text, HasSubstr("\"sums1\""));
  EXPECT_THAT(text, HasSubstr("ContractionOff"));
  EXPECT_THAT(text, HasSubstr("OpMemoryModel Physical64 OpenCL"));
  EXPECT_THAT(text, Not(HasSubstr("OpCapability Float16")));
}

TEST(Spirv, ModulesAreOfVersion12) {
  const kernel::Function f = sums(0);
  const Words words = words_of(spirv(std::span(&f, 1), Machine()).value());
  ASSERT_GT(words.size(), 5u);
  EXPECT_EQ(words[0], 0x07230203u);
  EXPECT_EQ(words[1], 0x00010200u);
}

// LLVM remembers ids of blocks by addresses that functions of other modules had.
TEST(Spirv, ManyModulesOfOneProcess) {
  for (int round = 0; round < 60; ++round) {
    const kernel::Function f = sums(round % 7);
    EXPECT_TRUE(ids_are_unique(text_of(f))) << round;
    std::string module = spirv(std::span(&f, 1), Machine()).value();
    EXPECT_TRUE(mend_blocks(module)) << round;  // each block has one id, and is known wherever it is named
  }
}

// Two blocks whose ids are also those of the function's type and result type; a branch, a phi.
TEST(Spirv, BlocksGetIdsOfTheirOwn) {
  const Words head{0x07230203, 0x00010200, 0, 9, 0};
  const Words body{(5u << 16) | 54, 1, 3, 0, 2,               // OpFunction %1 -> %3
                   (2u << 16) | 248, 1, (2u << 16) | 249, 2,  // %1: branch %2
                   (2u << 16) | 248, 2,                       // %2:
                   (7u << 16) | 245, 4, 5, 6, 1, 7, 2,        // %5 = phi of %4: %6 from %1, %7 from %2
                   (4u << 16) | 250, 8, 2, 1,                 // if %8 then %2 else %1
                   (1u << 16) | 56};
  Words words = head;
  words.insert(words.end(), body.begin(), body.end());
  std::string module = module_of(words);
  ASSERT_TRUE(mend_blocks(module));
  const Words mended = words_of(module);
  EXPECT_EQ(mended[3], 11u);
  const Words want{(5u << 16) | 54, 1, 3, 0, 2, (2u << 16) | 248, 9, (2u << 16) | 249, 10, (2u << 16) | 248, 10,
                   (7u << 16) | 245, 4, 5, 6, 9, 7, 10, (4u << 16) | 250, 8, 10, 9, (1u << 16) | 56};
  EXPECT_EQ(Words(mended.begin() + 5, mended.end()), want);
}

TEST(Spirv, TwoBlocksOfOneIdAreRefused) {
  const Words words{0x07230203, 0x00010200, 0, 9, 0, (2u << 16) | 248, 1, (2u << 16) | 248, 1, (1u << 16) | 56};
  std::string module = module_of(words);
  EXPECT_FALSE(mend_blocks(module));
  EXPECT_FALSE(ids_are_unique("\t%1 = OpTypeInt 32 0\n\t%1 = OpLabel\n"));
  EXPECT_TRUE(ids_are_unique("\t%1 = OpTypeInt 32 0\n\t%2 = OpLabel\n"));
}

}  // namespace
}  // namespace weft::codegen::spirv_test
