// Follows docs/adding-a-target.md: C11 as one more kernel language, printed, compiled with the system's compiler, and run
// against the kernel interpreter.
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "docs/c_dialect.h"
#include "docs/support.h"

namespace weft::docs {
namespace {

using kernel::Builder;
using ssa::ValueId;

std::string printed(const kernel::Function& f) {
  kernel::Function expanded = f;
  kernel::expand_math(expanded).value();
  return C11().prelude() + codegen::text::emit(expanded, C11()).value();
}

// y = 1 / (1 + exp(-max(x, z))) over n elements in vectors of 4; z[i] = (7 i) floor_div -3, as f32.
kernel::Function example() {
  Builder b("example");
  const int in = b.add_buffer({DType::F32, ssa::Space::Memory, true, false, 0});
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, false, true, 0});
  const ValueId n = b.size(b.add_size());
  const ValueId at = b.mul(b.program_id(), b.constant_i64(4));
  const ValueId lanes = b.add(b.splat(at, 4), b.iota(DType::I64, 4));
  const ValueId mask = b.scalar(ScalarOp::Lt, {lanes, b.splat(n, 4)});
  const ValueId x = b.load(in, at, 4, mask);
  const ValueId seven = b.constant_like(lanes, 7), third = b.constant_like(lanes, -3);
  const ValueId z = b.cast(b.scalar(ScalarOp::FloorDiv, {b.mul(lanes, seven), third}), DType::F32);
  b.check(b.scalar(ScalarOp::Lt, {at, n}), 5);
  b.store(out, b.scalar(ScalarOp::Sigmoid, {b.scalar(ScalarOp::Max, {x, z})}), at, mask);
  return b.finish();
}

TEST(AddingATarget, TheDialectSpells) {
  const std::string text = printed(example());
  for (const char* part : {"void weft_example(int64_t pid, const float* b0, float* b1, int64_t n0, int32_t* status) {",
                           "weft_floor_div_i64(", "fma(", "*status = 5;", "ldexp("}) {
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
  }
  EXPECT_FALSE(contains(text, "exp(-")) << "transcendental ops are polynomials by now";
}

TEST(AddingATarget, WhatALanguageLacksIsRefused) {
  Builder b("half");
  const int in = b.add_buffer({DType::F16, ssa::Space::Memory, true, false, 0});
  const int out = b.add_buffer({DType::F16, ssa::Space::Memory, false, true, 0});
  b.store(out, b.load(in, b.program_id(), 0), b.program_id());
  const auto text = codegen::text::emit(b.finish(), C11());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().kind(), ErrorKind::Unsupported);
}

TEST(AddingATarget, EveryScalarOpIsSpelledOrExpanded) {
  for (int i = 0; i < scalar_op_count(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (info(op).result == ScalarResult::Cast || info(op).result == ScalarResult::Select) continue;
    for (DType t : {DType::F32, DType::I32, DType::U8, DType::Bool}) {
      if (!accepts(op, t)) continue;
      Builder b("one");
      const int in = b.add_buffer({t, ssa::Space::Memory, true, false, 0});
      const ValueId x = b.load(in, b.program_id(), 0);
      const ValueId y = b.scalar(op, std::vector<ValueId>(static_cast<std::size_t>(info(op).operands), x));
      const int out = b.add_buffer({b.type(y).dtype, ssa::Space::Memory, false, true, 0});
      b.store(out, y, b.program_id());
      kernel::Function f = b.finish();
      kernel::expand_math(f).value();
      const auto text = codegen::text::emit(f, C11());
      EXPECT_TRUE(text.ok()) << text.error().what();
    }
  }
}

TEST(AddingATarget, TheTextRuns) {
  const kernel::Function f = example();
  char folder[] = "/tmp/weft-dialect-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string base = std::string(folder) + "/kernel";
  std::ofstream(base + ".c") << printed(f);
  const std::string command = "cc -std=c11 -O1 -fwrapv -ffp-contract=off -shared -fPIC -o " + base + ".so " + base + ".c -lm";
  ASSERT_EQ(std::system(command.c_str()), 0) << printed(f);
  void* library = dlopen((base + ".so").c_str(), RTLD_NOW);
  fs::remove_all(folder);
  ASSERT_NE(library, nullptr) << dlerror();
  using Kernel = void (*)(std::int64_t, const float*, float*, std::int64_t, std::int32_t*);
  const auto run = reinterpret_cast<Kernel>(dlsym(library, "weft_example"));
  ASSERT_NE(run, nullptr);

  std::vector<float> x = {-3, 0, NAN, 1.5f, 100, -200, 0.25f, -1, 7, INFINITY}, y(10), expected(10);
  std::int32_t status = 0;
  for (std::int64_t pid = 0; pid < 3; ++pid) run(pid, x.data(), y.data(), 10, &status);
  EXPECT_EQ(status, 0);
  run(3, x.data(), y.data(), 10, &status);
  EXPECT_EQ(status, 5);

  const std::vector<kernel::BufferView> views{{x.data(), 10}, {expected.data(), 10}};
  const std::vector<std::int64_t> sizes{10};
  kernel::interpret(f, views, sizes, 3).value();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(y[i]));
    } else {
      EXPECT_NEAR(y[i], expected[i], 3e-7) << i;
    }
  }
  dlclose(library);
}

TEST(AddingATarget, ThePageNamesWhatThereIs) {
  for (const std::string& word : in_backquotes(read("docs/adding-a-target.md"))) {
    const bool path = word.starts_with("src/") || word.starts_with("test/") || word.starts_with("docs/") || word.starts_with("cmake/");
    if (!path) continue;
    EXPECT_TRUE(fs::exists(kRoot / word)) << "docs/adding-a-target.md names " << word;
  }
}

}  // namespace
}  // namespace weft::docs
