#include "compile/prepare.h"

#include <cstring>
#include <numeric>

namespace weft::compiler {

namespace {

// Copies elements of one size from row-major order into the map's. The panel's lanes are the innermost loop.
template <class T>
void pack(const T* from, T* to, const std::vector<std::int64_t>& shape, const loop::StorageMap& map,
          const std::vector<int>& order) {
  std::size_t rank = shape.size();
  std::vector<std::int64_t> stride(rank, 1);
  for (std::size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  std::vector<int> outer;  // axes that count within a panel, outermost first
  for (int axis : order) {
    if (axis != map.panel_axis) outer.push_back(axis);
  }
  std::int64_t rows = 1;
  for (int axis : outer) rows *= shape[axis];
  std::int64_t lanes = map.panel_axis >= 0 ? shape[map.panel_axis] : 1;
  std::int64_t width = map.panel_axis >= 0 ? map.panel : 1;
  std::int64_t lane_stride = map.panel_axis >= 0 ? stride[map.panel_axis] : 0;
  for (std::int64_t panel = 0; panel * width < lanes; ++panel) {
    std::vector<std::int64_t> at(outer.size(), 0);
    std::int64_t base = panel * width * lane_stride;
    std::int64_t count = std::min(width, lanes - panel * width);
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* source = from + base;
      for (std::size_t k = 0; k < outer.size(); ++k) source += at[k] * stride[outer[k]];
      T* target = to + (panel * rows + row) * width;
      for (std::int64_t lane = 0; lane < count; ++lane) target[lane] = source[lane * lane_stride];
      for (std::size_t k = outer.size(); k-- > 0;) {
        if (++at[k] < shape[outer[k]]) break;
        at[k] = 0;
      }
    }
  }
}

}  // namespace

Result<Tensor> prepare_constant(const Tensor& data, const std::vector<std::int64_t>& shape,
                                const loop::StorageMap& map) {
  Dim elements = loop::storage_elements(Shape(shape.begin(), shape.end()), map);
  Tensor result = WEFT_TRY(Tensor::zeros(data.dtype(), {elements.value()}));
  std::vector<int> order = map.order;
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  void* to = result.mutable_data();
  switch (bits(data.dtype())) {
    case 8:
      pack(data.as<std::uint8_t>(), static_cast<std::uint8_t*>(to), shape, map, order);
      return result;
    case 16:
      pack(data.as<std::uint16_t>(), static_cast<std::uint16_t*>(to), shape, map, order);
      return result;
    case 32:
      pack(data.as<std::uint32_t>(), static_cast<std::uint32_t*>(to), shape, map, order);
      return result;
    case 64:
      pack(data.as<std::uint64_t>(), static_cast<std::uint64_t*>(to), shape, map, order);
      return result;
    default:
      return unsupported("unsupported-dtype", std::string("laying out constants of ") + name(data.dtype()));
  }
}

}  // namespace weft::compiler
