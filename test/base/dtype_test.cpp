#include "base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/support.h"

namespace weft {
namespace {

const DType kNarrow[] = {DType::F4E2M1,     DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2,
                         DType::F8E5M2FNUZ, DType::F8E8M0,   DType::F16,        DType::BF16};
std::vector<double> finite_values(DType t) {
  std::vector<double> values;
  for (std::uint64_t code = 0; code < (1u << bits(t)); ++code) {
    const double v = decode_float(t, code);
    if (std::isfinite(v)) values.push_back(v);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

TEST(DType, NamesAndNumbersRoundTrip) {
  for (int i = 0; i < dtype_count(); ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(t)), t);
    EXPECT_EQ(dtype_from_onnx(info(t).onnx), t);
    if (info(t).npy[0] != 0) {
      EXPECT_EQ(dtype_from_npy(info(t).npy), t);
    }
  }
  EXPECT_FALSE(parse_dtype("f33"));
  EXPECT_FALSE(dtype_from_onnx(0));
  EXPECT_FALSE(dtype_from_onnx(-1));
  EXPECT_FALSE(dtype_from_npy(""));
}

TEST(DType, EveryCodeRoundTrips) {
  for (DType t : kNarrow) {
    for (std::uint64_t code = 0; code < (1u << bits(t)); ++code) {
      const double v = decode_float(t, code);
      const std::uint64_t back = encode_float(t, v);
      if (std::isnan(v)) {
        EXPECT_TRUE(std::isnan(decode_float(t, back))) << name(t) << ' ' << code;
      } else {
        EXPECT_EQ(back, code) << name(t) << ' ' << v;
      }
    }
  }
}

TEST(DType, RoundsToNearestEven) {
  for (DType t : kNarrow) {
    const auto values = finite_values(t);
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double lo = values[i], hi = values[i + 1];
      const double mid = lo + (hi - lo) / 2;  // exact: both have few bits
      EXPECT_EQ(decode_float(t, encode_float(t, std::nextafter(mid, lo))), lo) << name(t) << ' ' << mid;
      EXPECT_EQ(decode_float(t, encode_float(t, std::nextafter(mid, hi))), hi) << name(t) << ' ' << mid;
      const std::uint64_t tie = encode_float(t, mid);
      if (t == DType::F8E8M0) {
        EXPECT_EQ(decode_float(t, tie), hi);
      } else {
        EXPECT_EQ(tie & 1, 0u) << name(t) << ' ' << mid;
        EXPECT_TRUE(decode_float(t, tie) == lo || decode_float(t, tie) == hi) << name(t) << ' ' << mid;
      }
    }
  }
}

struct Limits {
  DType t;
  double max, beyond;  // `beyond` rounds up past max
  double overflow;     // what it becomes without saturation
};

TEST(DType, OverflowAndSaturation) {
  const Limits table[] = {{DType::F4E2M1, 6, 100, 6},
                          {DType::F8E4M3FN, 448, 465, kNan},
                          {DType::F8E4M3FNUZ, 240, 249, kNan},
                          {DType::F8E5M2, 57344, 61440, kInf},
                          {DType::F8E5M2FNUZ, 57344, 61441, kNan},
                          {DType::F8E8M0, std::ldexp(1, 127), std::ldexp(1.5, 127), kNan},
                          {DType::F16, 65504, 65520, kInf},
                          {DType::BF16, std::ldexp(255, 120), std::ldexp(511, 119), kInf},
                          {DType::F32, std::numeric_limits<float>::max(), 1e39, kInf}};
  for (const Limits& l : table) {
    for (double big : {l.beyond, 1e300, kInf}) {
      const double plain = decode_float(l.t, encode_float(l.t, big));
      if (std::isnan(l.overflow)) {
        EXPECT_TRUE(std::isnan(plain)) << name(l.t);
      } else {
        EXPECT_EQ(plain, l.overflow) << name(l.t);
      }
      EXPECT_EQ(decode_float(l.t, encode_float(l.t, big, true)), l.max) << name(l.t);
      if (l.t != DType::F8E8M0) {
        EXPECT_EQ(decode_float(l.t, encode_float(l.t, -big, true)), -l.max) << name(l.t);
      }
    }
    EXPECT_EQ(decode_float(l.t, encode_float(l.t, l.max)), l.max) << name(l.t);
  }
}

TEST(DType, SpecialValues) {
  for (DType t : kNarrow) {
    if (t != DType::F4E2M1) {
      EXPECT_TRUE(std::isnan(decode_float(t, encode_float(t, kNan)))) << name(t);
    }
    EXPECT_EQ(decode_float(t, encode_float(t, 5e-324)), t == DType::F8E8M0 ? std::ldexp(1, -127) : 0.0) << name(t);
  }
  EXPECT_EQ(encode_float(DType::F4E2M1, kNan), 8u);
  EXPECT_EQ(encode_float(DType::F16, -0.0), 0x8000u);
  EXPECT_EQ(encode_float(DType::F8E4M3FNUZ, -0.0), 0u);
  EXPECT_EQ(encode_float(DType::F8E5M2FNUZ, -1e-30), 0u);
  EXPECT_EQ(encode_float(DType::F8E8M0, -1.0), 0xffu);
  EXPECT_EQ(decode_float(DType::F16, 0x0001), std::ldexp(1, -24));
  EXPECT_EQ(decode_float(DType::F8E5M2, 0x7c), kInf);
}

// The compiler's own conversion is the independent answer for bf16 by way of exact halves of f32.
TEST(DType, Bf16MatchesBitArithmetic) {
  std::mt19937 rng(1);
  for (int i = 0; i < 200000; ++i) {
    const auto raw = static_cast<std::uint32_t>(rng());
    const float f = std::bit_cast<float>(raw);
    if (std::isnan(f)) continue;
    const std::uint32_t expected = (raw + 0x7fff + ((raw >> 16) & 1)) >> 16;
    EXPECT_EQ(encode_float(DType::BF16, f), expected);
  }
}

TEST(DType, IntsWrapAndPack) {
  std::mt19937_64 rng(2);
  for (int i = 0; i < dtype_count(); ++i) {
    const auto t = static_cast<DType>(i);
    if (!is_int(t)) continue;
    std::vector<std::uint8_t> buffer(*storage_bytes(t, 37));
    std::vector<std::int64_t> expected;
    for (int k = 0; k < 37; ++k) {
      const auto v = static_cast<std::int64_t>(rng());
      store_i64(t, buffer.data(), k, v);
      const int unused = 64 - bits(t);
      const auto up = static_cast<std::uint64_t>(v) << unused;
      expected.push_back(is_signed_int(t) ? static_cast<std::int64_t>(up) >> unused
                                          : static_cast<std::int64_t>(up >> unused));
    }
    for (int k = 0; k < 37; ++k) EXPECT_EQ(load_i64(t, buffer.data(), k), expected[k]) << name(t) << k;
  }
  const std::uint8_t nibbles[] = {0x2f};
  EXPECT_EQ(load_i64(DType::I4, nibbles, 0), -1);
  EXPECT_EQ(load_i64(DType::U4, nibbles, 1), 2);
  EXPECT_EQ(load_f64(DType::F4E2M1, nibbles, 0), -6);
  EXPECT_EQ(load_f64(DType::F4E2M1, nibbles, 1), 1);
  const std::uint64_t big[] = {~std::uint64_t{0}};
  EXPECT_EQ(load_f64(DType::U64, big, 0), 18446744073709551616.0);
  std::uint8_t flag[] = {0};
  store_i64(DType::Bool, flag, 0, 256);
  EXPECT_EQ(flag[0], 1);
}

TEST(DType, StorageBytes) {
  EXPECT_EQ(storage_bytes(DType::F32, 3), 12u);
  EXPECT_EQ(storage_bytes(DType::I4, 3), 2u);
  EXPECT_EQ(storage_bytes(DType::U2, 5), 2u);
  EXPECT_EQ(storage_bytes(DType::F64, 0), 0u);
  EXPECT_FALSE(storage_bytes(DType::F64, INT64_MAX / 4));
  EXPECT_FALSE(storage_bytes(DType::F64, -1));
  EXPECT_TRUE(storage_bytes(DType::U2, INT64_MAX));
}

}  // namespace
}  // namespace weft
