// Elements in bulk as wide values: what plain host algorithms compute with, whatever the dtype. Floats are f64, signed
// integers i64, bool and unsigned integers u64, complex numbers pairs of f64. Loads are exact; stores round once
// (floats) or wrap (integers; bool stores != 0).
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/tensor.h"

namespace weft {

using WideComplex = std::complex<double>;
constexpr std::int64_t kWideChunk = 1024;  // a multiple of the elements in a byte of any packed dtype

// Calls f with a value of the wide type of a bool, integer or float dtype.
template <class F>
decltype(auto) with_real(DType t, F&& f) {
  WEFT_CHECK(!is_complex(t) && !is_string(t), std::string("a real dtype is needed, not ") + name(t));
  if (is_float(t)) return f(double{});
  if (is_signed_int(t)) return f(std::int64_t{});
  return f(std::uint64_t{});
}

// The same, complex dtypes included.
template <class F>
decltype(auto) with_wide(DType t, F&& f) {
  if (is_complex(t)) return f(WideComplex{});
  return with_real(t, static_cast<F&&>(f));
}

// Elements [start, start + n). As double: any bool, integer or float dtype (integers beyond 2^53 round). As integers:
// bool and integer dtypes, sign- or zero-extended. As complex: complex dtypes.
void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, double* out);
void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, std::int64_t* out);
void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, std::uint64_t* out);
void load_wide(const Tensor& t, std::int64_t start, std::int64_t n, WideComplex* out);
void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const double* in);
void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const std::int64_t* in);
void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const std::uint64_t* in);
void store_wide(Tensor& t, std::int64_t start, std::int64_t n, const WideComplex* in);

template <class W>
std::vector<W> widen(const Tensor& t) {
  std::vector<W> values(static_cast<std::size_t>(t.size()));
  load_wide(t, 0, t.size(), values.data());
  return values;
}

// Storage for a result: zeroed where elements share bytes, so that padding bits are never random.
Result<Tensor> result_tensor(DType dtype, std::vector<std::int64_t> shape);

template <class W>
Result<Tensor> narrow(DType dtype, std::vector<std::int64_t> shape, const std::vector<W>& values) {
  Tensor t = WEFT_TRY(result_tensor(dtype, std::move(shape)));
  store_wide(t, 0, t.size(), values.data());
  return t;
}

// The least and largest values of a dtype, infinities included where it has them.
template <class W>
W least(DType t);
template <class W>
W largest(DType t);

// Float to integer: truncates, clamps to the dtype's range, NaN is 0.
std::int64_t clamp_to_int(DType t, double value);
// Integer to float with one rounding, for magnitudes beyond 2^53 too. `value` holds the bits of a u64 when `is_unsigned`.
double int_to_float(DType t, std::int64_t value, bool is_unsigned, bool saturate = false);

// The order that sorting uses: NaN is the largest, equal to itself.
template <class W>
bool sorts_before(const W& a, const W& b) {
  if constexpr (std::is_same_v<W, double>) {
    if (b != b) return a == a;
  }
  return a < b;
}

}  // namespace weft
