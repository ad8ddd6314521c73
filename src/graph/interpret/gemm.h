// c[m, n] = sum over k of a[m, k] * b[n, k] in f64 or wrapping u64: what dot and conv come down to.
#pragma once

#include <cstdint>
#include <functional>

namespace weft::graph::interpreter {

// `row(j, out)` writes the k elements of b's row j; a and c are dense.
void gemm(const double* a, const std::function<void(std::int64_t, double*)>& row, std::int64_t m, std::int64_t n,
          std::int64_t k, double* c);
void gemm(const std::uint64_t* a, const std::function<void(std::int64_t, std::uint64_t*)>& row, std::int64_t m,
          std::int64_t n, std::int64_t k, std::uint64_t* c);

}  // namespace weft::graph::interpreter
