#include "graph/winograd.h"

#include <vector>

namespace weft::graph {
namespace {

constexpr double kBt2[] = {1, 0, -1, 0,  //
                           0, 1, 1,  0,  //
                           0, -1, 1, 0,  //
                           0, 1, 0,  -1};
constexpr double kG2[] = {1,   0,    0,    //
                          0.5, 0.5,  0.5,  //
                          0.5, -0.5, 0.5,  //
                          0,   0,    1};
constexpr double kAt2[] = {1, 1, 1,  0,  //
                           0, 1, -1, -1};

constexpr double kBt4[] = {4, 0,  -5, 0,  1, 0,  //
                           0, -4, -4, 1,  1, 0,  //
                           0, 4,  -4, -1, 1, 0,  //
                           0, -2, -1, 2,  1, 0,  //
                           0, 2,  -1, -2, 1, 0,  //
                           0, 4,  0,  -5, 0, 1};
constexpr double kG4[] = {1.0 / 4,  0,         0,         //
                          -1.0 / 6, -1.0 / 6,  -1.0 / 6,  //
                          -1.0 / 6, 1.0 / 6,   -1.0 / 6,  //
                          1.0 / 24, 1.0 / 12,  1.0 / 6,   //
                          1.0 / 24, -1.0 / 12, 1.0 / 6,   //
                          0,        0,         1};
constexpr double kAt4[] = {1, 1, 1,  1, 1,  0,  //
                           0, 1, -1, 2, -2, 0,  //
                           0, 1, 1,  4, 4,  0,  //
                           0, 1, -1, 8, -8, 1};

constexpr Winograd kForms[] = {{2, 4, kBt2, kG2, kAt2}, {4, 6, kBt4, kG4, kAt4}};

}  // namespace

const Winograd* winograd(std::int64_t m) {
  for (const Winograd& form : kForms) {
    if (form.m == m) return &form;
  }
  return nullptr;
}

Result<Tensor> winograd_weights(const Tensor& weights, const Winograd& form) {
  const std::int64_t channels = weights.shape()[2], outputs = weights.shape()[3], n = channels * outputs;
  Tensor made = WEFT_TRY(Tensor::empty(DType::F32, {form.points(), channels, outputs}));
  const auto* w = static_cast<const float*>(weights.data());
  auto* u = static_cast<float*>(made.mutable_data());
  std::vector<double> row(static_cast<std::size_t>(outputs));
  for (int i = 0; i < form.size; ++i) {
    for (int j = 0; j < form.size; ++j) {
      for (std::int64_t c = 0; c < channels; ++c) {
        std::fill(row.begin(), row.end(), 0.0);
        for (int a = 0; a < 3; ++a) {
          for (int b = 0; b < 3; ++b) {
            const double factor = form.g[i * 3 + a] * form.g[j * 3 + b];
            if (factor == 0) continue;
            const float* from = w + (a * 3 + b) * n + c * outputs;
            for (std::int64_t k = 0; k < outputs; ++k) row[k] += factor * static_cast<double>(from[k]);
          }
        }
        float* to = u + (i * form.size + j) * n + c * outputs;
        for (std::int64_t k = 0; k < outputs; ++k) to[k] = static_cast<float>(row[k]);
      }
    }
  }
  return made;
}

}  // namespace weft::graph
