#include "frontend/onnx/ops/window.h"

#include <fmt/format.h>

namespace weft::onnx {

Result<Window> window_of(NodeContext& c, const Shape& spatial, std::vector<std::int64_t> kernel) {
  std::size_t n = spatial.size();
  Window w;
  w.kernel = std::move(kernel);
  w.strides = c.integers("strides", std::vector<std::int64_t>(n, 1));
  w.dilations = c.integers("dilations", std::vector<std::int64_t>(n, 1));
  std::vector<std::int64_t> pads = c.integers("pads", std::vector<std::int64_t>(2 * n, 0));
  if (w.kernel.size() != n || w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n) {
    return c.bad(fmt::format("kernel_shape, strides, dilations and pads must fit {} spatial axes", n));
  }
  for (std::size_t d = 0; d < n; ++d) {
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1) {
      return c.bad("kernel_shape, strides and dilations must be at least 1");
    }
    if (pads[d] < 0 || pads[n + d] < 0) return c.bad("pads must not be negative");
  }
  std::string automatic = c.text("auto_pad", "NOTSET");
  for (std::size_t d = 0; d < n; ++d) {
    if (automatic == "NOTSET") {
      w.lo.push_back(pads[d]);
      w.hi.push_back(pads[n + d]);
    } else if (automatic == "VALID") {
      w.lo.push_back(0);
      w.hi.push_back(0);
    } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      Dim stride = w.strides[d];
      Dim outputs = ceil_div(spatial[d], stride);
      Dim reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
      Dim total = c.b.graph().facts.simplify(max((outputs - 1) * stride + reach - spatial[d], Dim(0)));
      Dim less = floor_div(total, 2), more = total - less;
      bool upper = automatic == "SAME_UPPER";
      w.lo.push_back(upper ? less : more);
      w.hi.push_back(upper ? more : less);
    } else {
      return c.bad(fmt::format("unknown auto_pad '{}'", automatic));
    }
  }
  return w;
}

}  // namespace weft::onnx
