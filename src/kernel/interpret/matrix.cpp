#include "kernel/interpret/matrix.h"

#include <bit>
#include <vector>

#include "kernel/kernel.h"

namespace weft::kernel {
namespace {

// The 13 low bits of an f32 do not count.
double as_read(DType t, const Scalar& x) {
  if (!is_float(t)) return static_cast<double>(x.i);
  if (t != DType::F32) return x.f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x.f)) & ~std::uint32_t{0x1fff});
}

}  // namespace

void multiply_matrix(const MatrixOperands& m) {
  const int steps = kMatrixWords * m.word;
  std::vector<double> a(static_cast<std::size_t>(kMatrixRows * steps)), b(static_cast<std::size_t>(kMatrixColumns * steps));
  const auto step_of = [&](int lane, int word, int half) { return (lane % 4 + 4 * half) * m.word + word; };
  for (int l = 0; l < kMatrixWarp; ++l) {
    for (int n = 0; n < 4 * m.word; ++n) {
      const int part = n / m.word, row = l / 4 + part % 2 * 8;
      a[static_cast<std::size_t>(row * steps + step_of(l, n % m.word, part / 2))] = as_read(m.dtype, m.a(l)[n]);
    }
    for (int n = 0; n < 2 * m.word; ++n) {
      b[static_cast<std::size_t>(l / 4 * steps + step_of(l, n % m.word, n / m.word))] = as_read(m.dtype, m.b(l)[n]);
    }
  }
  for (int l = 0; l < kMatrixWarp; ++l) {
    for (int n = 0; n < 4; ++n) {
      const double* row = &a[static_cast<std::size_t>((l / 4 + n / 2 * 8) * steps)];
      const double* column = &b[static_cast<std::size_t>((2 * (l % 4) + n % 2) * steps)];
      double products = 0;
      for (int k = 0; k < steps; ++k) products += row[k] * column[k];
      const Scalar sum = m.sum(l)[n];
      if (is_float(m.dtype)) {
        m.result(l)[n] = {static_cast<float>(sum.f + products), 0};
      } else {  // at most 32 products of bytes: exact
        m.result(l)[n] = {0, static_cast<std::int32_t>(sum.i + static_cast<std::int64_t>(products))};
      }
    }
  }
}

MatrixElement matrix_element(int lane, int k, int word, bool turned) {
  const int matrix = k / word, within = k % word, g = lane / 4, t = lane % 4;
  if (turned) return {matrix * kPartRows + t * word + within, g};
  return {matrix * kPartRows + g, t * word + within};
}

}  // namespace weft::kernel
