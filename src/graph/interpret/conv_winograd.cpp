// A 3 x 3 convolution in Winograd's form, tile by tile, in f64.
#include <algorithm>

#include "graph/interpret/elements.h"
#include "graph/winograd.h"

namespace weft::graph::interpreter {
namespace {

// left (rows x size) * x (size x size) * left transposed -> rows x rows
void sandwich(const double* left, int rows, int size, const double* x, double* out) {
  std::vector<double> half(static_cast<std::size_t>(rows * size), 0.0);
  for (int r = 0; r < rows; ++r) {
    for (int s = 0; s < size; ++s) {
      for (int c = 0; c < size; ++c) half[r * size + c] += left[r * size + s] * x[s * size + c];
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int q = 0; q < rows; ++q) {
      double sum = 0;
      for (int s = 0; s < size; ++s) sum += half[r * size + s] * left[q * size + s];
      out[r * rows + q] = sum;
    }
  }
}

}  // namespace

Result<Tensors> eval_conv_winograd(Eval& e) {
  const Winograd& form = *winograd(e.attrs().integer(Attr::Tile));
  const Tensor &x = e.in[0], &u = e.in[1];
  const Sizes lo = WEFT_TRY(e.dims(Attr::Lo)), hi = WEFT_TRY(e.dims(Attr::Hi));
  const std::int64_t n = x.shape()[0], h = x.shape()[1], w = x.shape()[2], channels = x.shape()[3], outputs = u.shape()[2];
  const std::int64_t rows = std::max<std::int64_t>(h + lo[0] + hi[0] - 2, 0), cols = std::max<std::int64_t>(w + lo[1] + hi[1] - 2, 0);
  Tensor y = WEFT_TRY(Tensor::zeros(e.attrs().dtype(Attr::DType), {n, rows, cols, outputs}));
  const std::size_t points = static_cast<std::size_t>(form.points());
  std::vector<double> d(points), v(points), sums(points * static_cast<std::size_t>(outputs)), m(points), result(points);
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t r = 0; r < rows; r += form.m) {
      for (std::int64_t c = 0; c < cols; c += form.m) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t k = 0; k < channels; ++k) {
          for (int p = 0; p < form.points(); ++p) {
            const std::int64_t i = r + p / form.size - lo[0], j = c + p % form.size - lo[1];
            const bool inside = i >= 0 && i < h && j >= 0 && j < w;
            d[p] = inside ? x.f64(((b * h + i) * w + j) * channels + k) : 0.0;
          }
          sandwich(form.bt, form.size, form.size, d.data(), v.data());
          for (int p = 0; p < form.points(); ++p) {
            for (std::int64_t o = 0; o < outputs; ++o) sums[p * outputs + o] += v[p] * u.f64((p * channels + k) * outputs + o);
          }
        }
        for (std::int64_t o = 0; o < outputs; ++o) {
          for (int p = 0; p < form.points(); ++p) m[p] = sums[p * outputs + o];
          sandwich(form.at, form.m, form.size, m.data(), result.data());
          for (int p = 0; p < form.m * form.m; ++p) {
            const std::int64_t i = r + p / form.m, j = c + p % form.m;
            if (i < rows && j < cols) y.set_f64(((b * rows + i) * cols + j) * outputs + o, result[p]);
          }
        }
      }
    }
  }
  return one(y);
}

}  // namespace weft::graph::interpreter
