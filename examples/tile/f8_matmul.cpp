// A product of matrices of f8 (e4m3 by e5m2), summed in f32, the right one lying by columns, as units for bytes read it: four
// warps of an NVIDIA GPU multiply them together (wgmma on sm_90a), or each of them (mma.sync from sm_89 on); others decode them.
#include "example.h"

namespace examples {
namespace {

template <int R, int C, int K>
void f8_product(In<F8E4M3> a, In<F8E5M2> b, Out<float> c, Int m, Int n, Int depth) {
  const Tile across = (n + (C - 1)) / C;
  const Tile i = program_id() / across * R + rows(R), first = program_id() % across * C;
  const Matrix left(a, m, depth), right(b, n, depth), out(c, m, n);
  Var acc = zeros<float>(R, C);
  for (Tile k : range(0, depth, K)) acc = dot(left.load(i, k + lanes(K)), transpose(right.load(first + rows(C), k + lanes(K))), acc);
  out.store(i, first + lanes(C), acc);
}

// Random codes of finite numbers, none above 8, and what they stand for.
struct Eighths {
  Eighths(weft::DType dtype, int mantissa_bits, std::size_t n, unsigned seed) : dtype(dtype), codes(n), values(n) {
    std::mt19937 random(seed);
    const int exponent_bits = 7 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
    for (std::size_t i = 0; i < n; ++i) {
      const int exponent = static_cast<int>(random() % static_cast<unsigned>(bias + 3)), fraction = static_cast<int>(random() & ((1U << mantissa_bits) - 1));
      const bool negative = (random() & 1) != 0;
      codes[i] = static_cast<std::uint8_t>((negative ? 0x80 : 0) | exponent << mantissa_bits | fraction);
      const int whole = exponent == 0 ? fraction : fraction + (1 << mantissa_bits);  // the least exponent: subnormal
      values[i] = std::ldexp(negative ? -static_cast<float>(whole) : static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa_bits);
    }
  }
  weft::Tensor tensor() { return weft::Tensor::mutable_view(dtype, {static_cast<std::int64_t>(codes.size())}, codes.data()); }
  weft::DType dtype;
  std::vector<std::uint8_t> codes;
  std::vector<float> values;
};

}  // namespace

bool f8_matmul(const weft::CompileOptions& options) {
  constexpr int m = 80, n = 96, depth = 160;
  Eighths a(weft::DType::F8E4M3FN, 3, m * depth, 1), b(weft::DType::F8E5M2, 2, n * depth, 2);
  std::vector<float> c(m * n), expected(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) sum += double{a.values[i * depth + k]} * b.values[j * depth + k];
      expected[i * n + j] = static_cast<float>(sum);
    }
  }
  const bool cpu = options.target.rfind("cpu", 0) == 0;
  const Kernel made = cpu ? kernel("f8_matmul", f8_product<8, 16, 8>) : kernel("f8_matmul", f8_product<64, 32, 64>);
  const int rows = cpu ? 8 : 64, columns = cpu ? 16 : 32;
  return report({.kernel = made, .grid = (m + rows - 1) / rows * ((n + columns - 1) / columns),
                 .arguments = {a.tensor(), b.tensor(), c, m, n, depth}, .result = c, .expected = expected,
                 .least_bytes = m * depth + depth * n + 4LL * m * n}, options);
}

}  // namespace examples
