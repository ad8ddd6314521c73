#include "cli/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "base/text.h"

namespace weft::cli {
namespace {

// The values of a float type, counted in order: neighbours differ by 1.
double ordinal(DType t, double value) {
  if (t == DType::F64) {
    const auto raw = std::bit_cast<std::int64_t>(value);
    return raw < 0 ? -static_cast<double>(raw & INT64_MAX) : static_cast<double>(raw);
  }
  const std::uint64_t raw = encode_float(t, std::abs(value));
  return value < 0 ? -static_cast<double>(raw) : static_cast<double>(raw);
}

class Comparison {
 public:
  Comparison(Difference& d, const Tolerance& t) : d_(d), tolerance_(t) {}

  void floats(std::int64_t i, double got, double want, DType t) {
    if (got == want || (std::isnan(got) && std::isnan(want))) return;
    if (!std::isfinite(got) || !std::isfinite(want)) return wrong(i, std::numeric_limits<double>::infinity());
    const double off = std::abs(got - want);
    d_.max_abs = std::max(d_.max_abs, off);
    if (want != 0) d_.max_rel = std::max(d_.max_rel, off / std::abs(want));
    d_.max_ulp = std::max(d_.max_ulp, std::abs(ordinal(t, got) - ordinal(t, want)));
    const double excess = off - (tolerance_.atol + tolerance_.rtol * std::abs(want));
    if (excess > 0) wrong(i, excess);
  }

  void integers(std::int64_t i, std::int64_t got, std::int64_t want) {
    if (got == want) return;
    const double off = std::abs(static_cast<double>(got) - static_cast<double>(want));
    d_.max_abs = std::max(d_.max_abs, off);
    if (want != 0) d_.max_rel = std::max(d_.max_rel, off / std::abs(static_cast<double>(want)));
    wrong(i, off);
  }

  void wrong(std::int64_t i, double excess) {
    ++d_.beyond;
    if (d_.worst >= 0 && excess <= worst_) return;
    worst_ = excess;
    d_.worst = i;
  }

 private:
  Difference& d_;
  const Tolerance& tolerance_;
  double worst_ = 0;
};

std::complex<double> complex_at(const Tensor& t, std::int64_t i) {
  const DType part = t.dtype() == DType::C64 ? DType::F32 : DType::F64;
  return {load_f64(part, t.data(), 2 * i), load_f64(part, t.data(), 2 * i + 1)};
}

}  // namespace

Difference compare(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  Difference d;
  if (got.dtype() != want.dtype()) {
    d.problem = fmt::format("dtype {} instead of {}", name(got.dtype()), name(want.dtype()));
    return d;
  }
  if (got.shape() != want.shape()) {
    d.problem = fmt::format("shape {} instead of {}", shape_str(got.shape()), shape_str(want.shape()));
    return d;
  }
  const DType t = want.dtype();
  Comparison c(d, tolerance);
  d.elements = want.size();
  for (std::int64_t i = 0; i < d.elements; ++i) {
    if (is_string(t)) {
      if (got.string_values()[i] != want.string_values()[i]) c.wrong(i, 1);
    } else if (is_complex(t)) {
      const DType part = t == DType::C64 ? DType::F32 : DType::F64;
      const std::int64_t before = d.beyond;
      c.floats(i, complex_at(got, i).real(), complex_at(want, i).real(), part);
      if (d.beyond == before) c.floats(i, complex_at(got, i).imag(), complex_at(want, i).imag(), part);
    } else if (is_float(t)) {
      c.floats(i, got.f64(i), want.f64(i), t);
    } else {
      c.integers(i, got.i64(i), want.i64(i));
    }
  }
  return d;
}

double largest_magnitude(const Tensor& tensor) {
  double largest = 0;
  if (!is_float(tensor.dtype())) return largest;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double x = std::abs(tensor.f64(i));
    if (std::isfinite(x)) largest = std::max(largest, x);
  }
  return largest;
}

std::string element_text(const Tensor& t, std::int64_t i) {
  if (is_string(t.dtype())) return quote(t.string_values()[i]);
  if (is_complex(t.dtype())) return fmt::format("{}+{}i", complex_at(t, i).real(), complex_at(t, i).imag());
  if (t.dtype() == DType::F32) return fmt::format("{}", static_cast<float>(t.f64(i)));
  if (is_float(t.dtype())) return fmt::format("{}", t.f64(i));
  if (t.dtype() == DType::U64) return fmt::format("{}", static_cast<std::uint64_t>(t.i64(i)));
  return fmt::format("{}", t.i64(i));
}

std::string describe(const Difference& d, const Tensor& got, const Tensor& want) {
  if (!d.problem.empty()) return d.problem;
  if (d.beyond == 0) return "equal within the tolerance";
  std::vector<std::int64_t> at;
  std::int64_t rest = d.worst;
  for (std::int64_t stride : row_major_strides(want.shape())) {
    at.push_back(stride > 0 ? rest / stride : 0);
    rest = stride > 0 ? rest % stride : rest;
  }
  return fmt::format("{} of {} elements differ, the worst at {}: {} instead of {}", d.beyond, d.elements, shape_str(at),
                     element_text(got, d.worst), element_text(want, d.worst));
}

}  // namespace weft::cli
