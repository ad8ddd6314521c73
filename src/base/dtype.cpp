#include "base/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/float_format.h"

namespace weft {
namespace {

constexpr DTypeInfo kDTypes[] = {
#define DTYPE(id, name, bits, cls, onnx, npy) {name, bits, DTypeClass::cls, onnx, npy},
#include "base/dtypes.def"
#undef DTYPE
};
constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

using Special = FloatSpecial;
using Format = FloatFormat;

constexpr Format kF4E2M1{2, 1, 1, Special::None};
constexpr Format kF8E4M3FN{4, 3, 7, Special::NanTop};
constexpr Format kF8E4M3FNUZ{4, 3, 8, Special::NanNegZero};
constexpr Format kF8E5M2{5, 2, 15, Special::Ieee};
constexpr Format kF8E5M2FNUZ{5, 2, 16, Special::NanNegZero};
constexpr Format kF16{5, 10, 15, Special::Ieee};
constexpr Format kBF16{8, 7, 127, Special::Ieee};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double power_of_two(int exponent) {  // in the range of normal doubles
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

double decode(const Format& f, std::uint64_t code) {
  const bool negative = (code >> f.sign_shift()) & 1;
  const std::uint64_t magnitude = code & f.magnitude_mask();
  if (f.special == Special::NanNegZero && negative && magnitude == 0) return kNan;
  if (magnitude > f.max_finite()) {
    if (f.special != Special::Ieee || magnitude != f.infinity()) return kNan;
    return negative ? -kInf : kInf;
  }
  const auto mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const double scale = power_of_two((exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
  const auto digits = mantissa | (exponent == 0 ? 0u : 1u << f.mantissa_bits);
  const double value = static_cast<double>(digits) * scale;
  return negative ? -value : value;
}

// mantissa >> shift, to nearest, ties to even; shift >= 1.
std::uint64_t round_shift(std::uint64_t mantissa, int shift) {
  if (shift > 54) return 0;
  const std::uint64_t kept = mantissa >> shift;
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

struct Parts {
  bool negative;
  int exponent;
  std::uint64_t mantissa;  // 53 bits with the hidden one; 0 for zero
};

Parts split(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (biased == 0) return {(bits >> 63) != 0, -1022, fraction};
  return {(bits >> 63) != 0, biased - 1023, fraction | (std::uint64_t{1} << 52)};
}

std::uint64_t encode(const Format& f, double value, bool saturate) {
  const Parts p = split(value);
  const std::uint64_t sign = static_cast<std::uint64_t>(p.negative) << f.sign_shift();
  if (std::isnan(value)) {
    const bool keeps_sign = f.special == Special::Ieee || f.special == Special::NanTop;
    return f.nan() | (keeps_sign ? sign : 0);
  }
  std::uint64_t magnitude = f.infinity() + 1;  // beyond every finite code when the value is too big
  if (f.special != Special::Ieee) magnitude = f.magnitude_mask() + 1;
  if (p.exponent + f.bias < (1 << f.exponent_bits)) {
    const int below = std::max(0, 1 - f.bias - p.exponent);  // how far under the normal numbers
    magnitude = round_shift(p.mantissa, 52 - f.mantissa_bits + below);
    // The hidden bit, and a carry out of the mantissa, add to the exponent field.
    if (below == 0) magnitude += static_cast<std::uint64_t>(p.exponent + f.bias - 1) << f.mantissa_bits;
  }
  if (magnitude > f.max_finite()) {
    if (saturate || f.special == Special::None) return sign | f.max_finite();
    if (f.special == Special::Ieee) return sign | f.infinity();
    return f.nan() | (f.special == Special::NanTop ? sign : 0);
  }
  if (f.special == Special::NanNegZero && magnitude == 0) return 0;
  return sign | magnitude;
}

// Powers of two without sign or zero: code c is 2^(c - 127), 0xff is NaN. Zero and what is smaller give 2^-127.
double decode_e8m0(std::uint64_t code) {
  return (code & 0xff) == 0xff ? kNan : power_of_two(static_cast<int>(code & 0xff) - 127);
}

std::uint64_t encode_e8m0(double value, bool saturate) {
  if (std::isnan(value) || value < 0) return 0xff;
  if (std::isinf(value)) return saturate ? 0xfe : 0xff;
  const Parts p = split(value);
  const bool up = round_shift(p.mantissa, 52) == 2;
  const int code = p.exponent + 127 + (up ? 1 : 0);
  if (p.mantissa == 0 || code < 0) return 0;
  if (code > 0xfe) return saturate ? 0xfe : 0xff;
  return static_cast<std::uint64_t>(code);
}

float narrow_f32(double value, bool saturate) {
  const float narrow = static_cast<float>(value);
  if (!saturate || !std::isinf(narrow)) return narrow;
  return std::copysign(std::numeric_limits<float>::max(), narrow);
}

template <class T>
T load_raw(const void* data, std::int64_t index) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return v;
}

template <class T>
void store_raw(void* data, std::int64_t index, T v) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &v, sizeof(T));
}

std::uint64_t load_bits(int width, const void* data, std::int64_t index) {
  switch (width) {
    case 8: return load_raw<std::uint8_t>(data, index);
    case 16: return load_raw<std::uint16_t>(data, index);
    case 32: return load_raw<std::uint32_t>(data, index);
    case 64: return load_raw<std::uint64_t>(data, index);
    default: break;
  }
  const int per_byte = 8 / width;
  const auto byte = load_raw<std::uint8_t>(data, index / per_byte);
  return (byte >> (index % per_byte * width)) & ((1u << width) - 1);
}

void store_bits(int width, void* data, std::int64_t index, std::uint64_t v) {
  switch (width) {
    case 8: return store_raw(data, index, static_cast<std::uint8_t>(v));
    case 16: return store_raw(data, index, static_cast<std::uint16_t>(v));
    case 32: return store_raw(data, index, static_cast<std::uint32_t>(v));
    case 64: return store_raw(data, index, v);
    default: break;
  }
  const int per_byte = 8 / width;
  const int shift = static_cast<int>(index % per_byte) * width;
  const unsigned mask = ((1u << width) - 1) << shift;
  const unsigned old = load_raw<std::uint8_t>(data, index / per_byte);
  const unsigned merged = (old & ~mask) | ((static_cast<unsigned>(v) << shift) & mask);
  store_raw(data, index / per_byte, static_cast<std::uint8_t>(merged));
}

}  // namespace

const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
int dtype_count() { return kDTypeCount; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == kDTypes[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_onnx(std::int64_t number) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (number == kDTypes[i].onnx) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_npy(std::string_view descr) {
  if (descr.empty()) return std::nullopt;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (descr == kDTypes[i].npy) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::size_t alignment(DType t) {
  const int width = bits(t);
  return width <= 8 ? 1 : static_cast<std::size_t>(width < 64 ? width : 64) / 8;
}

std::optional<std::size_t> storage_bytes(DType t, std::int64_t count) {
  if (count < 0) return std::nullopt;
  const int width = bits(t);
  if (width == 0) return 0;
  std::int64_t total = 0;
  if (width >= 8) {
    if (__builtin_mul_overflow(count, static_cast<std::int64_t>(width / 8), &total)) return std::nullopt;
  } else {
    const int per_byte = 8 / width;
    total = count / per_byte + (count % per_byte != 0 ? 1 : 0);
  }
  return static_cast<std::size_t>(total);
}

std::optional<FloatFormat> float_format(DType t) {
  switch (t) {
    case DType::BF16: return kBF16;
    case DType::F16: return kF16;
    case DType::F8E4M3FN: return kF8E4M3FN;
    case DType::F8E4M3FNUZ: return kF8E4M3FNUZ;
    case DType::F8E5M2: return kF8E5M2;
    case DType::F8E5M2FNUZ: return kF8E5M2FNUZ;
    case DType::F4E2M1: return kF4E2M1;
    default: return std::nullopt;
  }
}

double decode_float(DType t, std::uint64_t code) {
  switch (t) {
    case DType::F64: return std::bit_cast<double>(code);
    case DType::F32: return std::bit_cast<float>(static_cast<std::uint32_t>(code));
    case DType::BF16: return std::bit_cast<float>(static_cast<std::uint32_t>(code & 0xffff) << 16);
    case DType::F8E8M0: return decode_e8m0(code);
    default: break;
  }
  if (const auto format = float_format(t)) return decode(*format, code);
  check_failed("is_float(t)", __FILE__, __LINE__, std::string("decode_float of ") + name(t));
}

std::uint64_t encode_float(DType t, double value, bool saturate) {
  switch (t) {
    case DType::F64: {
      const bool clamp = saturate && std::isinf(value);
      return std::bit_cast<std::uint64_t>(
          clamp ? std::copysign(std::numeric_limits<double>::max(), value) : value);
    }
    case DType::F32: return std::bit_cast<std::uint32_t>(narrow_f32(value, saturate));
    case DType::F8E8M0: return encode_e8m0(value, saturate);
    default: break;
  }
  if (const auto format = float_format(t)) return encode(*format, value, saturate);
  check_failed("is_float(t)", __FILE__, __LINE__, std::string("encode_float of ") + name(t));
}

double load_f64(DType t, const void* data, std::int64_t index) {
  if (t == DType::F32) return load_raw<float>(data, index);
  if (is_float(t)) return decode_float(t, load_bits(bits(t), data, index));
  const std::int64_t v = load_i64(t, data, index);
  return t == DType::U64 ? static_cast<double>(static_cast<std::uint64_t>(v)) : static_cast<double>(v);
}

std::int64_t load_i64(DType t, const void* data, std::int64_t index) {
  const int width = bits(t);
  const std::uint64_t raw = load_bits(width, data, index);
  if (is_bool(t)) return raw != 0;
  if (is_unsigned_int(t)) return static_cast<std::int64_t>(raw);
  WEFT_CHECK(is_signed_int(t), std::string("load_i64 of ") + name(t));
  const int unused = 64 - width;
  return static_cast<std::int64_t>(raw << unused) >> unused;
}

void store_f64(DType t, void* data, std::int64_t index, double value) {
  if (t == DType::F32) return store_raw(data, index, static_cast<float>(value));
  store_bits(bits(t), data, index, encode_float(t, value));
}

void store_i64(DType t, void* data, std::int64_t index, std::int64_t value) {
  WEFT_CHECK(is_bool(t) || is_int(t), std::string("store_i64 of ") + name(t));
  store_bits(bits(t), data, index, is_bool(t) ? value != 0 : static_cast<std::uint64_t>(value));
}

}  // namespace weft
