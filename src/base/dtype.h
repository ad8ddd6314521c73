// Element types: one table (dtypes.def), and exact conversion of single elements to and from wide host types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class DType : std::uint8_t {
#define DTYPE(id, name, bits, cls, onnx, npy) id,
#include "base/dtypes.def"
#undef DTYPE
};

enum class DTypeClass : std::uint8_t { Bool, Int, UInt, Float, Complex, String };

struct DTypeInfo {
  const char* name;
  int bits;  // in memory
  DTypeClass cls;
  int onnx;              // TensorProto.DataType
  const char* npy;       // NumPy descr, or ""
};

const DTypeInfo& info(DType t);
int dtype_count();
inline const char* name(DType t) { return info(t).name; }
inline int bits(DType t) { return info(t).bits; }
inline bool is_bool(DType t) { return info(t).cls == DTypeClass::Bool; }
inline bool is_signed_int(DType t) { return info(t).cls == DTypeClass::Int; }
inline bool is_unsigned_int(DType t) { return info(t).cls == DTypeClass::UInt; }
inline bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
inline bool is_float(DType t) { return info(t).cls == DTypeClass::Float; }
inline bool is_complex(DType t) { return info(t).cls == DTypeClass::Complex; }
inline bool is_string(DType t) { return t == DType::Str; }

std::optional<DType> parse_dtype(std::string_view name);
std::optional<DType> dtype_from_onnx(std::int64_t number);
std::optional<DType> dtype_from_npy(std::string_view descr);

// Bytes that `count` elements take in memory (packed types round up to whole bytes); nullopt on overflow.
std::optional<std::size_t> storage_bytes(DType t, std::int64_t count);
std::size_t alignment(DType t);  // in bytes, of an element in memory

// Narrow floats. From: exact. To: round to nearest even; `saturate` clamps to the largest finite value (and maps
// infinities to it), otherwise overflow gives infinity, or NaN where the type has no infinity.
double decode_float(DType t, std::uint64_t bits);                          // any Float dtype
std::uint64_t encode_float(DType t, double value, bool saturate = false);  // any Float dtype, one rounding from f64

// One element of a buffer as a wide value; `index` counts elements. Ints: sign- or zero-extended.
double load_f64(DType t, const void* data, std::int64_t index);       // bool, int or float dtypes
std::int64_t load_i64(DType t, const void* data, std::int64_t index);  // bool or int dtypes (u64 as its bits)
void store_f64(DType t, void* data, std::int64_t index, double value);        // float dtypes, rounds
void store_i64(DType t, void* data, std::int64_t index, std::int64_t value);  // bool (as != 0) or int, wraps

}  // namespace weft
