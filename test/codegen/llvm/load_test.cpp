// The runtime's loader of objects.
#include "runtime/object.h"

#include <gtest/gtest.h>

#include <random>

#include "codegen/llvm/harness.h"

namespace weft::codegen {
namespace {

using kernel::Builder;

// Adds a constant vector, whose elements lie outside of the code, and calls memset.
kernel::Function function() {
  Builder b("k");
  const int out = b.add_buffer({DType::F32, ssa::Space::Memory, true, true, 0});
  const auto at = b.mul(b.program_id(), b.constant_i64(8));
  const auto iota = b.iota(DType::I32, 8);
  b.store(out, b.add(b.load(out, at, 8), b.cast(iota, DType::F32)), at);
  return b.finish();
}

Object object() {
  const kernel::Function made = function();
  const Entry entry{&made, "k"};
  return compile_object({&entry, 1}, host_target()).value();
}

Result<std::shared_ptr<const runtime::LoadedObjects>> load(const Object& object) {
  const ByteSpan bytes = std::as_bytes(std::span(object.data(), object.size()));
  return runtime::LoadedObjects::load({&bytes, 1});
}

TEST(Load, FindsWhatIsThere) {
  if (!host_target().triple.starts_with("x86_64")) GTEST_SKIP() << "LLVM's linker loads this architecture's objects";
  const auto loaded = load(object());
  ASSERT_TRUE(loaded.ok()) << loaded.error().what();
  const runtime::KernelFn k = (*loaded)->find("k");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ((*loaded)->find("other"), nullptr);
  alignas(64) float values[16] = {1, 1};
  void* buffers[] = {values};
  std::int64_t status = 0;
  k(buffers, nullptr, 0, 2, nullptr, &status);
  EXPECT_EQ(values[1], 2);
  EXPECT_EQ(values[15], 7);
}

TEST(Load, SeveralObjectsAtOnce) {
  const std::vector<Object> objects{object(), object()};
  EXPECT_TRUE(LoadedCode::load(objects).value().lookup("k").ok());
  EXPECT_FALSE(LoadedCode::load(objects).value().lookup("j").ok());
}

TEST(Load, DamagedObjectsNeverCrash) {
  const Object whole = object();
  for (std::size_t size = 0; size < whole.size(); ++size) (void)load(Object(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
  std::mt19937 random(1);
  int refused = 0;
  for (int k = 0; k < 3000; ++k) {
    Object damaged = whole;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    refused += !load(damaged).ok();
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace weft::codegen
