// Moving elements without looking at them: any dtype by its width. Packed elements are spread to a byte each first.
#pragma once

#include <array>
#include <type_traits>

#include "graph/interpret/eval.h"

namespace weft::graph::interpreter {

// A packed tensor as u8 codes, any other as it is; and back.
Result<Tensor> spread(const Tensor& t);
Result<Tensor> gathered(Tensor t, DType dtype);

using Wide128 = std::array<std::uint64_t, 2>;

// Calls f with a value of the type that carries an element of the (spread) dtype.
template <class F>
decltype(auto) with_carrier(DType t, F&& f) {
  switch (bits(t)) {
    case 0: return f(std::string{});
    case 8: return f(std::uint8_t{});
    case 16: return f(std::uint16_t{});
    case 32: return f(std::uint32_t{});
    case 64: return f(std::uint64_t{});
    default: break;
  }
  WEFT_CHECK(bits(t) == 128, std::string("moving elements of ") + name(t));
  return f(Wide128{});
}

template <class T>
const T* elements(const Tensor& t) {
  if constexpr (std::is_same_v<T, std::string>) {
    return t.string_values().data();
  } else {
    return t.as<T>();
  }
}

template <class T>
T* mutable_elements(Tensor& t) {
  if constexpr (std::is_same_v<T, std::string>) {
    return t.mutable_strings().data();
  } else {
    return t.as_mutable<T>();
  }
}

// For each index of a result axis what it adds to the operand's element offset, or kFill.
using AxisTable = std::vector<std::int64_t>;
constexpr std::int64_t kFill = INT64_MIN;

// result[i, j, ...] = x[tables[0][i] + tables[1][j] + ...], or *fill where any entry is kFill.
Result<Tensor> copy_by_tables(const Tensor& x, const std::vector<AxisTable>& tables, const Tensor* fill = nullptr);
// start, start + step, ...: `size` entries.
AxisTable linear_table(std::int64_t start, std::int64_t size, std::int64_t step);
Result<Tensor> transposed(const Tensor& x, const Sizes& axes);
Result<Tensor> concatenated(const Tensors& parts, std::int64_t axis);

}  // namespace weft::graph::interpreter
