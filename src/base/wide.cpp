#include "base/wide.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace weft {
namespace {

template <class T, class W>
void load_as(const Tensor& t, std::int64_t start, std::int64_t n, W* out) {
  const char* p = static_cast<const char*>(t.data()) + start * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; ++i) {
    T v;
    std::memcpy(&v, p + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    out[i] = static_cast<W>(v);
  }
}

template <class T, class W>
void store_as(Tensor& t, std::int64_t start, std::int64_t n, const W* in) {
  char* p = static_cast<char*>(t.mutable_data()) + start * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = static_cast<T>(in[i]);
    std::memcpy(p + i * static_cast<std::int64_t>(sizeof(T)), &v, sizeof(T));
  }
}

template <class W>
void load_ints(const Tensor& t, std::int64_t start, std::int64_t n, W* out) {
  switch (t.dtype()) {
    case DType::I8: return load_as<std::int8_t>(t, start, n, out);
    case DType::I16: return load_as<std::int16_t>(t, start, n, out);
    case DType::I32: return load_as<std::int32_t>(t, start, n, out);
    case DType::I64: return load_as<std::int64_t>(t, start, n, out);
    case DType::U8: return load_as<std::uint8_t>(t, start, n, out);
    case DType::U16: return load_as<std::uint16_t>(t, start, n, out);
    case DType::U32: return load_as<std::uint32_t>(t, start, n, out);
    case DType::U64: return load_as<std::uint64_t>(t, start, n, out);
    default: break;
  }
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<W>(t.i64(start + i));
}

template <class W>
void store_ints(Tensor& t, std::int64_t start, std::int64_t n, const W* in) {
  switch (t.dtype()) {
    case DType::I8: return store_as<std::int8_t>(t, start, n, in);
    case DType::I16: return store_as<std::int16_t>(t, start, n, in);
    case DType::I32: return store_as<std::int32_t>(t, start, n, in);
    case DType::I64: return store_as<std::int64_t>(t, start, n, in);
    case DType::U8: return store_as<std::uint8_t>(t, start, n, in);
    case DType::U16: return store_as<std::uint16_t>(t, start, n, in);
    case DType::U32: return store_as<std::uint32_t>(t, start, n, in);
    case DType::U64: return store_as<std::uint64_t>(t, start, n, in);
    default: break;
  }
  void* data = t.mutable_data();
  for (std::int64_t i = 0; i < n; ++i) {
    store_i64(t.dtype(), data, start + i, static_cast<std::int64_t>(in[i]));
  }
}

double extreme(DType t, double infinity) {
  if (t == DType::F8E8M0) return infinity > 0 ? decode_float(t, 0xfe) : decode_float(t, 0);
  const double unsaturated = decode_float(t, encode_float(t, infinity));
  return std::isinf(unsaturated) ? unsaturated : decode_float(t, encode_float(t, infinity, true));
}

// The double next to the magnitude towards zero, its last bit set when something was lost: rounding it to a format of
// at most 51 bits then gives what rounding the magnitude itself would.
double to_odd(std::uint64_t magnitude) {
  const int excess = magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude) - 53;
  if (excess <= 0) return static_cast<double>(magnitude);
  std::uint64_t kept = magnitude >> excess;
  if (kept << excess != magnitude) kept |= 1;
  return std::ldexp(static_cast<double>(kept), excess);
}

}  // namespace

void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, double* out) {
  if (t.dtype() == DType::F32) return load_as<float>(t, start, n, out);
  if (t.dtype() == DType::F64) return load_as<double>(t, start, n, out);
  for (std::int64_t i = 0; i < n; ++i) out[i] = t.f64(start + i);
}

void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, std::int64_t* out) {
  load_ints(t, start, n, out);
}

void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, std::uint64_t* out) {
  load_ints(t, start, n, out);
}

void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, WideComplex* out) {
  if (t.dtype() == DType::C64) return load_as<std::complex<float>>(t, start, n, out);
  WEFT_CHECK(t.dtype() == DType::C128, std::string("complex values of ") + name(t.dtype()));
  load_as<WideComplex>(t, start, n, out);
}

void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const double* in) {
  if (t.dtype() == DType::F32) return store_as<float>(t, start, n, in);
  if (t.dtype() == DType::F64) return store_as<double>(t, start, n, in);
  void* data = t.mutable_data();
  for (std::int64_t i = 0; i < n; ++i) store_f64(t.dtype(), data, start + i, in[i]);
}

void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const std::int64_t* in) {
  store_ints(t, start, n, in);
}

void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const std::uint64_t* in) {
  store_ints(t, start, n, in);
}

void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const WideComplex* in) {
  if (t.dtype() == DType::C64) return store_as<std::complex<float>>(t, start, n, in);
  WEFT_CHECK(t.dtype() == DType::C128, std::string("complex values of ") + name(t.dtype()));
  store_as<WideComplex>(t, start, n, in);
}

Result<Tensor> result_tensor(DType dtype, std::vector<std::int64_t> shape) {
  if (bits(dtype) < 8) return Tensor::zeros(dtype, std::move(shape));
  return Tensor::empty(dtype, std::move(shape));
}

template <>
double least<double>(DType t) {
  return extreme(t, -std::numeric_limits<double>::infinity());
}
template <>
double largest<double>(DType t) {
  return extreme(t, std::numeric_limits<double>::infinity());
}
template <>
std::int64_t least<std::int64_t>(DType t) {
  return std::numeric_limits<std::int64_t>::min() >> (64 - bits(t));
}
template <>
std::int64_t largest<std::int64_t>(DType t) {
  return std::numeric_limits<std::int64_t>::max() >> (64 - bits(t));
}
template <>
std::uint64_t least<std::uint64_t>(DType) {
  return 0;
}
template <>
std::uint64_t largest<std::uint64_t>(DType t) {
  return is_bool(t) ? 1 : std::numeric_limits<std::uint64_t>::max() >> (64 - bits(t));
}

std::int64_t clamp_to_int(DType t, double value) {
  if (std::isnan(value)) return 0;
  if (is_unsigned_int(t)) {
    const std::uint64_t top = largest<std::uint64_t>(t);
    if (value <= 0) return 0;
    if (value >= static_cast<double>(top)) return static_cast<std::int64_t>(top);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
  }
  const std::int64_t bottom = least<std::int64_t>(t), top = largest<std::int64_t>(t);
  if (value <= static_cast<double>(bottom)) return bottom;
  if (value >= static_cast<double>(top)) return top;
  return static_cast<std::int64_t>(value);
}

double int_to_float(DType t, std::int64_t value, bool is_unsigned, bool saturate) {
  if (t == DType::F64) {
    return is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
  }
  if (t == DType::F32 && !saturate) {
    return is_unsigned ? static_cast<float>(static_cast<std::uint64_t>(value)) : static_cast<float>(value);
  }
  const bool negative = !is_unsigned && value < 0;
  const auto raw = static_cast<std::uint64_t>(value);
  const double magnitude = to_odd(negative ? 0 - raw : raw);
  return decode_float(t, encode_float(t, negative ? -magnitude : magnitude, saturate));
}

}  // namespace weft
