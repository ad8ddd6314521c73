// Casts from and to floats of 8 bits, as arithmetic on codes: the host's, code by code.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

constexpr int kLanes = 16;

// Casts n elements, n a multiple of 16.
std::vector<std::uint64_t> cast_all(DType from, DType to, const void* x, std::int64_t n) {
  Builder b("cast");
  const int in = b.add_buffer({from, ssa::Space::Memory, true, false, 0}), out = b.add_buffer({to, ssa::Space::Memory, false, true, 0});
  const ValueId at = b.mul(b.program_id(), b.constant_i64(kLanes));
  b.store(out, b.cast(b.load(in, at, kLanes), to), at);
  Function f = b.finish();
  const auto expanded = expand_math(f);
  EXPECT_TRUE(expanded.ok());
  for (const Type& t : f.types) EXPECT_FALSE(is_float(t.dtype) && bits(t.dtype) == 8) << "codes are left";
  std::vector<std::uint64_t> y(static_cast<std::size_t>(n));
  const BufferView views[] = {{const_cast<void*>(x), n}, {y.data(), n}};
  const auto ran = interpret(f, views, {}, n / kLanes);
  EXPECT_TRUE(ran.ok()) << ran.error().what();
  return y;
}

constexpr DType kEighths[] = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ};

TEST(F8, EveryCodeIsDecoded) {
  std::vector<std::uint8_t> codes(256);
  for (int i = 0; i < 256; ++i) codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  for (const DType t : kEighths) {
    const auto y = cast_all(t, DType::F32, codes.data(), 256);
    for (int i = 0; i < 256; ++i) {
      const double expected = decode_float(t, static_cast<std::uint64_t>(i)), found = load_f64(DType::F32, y.data(), i);
      if (std::isnan(expected)) EXPECT_TRUE(std::isnan(found)) << name(t) << " " << i;
      else EXPECT_TRUE(found == expected && std::signbit(found) == std::signbit(expected)) << name(t) << " " << i;
    }
  }
}

// Halfway between codes, beside that, subnormal, too large, and what is no number.
TEST(F8, NumbersAreRoundedToTheNearestCode) {
  for (const DType wide : {DType::F32, DType::F64}) {
    for (const DType t : kEighths) {
      std::vector<double> x;
      for (int i = 0; i < 127; ++i) {
        const double a = decode_float(t, static_cast<std::uint64_t>(i)), b = decode_float(t, static_cast<std::uint64_t>(i + 1));
        if (!std::isfinite(a) || !std::isfinite(b)) continue;
        for (const double v : {a, (a + b) / 2, (a + b) / 2 * (1 + 1e-6), (a + b) / 2 * (1 - 1e-6), a + (b - a) / 4}) x.insert(x.end(), {v, -v});
      }
      const double infinity = std::numeric_limits<double>::infinity();
      x.insert(x.end(), {1e30, -1e30, 480.0, 464.0, 465.0, 61440.0, 61439.0, 1e-30, -1e-30, 1e-42, infinity, -infinity, std::nan("")});
      x.resize((x.size() + kLanes - 1) / kLanes * kLanes);
      std::vector<std::uint64_t> words(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) store_f64(wide, words.data(), static_cast<std::int64_t>(i), x[i]);
      const auto y = cast_all(wide, t, words.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const std::uint64_t expected = encode_float(t, load_f64(wide, words.data(), at));
        EXPECT_EQ(static_cast<std::uint64_t>(load_i64(DType::U8, y.data(), at)), expected) << name(wide) << " " << x[i] << " as " << name(t);
      }
    }
  }
}

}  // namespace
}  // namespace weft::kernel
