// Convolutions whose compiled form could take a shortcut.
#include <limits>

#include "compile/support.h"

namespace weft::compiler::testing {
namespace {

TEST(Conv, PaddingIsMultiplied) {
  const char* text = R"(graph @t(%0 "x": f32[n, 3, 5, 5], %1 "w": f32[8, 3, 3, 3]) -> (f32[n, 8, 5, 5]) where n in 1.. {
    %2 = conv %0, %1 {dtype=f32, strides=[1, 1], dilations=[1, 1], base_dilations=[1, 1], lo=[1, 1], hi=[1, 1], groups=1, channels_last=false} : f32[n, 8, 5, 5]
    return %2
  })";
  std::mt19937 random(1);
  const Tensor x = random_tensor(DType::F32, {2, 3, 5, 5}, random);
  Tensor w = random_tensor(DType::F32, {8, 3, 3, 3}, random);
  w.set_f64(0, std::numeric_limits<double>::infinity());
  w.set_f64(w.size() - 1, std::numeric_limits<double>::quiet_NaN());
  check(text, {{x, w}});
}

}  // namespace
}  // namespace weft::compiler::testing
