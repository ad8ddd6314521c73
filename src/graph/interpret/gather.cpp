#include <fmt/format.h>

#include <algorithm>

#include "graph/interpret/elements.h"
#include "graph/interpret/indexing.h"

namespace weft::graph::interpreter {
namespace {

Result<Tensor> gather(Eval& e) {
  const Tensor &x = e.in[0], &indices = e.in[1];
  const std::int64_t axis = e.attrs().integer(Attr::Axis);
  const Sizes strides = row_major_strides(x.shape());
  std::vector<AxisTable> tables;
  Sizes shape;
  for (int a = 0; a < x.rank(); ++a) {
    if (a != axis) {
      tables.push_back(linear_table(0, x.shape()[a], strides[a]));
      shape.push_back(x.shape()[a]);
      continue;
    }
    AxisTable table;
    for (std::int64_t i = 0; i < indices.size(); ++i) {
      table.push_back(WEFT_TRY(checked_index(e, indices.i64(i), axis, x.shape()[axis])) * strides[axis]);
    }
    tables.push_back(std::move(table));
    shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  }
  const Tensor y = WEFT_TRY(copy_by_tables(x, tables));
  return y.reshaped(std::move(shape));
}

// Slices of `length` elements that start at the offsets.
Result<Tensor> read_slices(const Tensor& x, const Sizes& offsets, std::int64_t length, const Sizes& shape) {
  const Tensor source = WEFT_TRY(spread(x));
  Tensor y = WEFT_TRY(Tensor::empty(source.dtype(), shape));
  if (y.size() > 0) {
    with_carrier(source.dtype(), [&](auto carrier) {
      using T = decltype(carrier);
      T* out = mutable_elements<T>(y);
      for (std::int64_t offset : offsets) out = std::copy_n(elements<T>(source) + offset, length, out);
    });
  }
  return gathered(std::move(y), x.dtype());
}

Result<Tensor> gather_nd(Eval& e) {
  const Tensor &x = e.in[0], &indices = e.in[1];
  const std::int64_t batch = e.attrs().integer(Attr::Batch);
  const Sizes offsets = WEFT_TRY(tuple_offsets(e, x, indices, batch));
  const std::size_t used = static_cast<std::size_t>(batch + indices.shape().back());
  Sizes shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(used), x.shape().end());
  return read_slices(x, offsets, count_of(x.shape(), used, x.shape().size()), shape);
}

}  // namespace

Result<std::int64_t> checked_index(const Eval& e, std::int64_t index, std::int64_t axis, std::int64_t extent) {
  if (index >= -extent && index < extent) return index < 0 ? index + extent : index;
  return e.error("index-out-of-range", fmt::format("index {} is out of range on axis {} of extent {}", index, axis, extent));
}

Result<Sizes> element_offsets(const Eval& e, const Tensor& x, const Tensor& indices, std::int64_t axis) {
  Sizes offsets;
  if (indices.size() == 0) return offsets;
  for (int a = 0; a < x.rank(); ++a) {
    if (a == axis || indices.shape()[a] <= x.shape()[a]) continue;
    return e.error("shape-mismatch", fmt::format("axis {} of the indices is longer than the operand's", a))
        .expected(shape_str(x.shape()))
        .found(shape_str(indices.shape()));
  }
  const Sizes strides = row_major_strides(x.shape());
  Sizes at(x.shape().size(), 0);
  for (std::int64_t i = 0; i < indices.size(); ++i) {
    std::int64_t offset = 0;
    for (int a = 0; a < x.rank(); ++a) {
      const std::int64_t c =
          a == axis ? WEFT_TRY(checked_index(e, indices.i64(i), axis, x.shape()[axis])) : at[a];
      offset += c * strides[a];
    }
    offsets.push_back(offset);
    next_index(at, indices.shape());
  }
  return offsets;
}

Result<Sizes> tuple_offsets(const Eval& e, const Tensor& x, const Tensor& indices, std::int64_t batch) {
  const Sizes& shape = indices.shape();
  const std::int64_t width = shape.back();
  if (batch + width > x.rank() || !std::equal(shape.begin(), shape.begin() + batch, x.shape().begin())) {
    return e.error("shape-mismatch", "the indices do not fit the operand")
        .expected(shape_str(x.shape()))
        .found(shape_str(shape));
  }
  const Sizes strides = row_major_strides(x.shape());
  const std::int64_t tuples = count_of(shape, 0, shape.size() - 1);
  const std::int64_t per_batch = count_of(shape, batch, shape.size() - 1);
  const std::int64_t batch_block = count_of(x.shape(), batch, x.shape().size());
  Sizes offsets;
  for (std::int64_t t = 0; t < tuples; ++t) {
    std::int64_t offset = t / per_batch * batch_block;
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t axis = batch + k;
      offset += WEFT_TRY(checked_index(e, indices.i64(t * width + k), axis, x.shape()[axis])) * strides[axis];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

Result<Tensors> eval_gather(Eval& e) {
  switch (e.op()) {
    case Op::Gather: return one(gather(e));
    case Op::GatherElements: {
      const Sizes offsets = WEFT_TRY(element_offsets(e, e.in[0], e.in[1], e.attrs().integer(Attr::Axis)));
      return one(read_slices(e.in[0], offsets, 1, e.in[1].shape()));
    }
    case Op::GatherNd: return one(gather_nd(e));
    default: break;
  }
  return internal_error(std::string("a gather op without evaluation: ") + info(e.op()).name);
}

}  // namespace weft::graph::interpreter
